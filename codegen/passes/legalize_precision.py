"""legalize-precision: arithmetic in fp32 only, with one explicit rounding where a result is narrower."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, TensorType, f32
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialect.tensor import CastOp, RowwiseOp, SelectSlotsOp
from ..dialect.types import element, is_predicate, shape
from ..parsing import function


@dataclass(frozen=True)
class LegalizePrecisionPass(ModulePass):
    """Widens the operands of every arithmetic operation to fp32 (exact), rounds its result once."""

    name = "legalize-precision"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        widened: dict[SSAValue, SSAValue] = {}
        for inner in list(function(op).body.block.ops):
            if isinstance(inner, RowwiseOp) and not isinstance(inner, CastOp | SelectSlotsOp):
                for position, operand in enumerate(inner.operands):
                    inner.operands[position] = _widen(operand, widened)
                _round_result(inner)


def _widen(value: SSAValue, widened: dict[SSAValue, SSAValue]) -> SSAValue:
    if isinstance(element(value.type), Float32Type) or is_predicate(value.type):
        return value
    if value not in widened:
        cast = CastOp(value, f32)
        cast.result.name_hint = f"{value.name_hint or 'value'}_f32"
        if isinstance(value, OpResult):
            Rewriter.insert_op(cast, InsertPoint.after(value.op))
        else:
            assert isinstance(value, BlockArgument)
            Rewriter.insert_op(cast, InsertPoint.at_start(value.block))
        widened[value] = cast.result
    return widened[value]


def _round_result(op: RowwiseOp) -> None:
    narrow = element(op.result.type)
    if isinstance(narrow, Float32Type):
        return
    hint = op.result.name_hint
    wide = TensorType(f32, shape(op.result.type)) if isinstance(op.result.type, TensorType) else f32
    result = Rewriter.replace_value_with_new_type(op.result, wide)
    result.name_hint = f"{hint or 'value'}_f32"
    cast = CastOp(result, narrow)
    cast.result.name_hint = hint
    Rewriter.insert_op(cast, InsertPoint.after(op))
    result.replace_uses_with_if(cast.result, lambda use: use.operation is not cast)
