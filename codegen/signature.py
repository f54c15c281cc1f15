"""The signature of a program: its tensors with their names and symbolic dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from .dialect.types import shape

DIMS, NAME, OUTPUT = "moe.dims", "moe.name", "moe.output"
"""Attributes of a tensor of the signature."""

TOKENS = "moe.tokens"
"""Attribute of the function."""

HIDDEN, TOPK, SLOTS = "H", "K", "N"
"""Symbols with a fixed meaning: elements a row, slots a token, slots in all."""


@dataclass(frozen=True)
class Tensor:
    """One input or output of a program."""

    name: str
    type: Attribute
    """Builtin tensor at tensor level, memref at slot level."""
    dims: tuple[str, ...]
    """Symbol of each dimension."""
    output: bool

    @property
    def is_rows(self) -> bool:
        """Whether it holds rows of the hidden size."""
        return len(self.dims) == 2 and self.dims[1] == HIDDEN


def signature(func: FuncOp) -> list[Tensor]:
    """Inputs, then outputs, in order. At slot level outputs are arguments marked ``moe.output``."""
    arguments = zip(func.function_type.inputs, func.arg_attrs or (), strict=True)
    results = zip(func.function_type.outputs, func.res_attrs or (), strict=True)
    return [
        *(_tensor(type_, attributes, OUTPUT in attributes.data) for type_, attributes in arguments),
        *(_tensor(type_, attributes, True) for type_, attributes in results),
    ]


def _tensor(type_: Attribute, attributes: DictionaryAttr, output: bool) -> Tensor:
    name, dims = attributes.data[NAME], attributes.data[DIMS]
    assert isinstance(name, StringAttr)
    assert isinstance(dims, ArrayAttr)
    return Tensor(name.data, type_, tuple(dim.data for dim in dims if isinstance(dim, StringAttr)), output)


def tokens_symbol(func: FuncOp) -> str:
    """Symbol of the extent of the loop over tokens: ``moe.tokens`` of the function, R by default."""
    symbol = func.attributes.get(TOKENS)
    return symbol.data if isinstance(symbol, StringAttr) else "R"


def bound_sizes(func: FuncOp) -> dict[str, int]:
    """The sizes that `specialize` bound, by symbol."""
    sizes = func.attributes.get("moe.sizes")
    if not isinstance(sizes, DictionaryAttr):
        return {}
    return {name: size.value.data for name, size in sizes.data.items() if isinstance(size, IntegerAttr)}


def fixed_sizes(func: FuncOp) -> dict[str, int]:
    """The sizes that the types of the signature fix, by symbol."""
    return {
        symbol: size
        for tensor in signature(func)
        for symbol, size in zip(tensor.dims, shape(tensor.type), strict=True)
        if size != DYNAMIC_INDEX
    }


def size_symbols(func: FuncOp) -> list[str]:
    """Every size symbol of a program in order of first use, topK included where slots are."""
    symbols = [dim for tensor in signature(func) for dim in tensor.dims]
    if SLOTS in symbols:
        symbols.append(TOPK)
    return list(dict.fromkeys(symbols))
