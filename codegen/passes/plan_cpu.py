"""plan-cpu: what a CPU kernel decides, row loops, lanes and the store policy.

Row operations that need no finished sum of one another run in one pass over the hidden dimension
(`moe.row_loop`). Loaded rows stay where they are, in memory and cache; what is computed from them
lives in registers only and is computed again in each row loop that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce

from ..dialect.slot import (
    ForSlotsOp,
    ForTokensOp,
    IfOp,
    LoadIndexOp,
    LoadRowOp,
    PairSlotsOp,
    RowLoopOp,
    SlotOp,
    StoreRowOp,
    YieldOp,
    ZeroOp,
)
from ..dialect.tensor import RowDotOp, RowwiseOp
from ..dialect.types import element, shape
from ..dtypes import DTYPES, from_mlir
from ..parsing import function
from ..signature import signature
from .pair_slots import pair_slots

PLAN = "moe.cpu_plan"
PREFETCH = "moe.prefetch_next"


@dataclass(frozen=True)
class PlanCpuPass(ModulePass):
    """Groups row operations into row loops and writes the plan to the function."""

    name = "plan-cpu"

    lanes: int = 32
    """fp32 partial sums of a dot: with 32, a sum of H products is within (H/32 + 12) * 2^-24 of
    the sum of their magnitudes (H/32 additions in a lane, 5 to join the lanes, 2 before them)."""
    store: str = "auto"
    """``cached``: plain stores. ``stream``: around the caches. ``auto``: stream when the output is larger
    than its part of the last-level cache, which the kernel sees at run time."""

    stream_part: int = 4
    """The output's part is one in this many: as much again is read, and others want some of the cache."""

    pairs: bool = True
    """Whether even and odd elements of bf16 rows go to registers of their own, where all rows are bf16. Vectors are
    at most 512 bits then, which saves instructions; else 256, which move memory no slower and convert fp16 faster."""

    slots: int = 2
    """How many slots of a token go through the hidden dimension at once, 1 or 2. Two read the token's gradient row
    once, and keep more rows on their way from and to memory."""

    prefetch: bool = True
    """Whether a pass over a gathered row asks for the row of the next slot: rows come in an order
    that no processor foresees."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        func = function(op)
        slots = pair_slots(func) if self.slots == 2 else 1
        bodies = [inner for inner in func.walk() if isinstance(inner, ForTokensOp | ForSlotsOp | IfOp | PairSlotsOp)]
        for block in [region.block for body in bodies for region in body.regions]:
            self._form_row_loops(block)
        dce(op)
        if self.prefetch:
            _mark_prefetched(func)
        pairs = self.pairs and _all_bf16(func)
        func.attributes[PLAN] = DictionaryAttr(
            {
                "lanes": IntegerAttr(self.lanes, i64),
                "order": StringAttr("pairs" if pairs else "plain"),
                "vector_bits": IntegerAttr(512 if pairs else 256, i64),
                "slots": IntegerAttr(slots, i64),
                "store": StringAttr(self.store if _stores_rows(func) else "cached"),
                "stream_above": StringAttr(f"cache/{self.stream_part}"),
                "parallel": StringAttr("tokens"),
            }
        )

    def _form_row_loops(self, block: Block) -> None:
        depths = _depths(block)
        for depth in sorted({depths[op] for op in block.ops if _is_root(op)}):
            roots = [op for op in block.ops if _is_root(op) and depths[op] == depth]
            self._row_loop(roots, block, depths)

    def _row_loop(self, roots: Sequence[Operation], block: Block, depths: dict[Operation, int]) -> None:
        """Moves the roots of one depth, with copies of what they compute from, into a loop."""
        body, mapper = Block(), dict[SSAValue, SSAValue]()
        for root in roots:
            for op in _row_slice(root):
                if op.results[0] not in mapper:
                    copy = op.clone(mapper)
                    copy.results[0].name_hint = op.results[0].name_hint
                    body.add_op(copy)
        dots = [root for root in roots if isinstance(root, RowDotOp)]
        loop = RowLoopOp(body, [dot.result.type for dot in dots])
        block.insert_op_after(loop, _last_input(roots, block))
        for dot, total in zip(dots, loop.sums, strict=True):
            total.name_hint = dot.result.name_hint
            dot.result.replace_all_uses_with(total)
            dot.lanes = IntegerAttr(self.lanes, i64)
        for root in roots:
            root.detach()
            body.add_op(root)
            for position, operand in enumerate(root.operands):
                root.operands[position] = mapper.get(operand, operand)
        body.add_op(YieldOp(*(dot.result for dot in dots)))
        depths[loop] = depths[roots[0]]
        _sink_readers(loop, block)


def _mark_prefetched(func: FuncOp) -> None:
    """Marks every row whose successor can be known ahead where the processor does not foresee it.

    That is the row which an index buffer names, and with a loop over slots the token's own: so much is read between
    it and the next that its stream is forgotten. The mark tells how many slots (or tokens) after the last one that is
    at work the successor comes: of two slots at once the first asks for the next, the second for the one behind it.
    """
    tokens = [loop.induction for loop in func.walk() if isinstance(loop, ForTokensOp) and _has_slots(loop)]
    for op in func.walk():
        if isinstance(op, LoadRowOp) and (isinstance(op.at.owner, LoadIndexOp) or op.at in tokens):
            op.attributes[PREFETCH] = IntegerAttr(2 if _is_second(op) else 1, i64)


def _is_second(op: LoadRowOp) -> bool:
    """Whether a row belongs to the second of two slots at once."""
    index, pair = op.at.owner, op.parent_op()
    slot = index.at.owner if isinstance(index, LoadIndexOp) else None
    return isinstance(pair, PairSlotsOp) and isinstance(slot, SlotOp) and slot.slot is pair.both.block.args[-1]


def _has_slots(loop: ForTokensOp) -> bool:
    return any(isinstance(op, ForSlotsOp) for op in loop.body.block.ops)


def _all_bf16(func: FuncOp) -> bool:
    """Whether every row in memory is bf16: lanes in pairs go with one another only."""
    loaded = [op.result.type for op in func.walk() if isinstance(op, LoadRowOp)]
    stored = [op.buffer.type for op in func.walk() if isinstance(op, StoreRowOp)]
    return {from_mlir(element(rows)) for rows in (*loaded, *stored)} == {DTYPES["bf16"]}


def _is_root(op: Operation) -> bool:
    return isinstance(op, StoreRowOp | RowDotOp)


def _is_row_value(op: Operation) -> bool:
    """Whether the operation computes a row in registers."""
    return isinstance(op, RowwiseOp | ZeroOp) and not isinstance(op, RowDotOp) and bool(shape(op.results[0].type))


def _depths(block: Block) -> dict[Operation, int]:
    """Number of sums that must be finished before an operation, along its longest chain."""
    depths: dict[Operation, int] = {}
    for op in block.ops:
        before = [_owner(operand, block) for operand in op.operands]
        inputs = [depths[owner] + isinstance(owner, RowDotOp) for owner in before if owner is not None]
        depths[op] = max(inputs, default=0)
    return depths


def _owner(value: SSAValue, block: Block) -> Operation | None:
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is block else None


def _row_slice(root: Operation) -> list[Operation]:
    """The row values that `root` is computed from, operands first, up to loaded rows."""
    found: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and _is_row_value(owner) and owner not in found:
                visit(owner)
                found[owner] = None

    visit(root)
    return list(found)


def _last_input(roots: Sequence[Operation], block: Block) -> Operation:
    """The last root in the block: all that the loop reads stands before it."""
    positions = {op: position for position, op in enumerate(block.ops)}
    return max(roots, key=lambda root: positions[root])


def _sink_readers(loop: RowLoopOp, block: Block) -> None:
    """Moves users of the loop's sums that stand before it behind it, in their order."""
    ops = list(block.ops)
    moved: list[Operation] = []
    sums: set[SSAValue] = set(loop.sums)
    for op in ops[: ops.index(loop)]:
        if any(operand in sums for operand in op.operands):
            moved.append(op)
            sums |= set(op.results)
    anchor: Operation = loop
    for op in moved:
        op.detach()
        block.insert_op_after(op, anchor)
        anchor = op


def _stores_rows(func: FuncOp) -> bool:
    return any(tensor.output and tensor.is_rows for tensor in signature(func))


__all__ = ["PLAN", "PREFETCH", "PlanCpuPass"]
