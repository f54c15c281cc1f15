"""What a program must keep beyond the rules of its operations: one function whose signature can be lowered."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from .dialect.types import element, is_float, shape
from .signature import DIMS, NAME, OUTPUT, TOKENS, size_symbols

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = """
cdef cimport cpdef ctypedef DEF ELIF ELSE IF NULL
auto bool case char const default do double enum extern float goto inline int long register restrict short signed
sizeof static struct switch template this typedef typename union unsigned void volatile
"""
_RESERVED = frozenset([*keyword.kwlist, *_WORDS.split()])
"""Words that no target can use as a name: those of Python, Cython, C and C++."""


@dataclass(frozen=True)
class Problem:
    """A broken rule and the operation whose place stands in the message."""

    op: Operation
    message: str


def form_problems(module: ModuleOp) -> Iterator[Problem]:
    """The module holds one function with one block that returns."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    others = [op for op in module.ops if not isinstance(op, FuncOp)]
    if len(functions) != 1 or others:
        place = (functions[1:] or others or [module])[0]
        yield Problem(
            place, f"builtin.module: a program is one func.func, got {len(functions) + len(others)} operations"
        )
    elif len(functions[0].body.blocks) != 1:
        count = len(functions[0].body.blocks)
        yield Problem(functions[0], f"func.func: the body must be one block, got {count}")
    elif not isinstance(functions[0].body.block.last_op, ReturnOp):
        last = functions[0].body.block.last_op or functions[0]
        yield Problem(last, f"func.func: the body must end in func.return, got {last.name}")
    else:
        yield from _attribute_counts(functions[0])


def signature_problems(func: FuncOp) -> Iterator[Problem]:
    """Every tensor has a type, a name and dimensions that can be lowered, and every size symbol is one of them."""
    if re.fullmatch("[a-z][a-z0-9_]*", func.sym_name.data) is None:
        yield Problem(func, f"func.func: expected a lower-case identifier as its name, got {func.sym_name.data!r}")
    entries = list(_entries(func))
    for entry in entries:
        yield from (Problem(func, f"func.func: {entry.place} {message}") for message in entry.problems())
    names = [entry.name for entry in entries]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(func, f"func.func: two tensors are named {name!r}; moe.name gives a tensor another name")
    if not any(entry.output for entry in entries):
        yield Problem(func, "func.func: expected at least one output, got none")
    for symbol in sorted({dim for entry in entries for dim in entry.dims()} & set(names)):
        yield Problem(func, f"func.func: {symbol!r} names a tensor and a dimension")


def body_problems(func: FuncOp) -> Iterator[Problem]:
    """Values are defined before they are used, and every symbol is a dimension of the signature, with one size."""
    known = size_symbols(func)
    tokens = func.attributes.get(TOKENS)
    if tokens is not None and not (isinstance(tokens, StringAttr) and tokens.data in known):
        yield Problem(func, f"func.func: {TOKENS} must be one of {', '.join(known)}, got {tokens}")
    sizes: dict[str, int] = {}
    for entry in _entries(func):
        for symbol, size in zip(entry.dims(), shape(entry.type), strict=True):
            if size != DYNAMIC_INDEX and sizes.setdefault(symbol, size) != size:
                message = f"func.func: {entry.place}: expected {symbol} = {sizes[symbol]}, got {entry.type}"
                yield Problem(func, message)
    defined: set[SSAValue] = set()
    for op in func.walk():
        for operand in op.operands:
            if isinstance(operand, OpResult) and operand not in defined:
                yield Problem(op, f"{op.name}: %{operand.name_hint} is used before it is defined")
        defined |= set(op.results)
        extent = op.properties.get("extent")
        if isinstance(extent, StringAttr) and extent.data not in known:
            yield Problem(op, f"{op.name}: 'extent' must be one of {', '.join(known)}, got {extent}")


@dataclass(frozen=True)
class _Entry:
    """One tensor of a signature, before anything is known about it."""

    place: str
    type: Attribute
    attributes: DictionaryAttr
    name: str
    output: bool

    def dims(self) -> tuple[str, ...]:
        """Symbols of its dimensions; none where they are malformed."""
        dims = self.attributes.data.get(DIMS)
        return tuple(d.data for d in dims if isinstance(d, StringAttr)) if isinstance(dims, ArrayAttr) else ()

    def problems(self) -> Iterator[str]:
        """What is wrong with it alone."""
        if not isinstance(self.type, TensorType | MemRefType):
            yield f"must be a tensor or a memref, got {self.type}"
            return
        if not is_float(element(self.type)) and element(self.type) != i32:
            yield f"must be of element type f16, bf16, f32, !moe.dtype or i32, got {self.type}"
        yield from self._dims_problems()
        name = self.attributes.data.get(NAME)
        if name is not None and not isinstance(name, StringAttr):
            yield f"needs a string as {NAME}, got {name}"
        elif not _usable(self.name):
            yield f"needs a name that is an identifier and no keyword, got {self.name!r}"

    def _dims_problems(self) -> Iterator[str]:
        dims, rank = self.attributes.data.get(DIMS), len(shape(self.type))
        if not isinstance(dims, ArrayAttr) or not all(isinstance(dim, StringAttr) for dim in dims):
            yield f'needs {DIMS} = ["R", "H"] or the like, got {self.attributes}'
        elif len(dims) != rank:
            yield f"needs {DIMS} of {rank} dimensions for {self.type}, got {dims}"
        for symbol in self.dims():
            if not _usable(symbol):
                yield f"needs identifiers in {DIMS}, got {symbol!r}"


def _usable(name: str) -> bool:
    """Whether a name can stand in IR and kernels; ``_1`` is what a printer adds to a name, so it is none itself."""
    only_a_number = name.startswith("_") and name[1:].isdigit()
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED and not only_a_number


def _entries(func: FuncOp) -> Iterator[_Entry]:
    for position, (type_, attributes) in enumerate(
        zip(func.function_type.inputs, argument_attributes(func), strict=True)
    ):
        name = attributes.data.get(NAME)
        hint = func.args[position].name_hint or f"arg{position}"
        shown = name.data if isinstance(name, StringAttr) else hint
        yield _Entry(f"argument {position} (%{hint})", type_, attributes, shown, OUTPUT in attributes.data)
    for position, (type_, attributes) in enumerate(
        zip(func.function_type.outputs, result_attributes(func), strict=True)
    ):
        name = attributes.data.get(NAME)
        shown = name.data if isinstance(name, StringAttr) else f"out{position}"
        yield _Entry(f"result {position}", type_, attributes, shown, True)


def argument_attributes(func: FuncOp) -> list[DictionaryAttr]:
    """One dictionary for each argument."""
    return _padded(func.arg_attrs, len(func.function_type.inputs))


def result_attributes(func: FuncOp) -> list[DictionaryAttr]:
    """One dictionary for each result."""
    return _padded(func.res_attrs, len(func.function_type.outputs))


def _padded(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr]:
    return list(attributes) if attributes is not None else [DictionaryAttr({})] * count


def _attribute_counts(func: FuncOp) -> Iterator[Problem]:
    """One dictionary of attributes for each tensor, which the generic form does not ensure."""
    inputs, outputs = len(func.function_type.inputs), len(func.function_type.outputs)
    for name, attributes, count in (("arg_attrs", func.arg_attrs, inputs), ("res_attrs", func.res_attrs, outputs)):
        if attributes is not None and len(attributes) != count:
            yield Problem(func, f"func.func: {name} must hold {count} dictionaries, got {len(attributes)}")
