"""Slot level: one loop over tokens, one over the topK slots of a token, rows as values.

Tensors of the function become buffers (memref); a row is a rank-1 tensor; the row-wise operations
of the tensor level work on rows unchanged. Sizes are named by symbols, as in ``moe.dims``; those
that are bound stand in the function's ``moe.sizes``.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, TensorType, i1, i32
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, Pure

from .types import compatible, element, expect_float, fail, is_float, shape


class _LoopOp(IRDLOperation, ABC):
    """``op %i in "SYMBOL" { ... }``: runs its body for every index below the size of the symbol."""

    extent = prop_def(StringAttr)
    """Symbol of the number of iterations."""
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, extent: str, hint: str):
        block = Block(arg_types=[IndexType()])
        block.args[0].name_hint = hint
        super().__init__(properties={"extent": StringAttr(extent)}, regions=[Region(block)])

    @property
    def induction(self) -> SSAValue:
        """The loop index."""
        return self.body.block.args[0]

    @classmethod
    def parse(cls, parser: Parser) -> _LoopOp:
        induction = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        extent = parser.parse_str_literal("the symbol of the loop's extent")
        body = parser.parse_region([induction.resolve(IndexType())])
        op = cls.create(properties={"extent": StringAttr(extent)}, regions=[body])
        assert isinstance(op, _LoopOp)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction)
        printer.print_string(f' in "{self.extent.data}" ')
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != 1 or not isinstance(args[0].type, IndexType):
            raise fail(self, "body", _types(args), "a block with one argument of type index")


def _types(values: Sequence[SSAValue]) -> str:
    return ", ".join(str(value.type) for value in values) or "none"


@irdl_op_definition
class ForTokensOp(_LoopOp):
    """The loop over tokens. Its iterations are independent: a target may run them in parallel."""

    name = "moe.for_tokens"

    def __init__(self, extent: str):
        super().__init__(extent, "t")


@irdl_op_definition
class ForSlotsOp(_LoopOp):
    """The loop over the slots of one token."""

    name = "moe.for_slots"

    def __init__(self, extent: str):
        super().__init__(extent, "k")


@irdl_op_definition
class SlotOp(IRDLOperation):
    """Number of slot k of token t: t * topK + k, with topK the extent of the loop over slots."""

    name = "moe.slot"

    token = operand_def(IndexType)
    slot = operand_def(IndexType)
    topk = prop_def(StringAttr)
    """Symbol of topK."""
    result = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$token `,` $slot `of` $topk attr-dict"

    def __init__(self, token: SSAValue, slot: SSAValue, topk: str):
        super().__init__(operands=[token, slot], properties={"topk": StringAttr(topk)}, result_types=[IndexType()])
        self.result.name_hint = "slot"


def _expect_buffer(op: Operation, operand: str, value: SSAValue, ranks: Sequence[int]) -> None:
    if not isinstance(value.type, MemRefType) or len(shape(value.type)) not in ranks:
        raise fail(op, operand, value, f"a memref of rank {' or '.join(map(str, ranks))}")


@irdl_op_definition
class LoadIndexOp(IRDLOperation):
    """Element `at` (row-major) of an index buffer, sign-extended."""

    name = "moe.load_index"

    buffer = operand_def(AnyAttr())
    """(N,) or (R, K) of i32"""
    at = operand_def(IndexType)
    result = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $at `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, at: SSAValue):
        super().__init__(operands=[buffer, at], result_types=[IndexType()])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (1, 2))
        if element(self.buffer.type) != i32:
            raise fail(self, "buffer", self.buffer, "of element type i32")


@irdl_op_definition
class InRangeOp(IRDLOperation):
    """Whether 0 <= row < extent."""

    name = "moe.in_range"

    row = operand_def(IndexType)
    extent = prop_def(StringAttr)
    """Symbol of the number of rows."""
    result = result_def(i1)

    traits = traits_def(Pure())
    assembly_format = "$row `of` $extent attr-dict"

    def __init__(self, row: SSAValue, extent: str):
        super().__init__(operands=[row], properties={"extent": StringAttr(extent)}, result_types=[i1])
        self.result.name_hint = "active"


@irdl_op_definition
class LoadRowOp(IRDLOperation):
    """Row `at` of a buffer; with a guard that is false, a row of +0, and nothing is read."""

    name = "moe.load_row"

    buffer = operand_def(AnyAttr())
    """(rows, H)"""
    at = operand_def(IndexType)
    guard = opt_operand_def(i1)
    result = result_def(AnyAttr())
    """(H,)"""

    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $at `]` (`if` $guard^)? attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, at: SSAValue, guard: SSAValue | None = None):
        row = TensorType(element(buffer.type), [shape(buffer.type)[1]])
        super().__init__(operands=[buffer, at, guard], result_types=[row])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (2,))
        expect_float(self, "buffer", self.buffer)
        _expect_row(self, "result", self.result, self.buffer)


@irdl_op_definition
class StoreRowOp(IRDLOperation):
    """Writes a row at row `at` of a buffer; with a guard that is false, nothing."""

    name = "moe.store_row"

    row = operand_def(AnyAttr())
    """(H,)"""
    buffer = operand_def(AnyAttr())
    """(rows, H)"""
    at = operand_def(IndexType)
    guard = opt_operand_def(i1)

    assembly_format = "$row `,` $buffer `[` $at `]` (`if` $guard^)? attr-dict `:` type($row) `,` type($buffer)"

    def __init__(self, row: SSAValue, buffer: SSAValue, at: SSAValue, guard: SSAValue | None = None):
        super().__init__(operands=[row, buffer, at, guard])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (2,))
        _expect_row(self, "row", self.row, self.buffer)


def _expect_row(op: Operation, operand: str, row: SSAValue, buffer: SSAValue) -> None:
    if not isinstance(row.type, TensorType) or len(shape(row.type)) != 1:
        raise fail(op, operand, row, "a tensor of rank 1")
    same_size = compatible(shape(row.type)[0], shape(buffer.type)[1])
    if not same_size or element(row.type) != element(buffer.type):
        raise fail(op, operand, row, f"one row of 'buffer', {buffer.type}")


@irdl_op_definition
class LoadScalarOp(IRDLOperation):
    """Element `at` (row-major) of a buffer of weights."""

    name = "moe.load_scalar"

    buffer = operand_def(AnyAttr())
    at = operand_def(IndexType)
    result = result_def(AnyAttr())

    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $at `]` attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, at: SSAValue):
        super().__init__(operands=[buffer, at], result_types=[element(buffer.type)])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (1, 2))
        if not is_float(self.result.type) or element(self.buffer.type) != self.result.type:
            raise fail(self, "result", self.result, f"one element of 'buffer', {self.buffer.type}")


@irdl_op_definition
class StoreScalarOp(IRDLOperation):
    """Writes element `at` (row-major) of a buffer of weights."""

    name = "moe.store_scalar"

    value = operand_def(AnyAttr())
    buffer = operand_def(AnyAttr())
    at = operand_def(IndexType)

    assembly_format = "$value `,` $buffer `[` $at `]` attr-dict `:` type($value) `,` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue, at: SSAValue):
        super().__init__(operands=[value, buffer, at])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (1, 2))
        if element(self.buffer.type) != self.value.type:
            raise fail(self, "value", self.value, f"one element of 'buffer', {self.buffer.type}")


@irdl_op_definition
class ZeroOp(IRDLOperation):
    """A row or a scalar of +0."""

    name = "moe.zero"

    result = result_def(AnyAttr())

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type_: Attribute):
        super().__init__(result_types=[type_])

    def verify_(self) -> None:
        if not is_float(element(self.result.type)):
            raise fail(self, "result", self.result, "of element type f16, bf16, f32 or !moe.dtype")


@irdl_op_definition
class ZeroUnnamedRowsOp(IRDLOperation):
    """Writes +0 to every row of a buffer that no element of an index buffer names."""

    name = "moe.zero_unnamed_rows"

    buffer = operand_def(AnyAttr())
    """(rows, H)"""
    index = operand_def(AnyAttr())
    """(N,) or (R, K) of i32"""

    assembly_format = "$buffer `,` $index attr-dict `:` type($buffer) `,` type($index)"

    def __init__(self, buffer: SSAValue, index: SSAValue):
        super().__init__(operands=[buffer, index])

    def verify_(self) -> None:
        _expect_buffer(self, "buffer", self.buffer, (2,))
        _expect_buffer(self, "index", self.index, (1, 2))
        if element(self.index.type) != i32:
            raise fail(self, "index", self.index, "of element type i32")


@irdl_op_definition
class IfOp(IRDLOperation):
    """One of two bodies. They yield nothing: what they compute, they store."""

    name = "moe.if"

    condition = operand_def(i1)
    then = region_def("single_block")
    otherwise = opt_region_def("single_block")

    traits = traits_def(NoTerminator())
    assembly_format = "$condition $then (`else` $otherwise^)? attr-dict"

    def __init__(self, condition: SSAValue, then: Block, otherwise: Block | None):
        second = None if otherwise is None else Region(otherwise)
        super().__init__(operands=[condition], regions=[Region(then), second])


@irdl_op_definition
class PairSlotsOp(IRDLOperation):
    """Runs two slots of a token at once: ``moe.pair_slots %k alone %a { ... } both %a, %b { ... }``.

    Within one run of the loop over slots, each second slot that comes here runs `both` with the one before it,
    the earlier first. One that is left over runs `alone` when the loop has ended.
    """

    name = "moe.pair_slots"

    slot = operand_def(IndexType)
    alone = region_def("single_block")
    both = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, slot: SSAValue, alone: Block, both: Block):
        super().__init__(operands=[slot], regions=[Region(alone), Region(both)])

    @classmethod
    def parse(cls, parser: Parser) -> PairSlotsOp:
        slot = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        blocks: list[Block] = []
        for keyword in ("alone", "both"):
            parser.parse_keyword(keyword)
            names = parser.parse_comma_separated_list(
                Parser.Delimiter.NONE, lambda: parser.parse_argument(expect_type=False)
            )
            region = parser.parse_region([name.resolve(IndexType()) for name in names])
            blocks.append(region.detach_block(region.block))
        return cls(slot, *blocks)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.slot)
        for keyword, region in (("alone", self.alone), ("both", self.both)):
            printer.print_string(f" {keyword} ")
            printer.print_list(region.block.args, printer.print_ssa_value)
            printer.print_string(" ")
            printer.print_region(region, print_entry_block_args=False)

    def verify_(self) -> None:
        for name, region, count in (("alone", self.alone, 1), ("both", self.both, 2)):
            args = region.block.args
            if len(args) != count or not all(isinstance(arg.type, IndexType) for arg in args):
                raise fail(self, name, _types(args), f"a block with {count} argument{'s' * (count > 1)} of type index")


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The values of a row loop."""

    name = "moe.yield"

    traits = traits_def(IsTerminator())


@irdl_op_definition
class RowLoopOp(IRDLOperation):
    """Row operations that run together in one pass over the hidden dimension; yields their dots."""

    name = "moe.row_loop"

    body = region_def("single_block")
    sums = var_result_def(AnyAttr())

    assembly_format = "$body attr-dict (`:` type($sums)^)?"

    def __init__(self, body: Block, sums: Sequence[Attribute]):
        super().__init__(regions=[Region(body)], result_types=[list(sums)])

    def verify_(self) -> None:
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise fail(self, "body", last.name if last else "nothing", "closed by moe.yield")
        if _types(last.arguments) != _types(self.sums):
            raise fail(self, "sums", _types(self.sums), f"of the types of moe.yield, {_types(last.arguments)}")


SLOT_OPS: list[type[Operation]] = [
    ForTokensOp,
    ForSlotsOp,
    SlotOp,
    LoadIndexOp,
    InRangeOp,
    LoadRowOp,
    StoreRowOp,
    LoadScalarOp,
    StoreScalarOp,
    ZeroOp,
    ZeroUnnamedRowsOp,
    IfOp,
    PairSlotsOp,
    YieldOp,
    RowLoopOp,
]

__all__ = [cls.__name__ for cls in SLOT_OPS] + ["SLOT_OPS"]
