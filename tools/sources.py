"""What a command is given, an operator's name or a program file, and the kernel spec that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ..codegen.dialect.types import DTypeParam, element
from ..codegen.dtypes import dtype
from ..codegen.errors import SpecError
from ..codegen.generate import command_for, options, program_of
from ..codegen.operators import OPERATORS, make_spec, operator
from ..codegen.parsing import function, read_program
from ..codegen.signature import HIDDEN, TOPK, fixed_sizes, signature, size_symbols
from ..codegen.spec import ANY, KernelSpec


@dataclass(frozen=True)
class Source:
    """A program and the spec of the kernel wanted from it."""

    program: ModuleOp
    spec: KernelSpec
    command: str
    """The `moegrad generate` command that writes this kernel."""


def resolve(source: str, mode: str, data: str, weight: str, topk: int, hidden: int) -> Source:
    """The program and spec of an operator's mode or of a ``.mlir`` file; SpecError says what is unknown."""
    data, weight = dtype(data).tag, dtype(weight).tag if weight else ""
    if source.endswith(".mlir"):
        return _file(Path(source), mode, data, weight, topk, hidden)
    if source not in OPERATORS:
        raise SpecError(f"source: expected one of {', '.join(OPERATORS)}, or a .mlir file; got {source!r}")
    if not mode:
        known = ", ".join(each.name for each in operator(source).modes)
        raise SpecError(f"--mode: {source} needs one of {known}")
    spec = make_spec(source, mode, data, weight, topk, hidden)
    return Source(program_of(spec), spec, command_for(spec))


def _file(path: Path, mode: str, data: str, weight: str, topk: int, hidden: int) -> Source:
    if mode:
        raise SpecError(f"--mode: a program file has no modes, got {mode!r}")
    program = read_program(path)
    func = function(program)
    symbols = size_symbols(func)
    elements = [element(tensor.type) for tensor in signature(func)]
    parameters = {kind.symbol.data for kind in elements if isinstance(kind, DTypeParam)}
    if weight and "P" not in parameters:
        raise SpecError(f'--weight-dtype: {path} has no !moe.dtype<"P">, got {weight!r}')
    if topk and TOPK not in symbols:
        raise SpecError(f"--topk: {path} has no slots, got {topk}")
    weight = (weight or data) if "P" in parameters else ""
    fixed = fixed_sizes(func)
    topk, hidden = topk or fixed.get(TOPK, ANY), hidden or fixed.get(HIDDEN, ANY)
    spec = KernelSpec(func.sym_name.data, data, weight, topk, hidden)
    return Source(program, spec, f"moegrad generate {path.name} {options(spec)}".strip())
