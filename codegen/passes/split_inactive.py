"""split-inactive: one body for active slots and one for the others, instead of guards.

After it nothing is loaded, computed or stored for a slot that an index drops, and no target needs
predicated rows: guards and selects are gone, `moe.if` stands in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import dce

from ..dialect.slot import ForSlotsOp, ForTokensOp, IfOp, InRangeOp, LoadRowOp, StoreRowOp, ZeroOp
from ..dialect.tensor import AddRowsOp, CastOp, RowDotOp, SelectSlotsOp
from ..errors import LoweringError
from ..parsing import function

MAX_PREDICATES = 4
"""Bodies double with each predicate of a loop; more than this is a program that needs another form."""


@dataclass(frozen=True)
class SplitInactivePass(ModulePass):
    """Splits the body of each loop on its predicates, in the order in which they are computed."""

    name = "split-inactive"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [loop for loop in function(op).walk() if isinstance(loop, ForTokensOp | ForSlotsOp)]
        for loop in reversed(loops):  # inner loops first: splitting an outer one copies them
            _split_body(loop.body.block)
        dce(op)
        _drop_empty_branches(op)


def _split_body(block: Block) -> None:
    predicates = [op for op in block.ops if isinstance(op, InRangeOp)]
    if not predicates:
        return
    if len(predicates) > MAX_PREDICATES:
        raise LoweringError(f"split-inactive: at most {MAX_PREDICATES} predicates a loop, got {len(predicates)}")
    ops = list(block.ops)
    needed = _slice(predicates, block)
    guarded = [op for op in ops if op not in needed]
    for op in guarded:
        op.detach()
    block.add_op(_branch(predicates, guarded, {}))
    for op in reversed(guarded):
        op.erase(safe_erase=False)


def _drop_empty_branches(module: ModuleOp) -> None:
    """Where nothing is left to do for inactive slots there is no second body."""
    for op in [op for op in module.walk() if isinstance(op, IfOp)]:
        if op.otherwise is not None and not op.otherwise.block.ops:
            then = op.then.detach_block(op.then.block)
            Rewriter.replace_op(op, IfOp(op.condition, then, None))


def _slice(roots: Sequence[Operation], block: Block) -> set[Operation]:
    """The roots and all they depend on inside the block."""
    found: set[Operation] = set()
    work = list(roots)
    while work:
        op = work.pop()
        if op not in found:
            found.add(op)
            owners = (operand.owner for operand in op.operands)
            work.extend(owner for owner in owners if isinstance(owner, Operation) and owner.parent is block)
    return found


def _branch(predicates: Sequence[InRangeOp], ops: Sequence[Operation], known: Mapping[SSAValue, bool]) -> IfOp:
    first, rest = predicates[0], predicates[1:]
    blocks = []
    for truth in (True, False):
        decided = {**known, first.result: truth}
        block = Block()
        if rest:
            block.add_op(_branch(rest, ops, decided))
        else:
            _specialised(ops, decided, block)
        blocks.append(block)
    return IfOp(first.result, *blocks)


def _specialised(ops: Sequence[Operation], known: Mapping[SSAValue, bool], block: Block) -> None:
    """Copies the operations into `block`, with every predicate decided."""
    mapper: dict[SSAValue, SSAValue] = {}
    for op in ops:
        copy = _decide(op, known, mapper)
        if isinstance(copy, Operation):
            block.add_op(copy)
            for old, new in zip(op.results, copy.results, strict=True):
                mapper[old] = new
                new.name_hint = old.name_hint
        elif copy is not None:
            mapper[op.results[0]] = copy


def _decide(
    op: Operation, known: Mapping[SSAValue, bool], mapper: dict[SSAValue, SSAValue]
) -> Operation | SSAValue | None:
    """The operation with its guard decided: a copy, a value it forwards, or None where it vanishes."""
    if isinstance(op, SelectSlotsOp):
        active = known.get(op.active)
        if active is None:
            return op.clone(mapper)
        return mapper.get(op.value, op.value) if active else ZeroOp(op.result.type)
    if isinstance(op, LoadRowOp | StoreRowOp) and op.guard is not None and op.guard in known:
        if known[op.guard]:
            return _without_guard(op, mapper)
        return ZeroOp(op.result.type) if isinstance(op, LoadRowOp) else None
    return _fold_zero(op, mapper) or op.clone(mapper)


def _fold_zero(op: Operation, mapper: dict[SSAValue, SSAValue]) -> Operation | SSAValue | None:
    """A cast of zero is zero; adding it changes nothing but the sign of a zero, which no sum can see."""
    zeros = [isinstance(mapper.get(operand, operand).owner, ZeroOp) for operand in op.operands]
    if isinstance(op, CastOp) and zeros[0]:
        return ZeroOp(op.result.type)
    if isinstance(op, AddRowsOp) and any(zeros) and all(isinstance(u.operation, RowDotOp) for u in op.result.uses):
        kept = op.operands[1 if zeros[0] else 0]
        return mapper.get(kept, kept)
    return None


def _without_guard(op: LoadRowOp | StoreRowOp, mapper: dict[SSAValue, SSAValue]) -> Operation:
    at = mapper.get(op.at, op.at)
    if isinstance(op, LoadRowOp):
        return LoadRowOp(op.buffer, at)
    return StoreRowOp(mapper.get(op.row, op.row), op.buffer, at)
