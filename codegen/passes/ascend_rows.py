"""Where each row of a program lives in UB: the part of plan-ascend that hands out buffers.

Loaded rows that vector instructions read wait in a queue; loaded rows that are only stored go
through without a copy; computed rows that are only stored are computed where they are stored from;
what is left are working rows, which are used again as soon as their value is dead. Every
operation gets the name of its buffer as attribute ``ub``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from ..dialect.slot import LoadRowOp, StoreRowOp, ZeroOp
from ..dialect.tensor import CastOp, RowDotOp
from ..dialect.types import element
from ..dtypes import from_mlir
from ..errors import LoweringError
from ..naming import camel
from ..signature import Tensor
from .ascend_loops import Leaf, Loops, Stage, argument_number, computes_row, is_row, is_void_dot, loads
from .ascend_names import KernelNames, out_name, unique
from .ub_plan import CALC, CONSTANT, IN, OUT, ROW, SLOT, THROUGH, TOKEN, Buffer

UB, COPY = "ub", "copy"
"""Attributes: name of an operation's buffer; a store whose row is copied into the queue first."""


def tag_of(value: SSAValue) -> str:
    """Tag of the element type of a value."""
    row = from_mlir(element(value.type))
    if row is None:
        raise LoweringError(f"plan-ascend: %{value.name_hint}: {value.type} should have been bound by specialize")
    return row.tag


class RowPlacer:
    """Annotates the row operations of a program; afterwards `buffers` has what they live in."""

    def __init__(self, loops: Loops, tensors: list[Tensor], names: KernelNames):
        self.loops = loops
        self.names = names
        self.tensors = tensors
        self.buffers: dict[str, Buffer] = {}
        self.queues: dict[tuple[SSAValue, SSAValue, str], str] = {}
        self.free: dict[str, list[str]] = {}

    def run(self) -> None:
        """Places loads, then what is stored, then what is computed."""
        for stage in self.loops.stages:
            for buffer, at in loads(stage):
                self._load(buffer, at, stage)
        for stage in self.loops.stages:
            for leaf in stage.leaves:
                self._stores(leaf, stage)
        for stage in self.loops.stages:
            for leaf in stage.leaves:
                self._computed(leaf, stage)

    def _add(self, name: str, kind: str, extent: str, tag: str, count: int, holds: str) -> str:
        name = unique(name, list(self.buffers))
        self.buffers[name] = Buffer(name, kind, extent, tag, count, holds)
        return name

    def _extent(self, level: str) -> str:
        return TOKEN if level == "token" else SLOT

    def _load(self, buffer: SSAValue, at: SSAValue, stage: Stage) -> None:
        found = [op for op in stage.ops if isinstance(op, LoadRowOp) and op.buffer is buffer and op.at is at]
        users = [use.operation for op in found for use in op.result.uses]
        tensor = self.tensors[argument_number(buffer)]
        computed = any(computes_row(user) for user in users)
        kind, suffix = (IN, "In") if computed else (THROUGH, "Through")
        holds = f"rows of {tensor.name}" + ("" if computed else ", loaded and stored as they are")
        stem = self.names.tensors[argument_number(buffer)]
        name = self._add(stem + suffix, kind, self._extent(stage.level), tag_of(buffer), 2, holds)
        for op in found:
            _mark(op, name)

    def _stores(self, leaf: Leaf, stage: Stage) -> None:
        targets = set()
        for op in leaf.ops:
            if isinstance(op, StoreRowOp):
                if (op.buffer, op.at) in targets:
                    raise LoweringError(f"plan-ascend: {op.name}: a slot stores two rows at one place")
                targets.add((op.buffer, op.at))
                self._store(op, stage)

    def _store(self, op: StoreRowOp, stage: Stage) -> None:
        owner = op.row.owner
        assert isinstance(owner, Operation), op.row
        if isinstance(owner, ZeroOp):
            _mark(op, self._zeros(owner))
        elif isinstance(owner, LoadRowOp) and self.buffers[place_of(owner)].kind == THROUGH:
            _mark(op, place_of(owner))
        elif not isinstance(owner, LoadRowOp) and all(isinstance(use.operation, StoreRowOp) for use in op.row.uses):
            level = self._level_of(owner)
            _mark(owner, self._out(op, level)) if UB not in owner.attributes else None
            _mark(op, place_of(owner))
        else:
            _mark(op, self._out(op, stage.level))
            op.attributes[COPY] = UnitAttr()

    def _level_of(self, op: Operation) -> str:
        token = self.loops.token_stage
        return "token" if token is not None and op.parent is token.block else "slot"

    def _out(self, op: StoreRowOp, level: str) -> str:
        """The queue of rows stored to one place, computed at a level; outcomes of a predicate share it."""
        key = (op.buffer, op.at, level)
        if key not in self.queues:
            tensor = self.tensors[argument_number(op.buffer)]
            holds = f"rows of {tensor.name} to store"
            name = out_name(self.names.tensors[argument_number(op.buffer)])
            self.queues[key] = self._add(name, OUT, self._extent(level), tag_of(op.buffer), 2, holds)
        return self.queues[key]

    def _zeros(self, op: ZeroOp) -> str:
        tag = tag_of(op.result)
        name = f"zeros{tag.upper()}"
        if name not in self.buffers:
            self.buffers[name] = Buffer(name, CONSTANT, ROW, tag, 1, "one row of zeros")
        _mark(op, name)
        return name

    def _computed(self, leaf: Leaf, stage: Stage) -> None:
        """Working rows of one outcome. What the token stage computes stays for its slots."""
        self.free = {}
        for name, buffer in self.buffers.items():
            if buffer.kind == CALC and buffer.extent == ROW:
                self.free.setdefault(buffer.tag, []).append(name)
        last = _last_uses(leaf)
        for number, op in enumerate(leaf.ops):
            if (
                isinstance(op, ZeroOp)
                and is_row(op.result)
                and any(_needs_row(use.operation) for use in op.result.uses)
            ):
                self._zeros(op)
            if not computes_row(op) or is_void_dot(op):
                continue
            dying = [operand for operand in op.operands if last.get(operand) == number]
            if UB not in op.attributes:
                self._place_result(op, stage, dying)
            for operand in dict.fromkeys(dying):
                self._release(operand, keep=place_of(op))
            if isinstance(op, RowDotOp):
                self._free_name(place_of(op))

    def _place_result(self, op: Operation, stage: Stage, dying: list[SSAValue]) -> None:
        result = op.results[0]
        tag = "f32" if isinstance(op, RowDotOp) else tag_of(result)
        if stage.level == "token" and not isinstance(op, RowDotOp):
            hint = self.names.new(camel(result.name_hint or "row"), self.buffers)
            _mark(op, self._add(hint, CALC, TOKEN, tag, 1, f"{hint} of the tokens of a group, for all their slots"))
            return
        for operand in dying:
            if not isinstance(op, CastOp) and tag_of(operand) == tag and self._reusable(operand):
                _mark(op, place_of(operand.owner))
                return
        ready = self.free.setdefault(tag, [])
        if not ready:
            base = "work" if tag == "f32" else f"work{tag.upper()}x"
            ready.append(self._add(base, CALC, ROW, tag, 1, "a row that one slot works on"))
        _mark(op, ready.pop(0))

    def _reusable(self, value: SSAValue) -> bool:
        """Whether an instruction may overwrite the row of an operand that dies with it."""
        if not isinstance(value.owner, Operation) or UB not in value.owner.attributes:
            return False
        buffer = self.buffers[place_of(value.owner)]
        return (buffer.extent == ROW and buffer.kind == CALC) or (buffer.extent == SLOT and buffer.kind == IN)

    def _release(self, value: SSAValue, keep: str) -> None:
        if isinstance(value.owner, Operation) and UB in value.owner.attributes and place_of(value.owner) != keep:
            self._free_name(place_of(value.owner))

    def _free_name(self, name: str) -> None:
        buffer = self.buffers[name]
        ready = self.free.setdefault(buffer.tag, [])
        if buffer.kind == CALC and buffer.extent == ROW and name not in ready:
            ready.insert(0, name)


def place_of(op: Operation | object) -> str:
    """Name of the buffer of an operation."""
    assert isinstance(op, Operation)
    place = op.attributes[UB]
    assert isinstance(place, StringAttr)
    return place.data


def _mark(op: Operation, name: str) -> None:
    op.attributes[UB] = StringAttr(name)


def _needs_row(user: Operation) -> bool:
    return isinstance(user, StoreRowOp) or (computes_row(user) and not is_void_dot(user))


def _last_uses(leaf: Leaf) -> dict[SSAValue, int]:
    """Number of the last operation of a leaf that reads each row value computed or loaded in it."""
    own = {result for op in leaf.ops for result in op.results if is_row(result)}
    return {operand: number for number, op in enumerate(leaf.ops) for operand in op.operands if operand in own}
