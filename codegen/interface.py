"""Writes the operators' arguments for those who do not import the compiler: the run time, and readers of the docs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import __version__
from .arguments import ALWAYS, OPTIONAL, Argument, Attribute, Shape
from .errors import MoegradError
from .operators import OPERATORS, Operator
from .rendering import render


@dataclass(frozen=True)
class PythonTable:
    """One operator as Python literals: every field is text."""

    constant: str
    name: str
    api: str
    """Name of the second phase of its C interface."""
    roles: str
    inputs: tuple[str, ...]
    attributes: str
    outputs: tuple[str, ...]
    rules: tuple[str, ...]
    modes: tuple[str, ...]
    kernels: tuple[str, ...]


def contract_module() -> str:
    """Text of ``generated/contract.py``."""
    return render(
        "python/contract.py.j2", version=__version__, operators=[_python_table(each) for each in OPERATORS.values()]
    )


def _python_table(operator: Operator) -> PythonTable:
    face = operator.interface
    return PythonTable(
        constant=operator.name.upper(),
        name=_literal(operator.name),
        api=_literal(operator.api),
        roles=_literal((face.gradient, face.indices, face.weights)),
        inputs=tuple(map(_row, face.inputs)),
        attributes=_literal(tuple((attribute.name, attribute.kind) for attribute in face.attributes)),
        outputs=tuple(map(_row, face.outputs)),
        rules=tuple(map(_literal, face.rules)),
        modes=tuple(
            _literal((mode.name, operator.capacity(mode), mode.weighted, mode.also)) for mode in operator.modes
        ),
        kernels=tuple(f"{_literal(mode.name)}: {_literal(operator.kernel(mode))}" for mode in operator.modes),
    )


def _row(row: Argument) -> str:
    values = row.values and tuple((each.low, each.high, each.distinct) for each in row.values)
    return _literal((row.name, row.role, row.needed, row.shapes, row.program_name, values))


def _literal(value: object) -> str:
    """A Python literal with double quotes."""
    return repr(value).replace("'", '"')


# ---- tables of docs/operators.md ----

_MARKS = re.compile(r"(<!-- arguments of (\w+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def with_tables(page: str) -> str:
    """A page with the table of arguments between each pair of marks written anew."""
    known = [name for _, name, _, _ in _MARKS.findall(page)]
    if sorted(known) != sorted(OPERATORS):
        raise MoegradError(f"docs: expected marks for {', '.join(OPERATORS)}, got {', '.join(known) or 'none'}")
    return _MARKS.sub(lambda found: f"{found[1]}{arguments_table(OPERATORS[found[2]])}{found[4]}", page)


def arguments_table(operator: Operator) -> str:
    """All arguments of an operator as a Markdown table, with their names in C."""
    face = operator.interface
    switch = face.attributes[0]
    capacity = f"`{switch.name}`" if switch.kind == "bool" else f"`{switch.name}` 1"
    rows = [f"| argument | in C | shape | with {capacity} | dtype | |", "| --- | --- | --- | --- | --- | --- |"]
    rows += [_input_row(row) for row in face.inputs]
    rows += [_attribute_row(row) for row in face.attributes]
    rows += [_output_row(row) for row in face.outputs]
    return "\n".join(rows) + "\n"


def _input_row(row: Argument) -> str:
    needed = {ALWAYS: "", OPTIONAL: "optional"}.get(row.needed, f"required with {row.needed}")
    return _table_row(row, row.c_name, needed)


def _output_row(row: Argument) -> str:
    return _table_row(row, row.c_output, "result" + ("" if row.needed == ALWAYS else f", None without {row.needed}"))


def _table_row(row: Argument, c_name: str, needed: str) -> str:
    note = "; ".join(part for part in (needed, row.note) if part)
    ordinary, capacity = (_shape(shape) for shape in row.shapes)
    return f"| {row.name} | {c_name} | {ordinary} | {capacity} | {row.role} | {note} |"


def _attribute_row(row: Attribute) -> str:
    return f"| {row.name} | {row.c_name} | | | {row.spelling.python} | {row.note} |"


def _shape(shape: Shape) -> str:
    if shape is None:
        return "M elements, any shape"
    return f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
