"""specialize: binds the dtypes D and P, topK and the hidden size of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialect.tensor import CastOp, RepeatRowsOp, SelectSlotsOp, ShapedOp
from ..dialect.types import DTypeParam, element, shape
from ..dtypes import dtype
from ..errors import LoweringError
from ..parsing import function
from ..signature import HIDDEN, TOPK, fixed_sizes, signature, size_symbols


@dataclass(frozen=True)
class SpecializePass(ModulePass):
    """Binds what its options give; a dtype parameter that stays unbound is an error."""

    name = "specialize"

    data: str = ""
    """Tag of the data dtype D."""
    weight: str = ""
    """Tag of the weight dtype P."""
    topk: int = 0
    """Slots a token, 0 to leave it to the run time."""
    hidden: int = 0
    """Elements a row, 0 to leave it to the run time."""
    symbol: str = ""
    """New name of the function; empty keeps it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        func = function(op)
        sizes = self._sizes(func)
        self._bind_signature(func, sizes)
        for inner in func.body.block.ops:
            for result in inner.results:
                _retype(result, self._bind(result.type, shape(result.type)))
            if isinstance(inner, RepeatRowsOp) and TOPK in sizes:
                inner.topk = IntegerAttr(sizes[TOPK], i64)
        _infer_shapes(func)
        func.attributes["moe.sizes"] = DictionaryAttr({name: IntegerAttr(size, i64) for name, size in sizes.items()})
        if self.symbol:
            func.sym_name = StringAttr(self.symbol)

    def _sizes(self, func: FuncOp) -> dict[str, int]:
        """Every size that is known, by symbol: what is asked for, and what the program's types fix."""
        symbols = size_symbols(func)
        asked = {TOPK: self.topk, HIDDEN: self.hidden}
        sizes = {symbol: size for symbol, size in asked.items() if size and symbol in symbols}
        for symbol, size in fixed_sizes(func).items():
            if sizes.setdefault(symbol, size) != size:
                raise LoweringError(f"specialize: the program fixes {symbol} = {size}, asked for {sizes[symbol]}")
        return sizes

    def _bind_signature(self, func: FuncOp, sizes: dict[str, int]) -> None:
        tensors = signature(func)
        types = [
            self._bind(tensor.type, [sizes.get(symbol, DYNAMIC_INDEX) for symbol in tensor.dims]) for tensor in tensors
        ]
        inputs = len(func.args)
        func.function_type = FunctionType.from_lists(types[:inputs], types[inputs:])
        for argument, type_ in zip(tuple(func.args), types, strict=False):
            _retype(argument, type_)

    def _bind(self, type_: Attribute, sizes: Sequence[int]) -> Attribute:
        scalar = element(type_)
        if isinstance(scalar, DTypeParam):
            tag = {"D": self.data, "P": self.weight}.get(scalar.symbol.data, "")
            if not tag:
                raise LoweringError(f'specialize: no dtype given for the program\'s !moe.dtype<"{scalar.symbol.data}">')
            scalar = dtype(tag).mlir
        if isinstance(type_, MemRefType):
            return MemRefType(scalar, sizes)
        return TensorType(scalar, sizes) if isinstance(type_, TensorType) else scalar


def _retype(value: SSAValue, type_: Attribute) -> None:
    if value.type != type_:
        hint = value.name_hint
        Rewriter.replace_value_with_new_type(value, type_).name_hint = hint


def _infer_shapes(func: FuncOp) -> None:
    """Static sizes flow forward from operands to results, then back from the results of the function."""
    ops = list(func.body.block.ops)
    for op in ops:
        if isinstance(op, ShapedOp):
            _refine(op.result, op.result_shape())
    last = ops[-1]
    for value, type_ in zip(last.operands, func.function_type.outputs, strict=True):
        _refine(value, shape(type_))
    for op in reversed(ops):
        if isinstance(op, SelectSlotsOp | CastOp):
            _refine(op.operands[0], shape(op.result.type))


def _refine(value: SSAValue, sizes: tuple[int, ...]) -> None:
    if not isinstance(value, OpResult) or not isinstance(value.type, TensorType):
        return
    known = zip(shape(value.type), sizes, strict=True)
    merged = tuple(new if old == DYNAMIC_INDEX else old for old, new in known)
    _retype(value, TensorType(element(value.type), merged))
