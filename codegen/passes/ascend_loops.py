"""How the Ascend target reads a slot-level program: its two stages, their leaves, what feeds what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..dialect.slot import (
    ForSlotsOp,
    ForTokensOp,
    IfOp,
    InRangeOp,
    LoadIndexOp,
    LoadRowOp,
    LoadScalarOp,
    SlotOp,
    StoreRowOp,
    StoreScalarOp,
    ZeroOp,
)
from ..dialect.tensor import CastOp, RowDotOp, RowwiseOp, ScaleRowsOp
from ..dialect.types import element, shape
from ..errors import LoweringError


@dataclass(frozen=True)
class Leaf:
    """The operations of one outcome of the predicates of a stage."""

    known: Mapping[SSAValue, bool]
    ops: tuple[Operation, ...]


@dataclass(frozen=True)
class Stage:
    """What is done once for each token, or once for each slot."""

    level: str
    """``token`` or ``slot``."""
    block: Block
    leaves: tuple[Leaf, ...]
    predicates: tuple[InRangeOp, ...]

    @property
    def ops(self) -> Iterator[Operation]:
        """The operations of all leaves."""
        return (op for leaf in self.leaves for op in leaf.ops)


@dataclass(frozen=True)
class Loops:
    """The loops of a program. Without a loop over slots, each token counts as its one slot."""

    tokens: ForTokensOp
    slots: ForSlotsOp | None
    token_stage: Stage | None
    slot_stage: Stage

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In the order in which they run."""
        return (self.slot_stage,) if self.token_stage is None else (self.token_stage, self.slot_stage)

    def level(self, at: SSAValue) -> str:
        """Whether a position counts tokens or slots."""
        if self.slots is not None and at is self.tokens.induction:
            return "token"
        return "slot"

    def is_position(self, at: SSAValue) -> bool:
        """Whether a row or element is at the place of its own token or slot, so that neighbours follow it."""
        return at is self.tokens.induction or isinstance(at.owner, SlotOp)


def read_loops(func: FuncOp) -> Loops:
    """The stages of a function after split-inactive; LoweringError where it has another form."""
    tokens = next((op for op in func.body.block.ops if isinstance(op, ForTokensOp)), None)
    if tokens is None:
        raise LoweringError("plan-ascend: the program has no loop over tokens; fuse-slots must run first")
    slots = next((op for op in tokens.walk() if isinstance(op, ForSlotsOp)), None)
    if slots is None:
        return Loops(tokens, None, None, _stage("slot", tokens.body.block))
    if slots.parent is not tokens.body.block:
        raise LoweringError("plan-ascend: no form for a program that drops whole tokens and has several slots a token")
    return Loops(tokens, slots, _stage("token", tokens.body.block), _stage("slot", slots.body.block))


def _stage(level: str, block: Block) -> Stage:
    predicates = tuple(op for op in block.ops if isinstance(op, InRangeOp))
    return Stage(level, block, tuple(_leaves(block, {})), predicates)


def _leaves(block: Block, known: Mapping[SSAValue, bool]) -> Iterator[Leaf]:
    branch = next((op for op in block.ops if isinstance(op, IfOp)), None)
    if branch is None:
        yield Leaf(known, tuple(op for op in block.ops if not isinstance(op, ForSlotsOp)))
        return
    yield from _leaves(branch.then.block, {**known, branch.condition: True})
    otherwise = {**known, branch.condition: False}
    if branch.otherwise is None:
        yield Leaf(otherwise, ())
    else:
        yield from _leaves(branch.otherwise.block, otherwise)


def sink_to_uses(leaf: Leaf) -> None:
    """Moves each operation to its first use, so that few rows are alive at once. All but stores are pure."""
    order: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in order:
            return
        for operand in op.operands:
            if operand.owner in leaf.ops:
                assert isinstance(operand.owner, Operation)
                visit(operand.owner)
        order[op] = None

    roots = [op for op in leaf.ops if isinstance(op, StoreRowOp | RowDotOp | StoreScalarOp)]
    for op in (*roots, *leaf.ops):
        visit(op)
    for previous, op in pairwise(order):
        op.detach()
        block = previous.parent
        assert block is not None
        block.insert_op_after(op, previous)


def is_row(value: SSAValue) -> bool:
    """Whether a value is a row."""
    return bool(shape(value.type))


def computes_row(op: Operation) -> bool:
    """Whether a vector instruction works for the operation: a row of results, or the product of a dot."""
    return isinstance(op, RowwiseOp) and (isinstance(op, RowDotOp) or is_row(op.results[0]))


def is_void_dot(op: Operation) -> bool:
    """A dot with a row of zeros is zero."""
    return isinstance(op, RowDotOp) and any(isinstance(operand.owner, ZeroOp) for operand in op.operands)


def scalar_source(value: SSAValue) -> LoadScalarOp | RowDotOp:
    """Where the fp32 scalar of a scaled row comes from: a weight, widened, or a finished sum."""
    owner = value.owner
    if isinstance(owner, CastOp) and isinstance(element(owner.result.type), Float32Type):
        return scalar_source(owner.value)
    if not isinstance(owner, LoadScalarOp | RowDotOp):
        name = owner.name if isinstance(owner, Operation) else "an argument"
        of = value.name_hint or "value"
        raise LoweringError(
            f"plan-ascend: %{of}: rows are scaled by weights or unrounded sums, got the result of {name}"
        )
    return owner


def reads_sums(loops: Loops) -> bool:
    """Whether a row is scaled by a finished sum, so that rows must be in UB whole."""
    scaled = [op for stage in loops.stages for op in stage.ops if isinstance(op, ScaleRowsOp)]
    return any(isinstance(scalar_source(op.scales), RowDotOp) for op in scaled)


def sum_source(store: StoreScalarOp) -> RowDotOp | None:
    """The dot whose rounded sum is stored; None for a zero."""
    value = store.value
    while isinstance(value.owner, CastOp):
        value = value.owner.value
    if isinstance(value.owner, ZeroOp):
        return None
    if not isinstance(value.owner, RowDotOp):
        raise LoweringError(
            f"plan-ascend: {store.name}: only the sum of moe.row_dot or zero can be stored, got %{value.name_hint}"
        )
    return value.owner


def loads(stage: Stage) -> list[tuple[SSAValue, SSAValue]]:
    """Every (buffer, position) of loaded rows of a stage, once, in order."""
    return list(dict.fromkeys((op.buffer, op.at) for op in stage.ops if isinstance(op, LoadRowOp)))


def block_reads(loops: Loops) -> list[tuple[SSAValue, str]]:
    """Every buffer of indices or weights that is read by elements, with its level."""
    found: dict[tuple[SSAValue, str], None] = {}
    for op in loops.tokens.walk():
        if isinstance(op, LoadIndexOp | LoadScalarOp):
            if not loops.is_position(op.at):
                raise LoweringError(f"plan-ascend: {op.name}: elements are read at their token or slot only")
            found[op.buffer, loops.level(op.at)] = None
    return list(found)


def argument_number(value: SSAValue) -> int:
    """Position of a buffer among the arguments of the function."""
    assert isinstance(value, BlockArgument)
    return value.index
