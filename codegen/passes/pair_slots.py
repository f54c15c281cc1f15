"""Row blocking: two active slots of a token run together (`moe.pair_slots`), as unroll-and-jam does to loops."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialect.slot import ForSlotsOp, IfOp, PairSlotsOp
from ..signature import TOPK, bound_sizes


def pair_slots(func: FuncOp) -> int:
    """Pairs what slots do where all their predicates hold.

    The function has been through `split-inactive`. Returns how many slots run at once: 2, or 1 where there is no
    loop over slots or a token has only one.
    """
    loops = [op for op in func.walk() if isinstance(op, ForSlotsOp)]
    if not loops or bound_sizes(func).get(TOPK) == 1:
        return 1
    for loop in loops:
        _pair(loop)
    return 2


def _active(loop: ForSlotsOp) -> Block:
    """What the loop runs for a slot whose predicates all hold."""
    block = loop.body.block
    while branches := [op for op in block.ops if isinstance(op, IfOp)]:
        block = branches[0].then.block
    return block


def _pair(loop: ForSlotsOp) -> None:
    active = _active(loop)
    body = list(active.ops)
    blocks = []
    for hints in (["k"], ["k", "k"]):
        block = Block(arg_types=[IndexType() for _ in hints])
        mappers: list[dict[SSAValue, SSAValue]] = []
        for arg, hint in zip(block.args, hints, strict=True):
            arg.name_hint = hint
            mappers.append({loop.induction: arg})
            for op in _needed_before(body, loop):
                _add_copy(op, block, mappers[-1])
        for mapper in mappers:
            for op in body:
                _add_copy(op, block, mapper)
        blocks.append(block)
    for op in reversed(body):
        op.detach()
        op.erase(safe_erase=False)
    active.add_op(PairSlotsOp(loop.induction, *blocks))


def _needed_before(body: list[Operation], loop: ForSlotsOp) -> Iterator[Operation]:
    """What the loop computes before `body` and `body` reads, operands first."""
    found = set(body)

    def visit(op: Operation) -> Iterator[Operation]:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner not in found and loop.is_ancestor(owner):
                found.add(owner)
                yield from visit(owner)
                yield owner

    for op in body:
        yield from visit(op)


def _add_copy(op: Operation, block: Block, mapper: dict[SSAValue, SSAValue]) -> None:
    copy = op.clone(mapper)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name_hint = old.name_hint
    block.add_op(copy)
