"""Tensor level: the mathematics of a mode, in value semantics.

Slots are token-major: slot i belongs to token i // topK. The row-wise operations at the end are
used at both levels: on (slots, hidden) tensors here, on single rows of (hidden,) at slot level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from .types import (
    compatible,
    element,
    expect_count,
    expect_float,
    expect_index,
    expect_rows,
    expect_same_element,
    expect_same_shape,
    fail,
    is_float,
    is_predicate,
    shape,
)


class ShapedOp(IRDLOperation, ABC):
    """An operation whose result shape follows from its operands (for `specialize`)."""

    result = result_def(AnyAttr())

    traits = traits_def(Pure())

    @abstractmethod
    def result_shape(self) -> tuple[int, ...]:
        """Shape that the operands give the result; DYNAMIC_INDEX where they leave it open."""

    def check_result(self) -> None:
        """The declared result must be a float tensor (or scalar) of the inferred shape."""
        inferred, declared = self.result_shape(), shape(self.result.type)
        if len(inferred) != len(declared) or not all(map(compatible, inferred, declared)):
            dims = "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in inferred)
            raise fail(self, "result", self.result, f"of shape {dims or 'scalar'}")
        if not is_float(element(self.result.type)):
            raise fail(self, "result", self.result, "of element type f16, bf16, f32 or !moe.dtype")


class RowwiseOp(ShapedOp, ABC):
    """Works on each row alone: `fuse-slots` moves it into the loop over tokens or slots as it is."""


@irdl_op_definition
class RepeatRowsOp(ShapedOp):
    """Row t of `rows` for each of the topK slots of token t: (R, H) -> (N, H)."""

    name = "moe.repeat_rows"

    rows = operand_def(AnyAttr())
    """(R, H), one row a token."""
    topk = opt_prop_def(IntegerAttr[I64])
    """Slots a token; absent while it is not bound."""

    assembly_format = "$rows (`topk` $topk^)? attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        tokens, hidden = shape(self.rows.type)
        if tokens == DYNAMIC_INDEX or self.topk is None:
            return (DYNAMIC_INDEX, hidden)
        return (tokens * self.topk.value.data, hidden)

    def verify_(self) -> None:
        expect_rows(self, "rows", self.rows, rank=2)
        expect_rows(self, "result", self.result, rank=2)
        if self.topk is not None and self.topk.value.data < 1:
            raise fail(self, "topk", self.topk, "at least 1")
        tokens, slots = shape(self.rows.type)[0], shape(self.result.type)[0]
        if DYNAMIC_INDEX not in (tokens, slots) and (slots % tokens if tokens else slots):
            raise fail(self, "result", self.result, f"of a number of slots that {tokens} tokens divide")
        self.check_result()
        expect_same_element(self, "result", self.result, self.rows, "rows")


@irdl_op_definition
class GatherRowsOp(ShapedOp):
    """Row index[i] of `table` for slot i; a row of +0 where index[i] is outside the table."""

    name = "moe.gather_rows"

    table = operand_def(AnyAttr())
    """(M, H)"""
    index = operand_def(AnyAttr())
    """(N,) or (R, K) of i32"""

    assembly_format = "$table `at` $index attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        index = shape(self.index.type)
        return (index[0] if len(index) == 1 else _slots(index), shape(self.table.type)[1])

    def verify_(self) -> None:
        expect_rows(self, "table", self.table, rank=2)
        expect_index(self, "index", self.index)
        self.check_result()
        expect_same_element(self, "result", self.result, self.table, "table")


@irdl_op_definition
class ScatterRowsOp(ShapedOp):
    """Puts row i of `rows` at row index[i] of the result, which has `extent` rows.

    Slots whose index is outside [0, extent) are dropped; rows that no slot names are +0. Indices
    inside are distinct by contract.
    """

    name = "moe.scatter_rows"

    rows = operand_def(AnyAttr())
    """(N, H)"""
    index = operand_def(AnyAttr())
    """(N,) or (R, K) of i32"""
    extent = prop_def(StringAttr)
    """Symbol of the number of rows of the result."""

    assembly_format = "$rows `to` $index `rows` $extent attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        return (DYNAMIC_INDEX, shape(self.rows.type)[1])

    def verify_(self) -> None:
        expect_rows(self, "rows", self.rows, rank=2)
        expect_index(self, "index", self.index)
        expect_count(self, "index", self.index, shape(self.rows.type)[0], "rows")
        self.check_result()
        expect_same_element(self, "result", self.result, self.rows, "rows")


@irdl_op_definition
class ActiveSlotsOp(ShapedOp):
    """Whether slot i names a row: 0 <= index[i] < extent."""

    name = "moe.active_slots"

    index = operand_def(AnyAttr())
    """(N,) or (R, K) of i32"""
    extent = prop_def(StringAttr)
    """Symbol of the number of rows."""

    assembly_format = "$index `in` $extent attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        return shape(self.index.type)

    def verify_(self) -> None:
        expect_index(self, "index", self.index)
        expect_same_shape(self, "result", self.result, self.index, "index")
        if not is_predicate(self.result.type):
            raise fail(self, "result", self.result, "of element type i1")


@irdl_op_definition
class CastOp(RowwiseOp):
    """Widens exactly, or rounds once to nearest even; NaN stays NaN, overflow gives infinity."""

    name = "moe.cast"

    value = operand_def(AnyAttr())
    """Any shape"""

    assembly_format = "$value attr-dict `:` functional-type(operands, results)"

    def __init__(self, value: SSAValue | Operation, to: Attribute):
        value = SSAValue.get(value)
        type_ = TensorType(to, shape(value.type)) if isinstance(value.type, TensorType) else to
        super().__init__(operands=[value], result_types=[type_])

    def result_shape(self) -> tuple[int, ...]:
        return shape(self.value.type)

    def verify_(self) -> None:
        expect_float(self, "value", self.value)
        self.check_result()


@irdl_op_definition
class ScaleRowsOp(RowwiseOp):
    """Row i times scales[i], computed in fp32 and rounded once to the type of the result."""

    name = "moe.scale_rows"

    rows = operand_def(AnyAttr())
    """(N, H), or (H,)"""
    scales = operand_def(AnyAttr())
    """(N,) or (R, K), or a scalar"""

    assembly_format = "$rows `by` $scales attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        return shape(self.rows.type)

    def verify_(self) -> None:
        expect_rows(self, "rows", self.rows)
        expect_float(self, "scales", self.scales)
        rows = shape(self.rows.type)
        if (len(rows) == 1) != (not isinstance(self.scales.type, TensorType)):
            raise fail(self, "scales", self.scales, "a scalar for a single row, a tensor for many")
        if len(rows) == 2:
            if len(shape(self.scales.type)) not in (1, 2):
                raise fail(self, "scales", self.scales, "a tensor of rank 1 or 2")
            expect_count(self, "scales", self.scales, rows[0], "rows")
        self.check_result()


class _ElementwiseOp(RowwiseOp, ABC):
    """Two operands of one shape, computed in fp32 and rounded once to the type of the result."""

    lhs = operand_def(AnyAttr())
    """(N, H), or (H,)"""
    rhs = operand_def(AnyAttr())
    """As lhs"""

    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        return shape(self.lhs.type)

    def verify_(self) -> None:
        expect_rows(self, "lhs", self.lhs)
        expect_rows(self, "rhs", self.rhs)
        expect_same_shape(self, "rhs", self.rhs, self.lhs, "lhs")
        self.check_result()


@irdl_op_definition
class AddRowsOp(_ElementwiseOp):
    """lhs + rhs"""

    name = "moe.add_rows"


@irdl_op_definition
class SubRowsOp(_ElementwiseOp):
    """lhs - rhs"""

    name = "moe.sub_rows"


@irdl_op_definition
class MulRowsOp(_ElementwiseOp):
    """lhs * rhs"""

    name = "moe.mul_rows"


@irdl_op_definition
class RowDotOp(RowwiseOp):
    """Sum over the hidden dimension of lhs * rhs, accumulated in fp32: one value a row."""

    name = "moe.row_dot"

    lhs = operand_def(AnyAttr())
    """(N, H), or (H,)"""
    rhs = operand_def(AnyAttr())
    """As lhs"""
    lanes = opt_prop_def(IntegerAttr[I64])
    """Partial sums of the canonical order, set by the plan of a target: lane l adds elements
    l, l + lanes, ...; then lane l adds lane l + lanes/2, and so on by halves."""

    assembly_format = "$lhs `,` $rhs (`lanes` $lanes^)? attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        declared = shape(self.result.type)
        rows = shape(self.lhs.type)[:-1]
        return declared if len(declared) == 2 and len(rows) == 1 else rows

    def verify_(self) -> None:
        expect_rows(self, "lhs", self.lhs)
        expect_rows(self, "rhs", self.rhs)
        expect_same_shape(self, "rhs", self.rhs, self.lhs, "lhs")
        rows = shape(self.lhs.type)
        if len(rows) == 2:
            if len(shape(self.result.type)) not in (1, 2):
                raise fail(self, "result", self.result, "a tensor of rank 1 or 2")
            expect_count(self, "result", self.result, rows[0], "lhs")
        if self.lanes is not None and self.lanes.value.data.bit_count() != 1:
            raise fail(self, "lanes", self.lanes, "a power of two")
        self.check_result()


@irdl_op_definition
class SelectSlotsOp(RowwiseOp):
    """The value where the slot is active, +0 elsewhere. Never a multiplication."""

    name = "moe.select_slots"

    value = operand_def(AnyAttr())
    """Rows or one value a slot"""
    active = operand_def(AnyAttr())
    """(N,) or (R, K) of i1, or a scalar i1"""

    assembly_format = "$value `where` $active attr-dict `:` functional-type(operands, results)"

    def result_shape(self) -> tuple[int, ...]:
        return shape(self.value.type)

    def verify_(self) -> None:
        if not is_predicate(self.active.type):
            raise fail(self, "active", self.active, "of element type i1")
        expect_float(self, "value", self.value)
        if isinstance(self.active.type, TensorType):
            slots = shape(self.value.type)
            leading = slots[0] if _is_rows(self.value, self.active) else _slots(slots)
            expect_count(self, "active", self.active, leading, "value")
        self.check_result()
        expect_same_element(self, "result", self.result, self.value, "value")


def _slots(sizes: tuple[int, ...]) -> int:
    """Number of slots of a (N,) or (R, K) shape."""
    if DYNAMIC_INDEX in sizes:
        return DYNAMIC_INDEX
    return sizes[0] if len(sizes) == 1 else sizes[0] * sizes[1]


def _is_rows(value: SSAValue, active: SSAValue) -> bool:
    """Whether a rank-2 value holds rows (N, H) rather than weights (R, K), for static shapes."""
    sizes = shape(value.type)
    return len(sizes) == 2 and _slots(shape(active.type)) == sizes[0]


TENSOR_OPS: list[type[Operation]] = [
    RepeatRowsOp,
    GatherRowsOp,
    ScatterRowsOp,
    ActiveSlotsOp,
    CastOp,
    ScaleRowsOp,
    AddRowsOp,
    SubRowsOp,
    MulRowsOp,
    RowDotOp,
    SelectSlotsOp,
]
