"""Prints one stage of a kernel in its three steps: copy in, compute, copy out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from xdsl.ir import Block, Operation, SSAValue

from ...dialect.slot import IfOp, LoadRowOp, StoreRowOp
from ...dialect.tensor import RowDotOp, ScaleRowsOp
from ...passes.ascend_loops import Stage, computes_row, is_void_dot
from ...passes.ascend_rows import COPY, place_of
from ...passes.ub_plan import BLOCK_OUT, IN, OUT, SLOT, THROUGH, TOKEN, Buffer
from .lines import Lines
from .names import TYPES, Names, Positions
from .vector import VectorPrinter


class StagePrinter:
    """The bodies of the functions of one stage."""

    def __init__(self, names: Names, stage: Stage):
        self.names = names
        self.stage = stage
        extent = TOKEN if stage.level == "token" else SLOT
        queues = [b for b in names.plan.buffers if b.is_queue and b.extent == extent and b.kind != BLOCK_OUT]
        self.inward = [b for b in queues if b.kind in (IN, THROUGH)]
        self.read = [b for b in queues if b.kind == IN]
        self.through = [b for b in queues if b.kind == THROUGH]
        self.outward = [b for b in queues if b.kind == OUT]

    @property
    def computes(self) -> bool:
        """Whether vector instructions work in the stage."""
        return any(_is_vector(op) for op in self.stage.ops)

    @property
    def stores(self) -> bool:
        """Whether rows are stored in the stage."""
        return any(isinstance(op, StoreRowOp) for op in self.stage.ops)

    def alloc(self, buffer: Buffer, declare: bool) -> str:
        """Takes a buffer of a queue."""
        return self._take(buffer, "AllocTensor", declare)

    def deque(self, buffer: Buffer, declare: bool) -> str:
        """Takes the filled buffer of a queue."""
        return self._take(buffer, "DeQue", declare)

    def _take(self, buffer: Buffer, how: str, declare: bool) -> str:
        type_ = TYPES[buffer.tag]
        head = f"AscendC::LocalTensor<{type_}> " if declare else ""
        return f"{head}{self.names.local(buffer)} = {buffer.name}.{how}<{type_}>();"

    def give(self, buffer: Buffer, how: str) -> str:
        """EnQue or FreeTensor."""
        return f"{buffer.name}.{how}({self.names.local(buffer)});"

    def copy_in(self, declare: bool) -> list[str]:
        """Rows into the queues of the stage; with `declare`, into local variables."""
        lines = Lines()
        lines.add(*(self.alloc(buffer, declare) for buffer in self.inward))
        together = [op for op in self._distinct(LoadRowOp) if self._contiguous(op)]
        for op in together:
            self._load_group(lines, op)
        with self._each(lines) as (body, positions):
            for op in self._distinct(LoadRowOp):
                if op not in together:
                    assert isinstance(op, LoadRowOp)
                    row = self.names.row_in_gm(op.buffer, positions.of(op.at))
                    to = self.names.row(self.names.plan.buffer(place_of(op)))
                    with self._guarded(body, op, positions):
                        body.add(f"CopyRowIn({to}, {row}, {self.names.columns});")
        lines.add(*(self.give(buffer, "EnQue") for buffer in self.inward))
        return lines.lines

    def compute(self, lines: Lines) -> None:
        """Vector instructions of the stage, token by token or slot by slot."""
        ops = [op for op in self.stage.ops if _is_vector(op)]
        scalars = any(isinstance(op, ScaleRowsOp | RowDotOp | StoreRowOp) for op in ops)
        if self.stage.level == "token" and not scalars:
            if ops and self.names.many_tokens:
                lines.add("const uint32_t elements = static_cast<uint32_t>(at.tokens * pitch);")
            printer = VectorPrinter(self.names, lines, Positions(self.names, "token"), batched=True)
            for op in ops:
                printer.op(op)
            return
        with self._each(lines) as (body, positions):
            self._branches(body, self.stage.block, positions)

    def copy_out(self, lines: Lines) -> None:
        """Rows to global memory, each where its index says."""
        with self._each(lines) as (body, positions):
            for op in self._distinct(StoreRowOp):
                assert isinstance(op, StoreRowOp)
                source = self.names.row(self.names.plan.buffer(place_of(op)))
                with self._guarded(body, op, positions):
                    row = self.names.row_in_gm(op.buffer, positions.of(op.at))
                    body.add(f"CopyRowOut({row}, {source}, {self.names.columns});")

    def _branches(self, lines: Lines, block: Block, positions: Positions) -> None:
        """The instructions of a block; the outcomes of a predicate in branches, empty ones left out."""
        branch = next((op for op in block.ops if isinstance(op, IfOp)), None)
        if branch is None:
            printer = VectorPrinter(self.names, lines, positions)
            for op in block.ops:
                if isinstance(op, StoreRowOp) and COPY in op.attributes:
                    assert isinstance(op.row.owner, Operation)
                    printer.copy(op.row.owner, self.names.plan.buffer(place_of(op)))
                elif _is_vector(op):
                    printer.op(op)
            return
        then, otherwise = Lines(), Lines()
        self._branches(then, branch.then.block, positions)
        if branch.otherwise is not None:
            self._branches(otherwise, branch.otherwise.block, positions)
        if then.lines or otherwise.lines:
            active = positions.holds(branch.condition)
            with lines.block(f"if ({active})" if then.lines else f"if (!{active})"):
                lines.add(*(then.lines or otherwise.lines))
            if then.lines and otherwise.lines:
                lines.otherwise(otherwise.lines)

    @contextmanager
    def _each(self, lines: Lines) -> Iterator[tuple[Lines, Positions]]:
        """A loop over the tokens of a group and the slots of a chunk, around what the body turns out to need."""
        body, positions = Lines(), Positions(self.names, self.stage.level)
        yield body, positions
        if not body.lines:
            return
        text = [*(declaration for _, declaration in positions.declared.values()), *body.lines]
        words = "\n".join(text)
        names = self.names
        heads: list[str] = []
        if names.many_tokens:
            heads.append("for (int64_t token = 0; token < at.tokens; ++token) {")
        if self.stage.level == "slot" and names.many_slots:
            heads.append("for (int64_t k = 0; k < at.slots; ++k) {")
        local = [line for name, line in self._places() if re.search(rf"(?<!\.)\b{name}\b", words)]
        for head in heads:
            lines.add(head)
            lines.depth += 1
        lines.add(*local, *text)
        for _ in heads:
            lines.depth -= 1
            lines.add("}")

    def _places(self) -> list[tuple[str, str]]:
        """Place of a slot in its block and in its chunk."""
        names = self.names
        if self.stage.level == "token":
            return []
        token = "(at.token + token)" if names.many_tokens else "at.token"
        slot = token.strip("()")
        if names.has_slots:
            slot = f"{token} * topk + at.slot" + (" + k" if names.many_slots else "")
        return [
            ("slot", f"const int64_t slot = {slot};"),
            ("place", "const int64_t place = token * at.slots + k;"),
        ]

    @contextmanager
    def _guarded(self, lines: Lines, op: Operation, positions: Positions) -> Iterator[None]:
        """Under the condition of the outcomes that the operation belongs to."""
        condition = self._condition(op, positions)
        if not condition:
            yield
            return
        with lines.block(f"if ({condition})"):
            yield

    def _condition(self, op: Operation, positions: Positions) -> str:
        """When the operation, or its twin in another outcome, happens; empty for always."""
        leaves = self.stage.leaves
        present = [any(_twins(op, other) for other in leaf.ops) for leaf in leaves]
        if all(present):
            return ""
        for predicate in self.stage.predicates:
            truths = [leaf.known[predicate.result] for leaf in leaves]
            if truths == present:
                return positions.holds(predicate.result)
            if [not truth for truth in truths] == present:
                return f"!{positions.holds(predicate.result)}"
        chosen = [leaf.known for leaf, there in zip(leaves, present, strict=True) if there]
        terms = [_conjunction(known.items(), positions) for known in chosen]
        return terms[0] if len(terms) == 1 else " || ".join(f"({term})" for term in terms)

    def _distinct(self, kind: type[Operation]) -> list[Operation]:
        """Operations of a kind, once for all outcomes that share them."""
        found: list[Operation] = []
        for op in self.stage.ops:
            if isinstance(op, kind) and not any(_twins(op, other) for other in found):
                found.append(op)
        return found

    def _contiguous(self, op: Operation) -> bool:
        """Whether the rows of the tokens of a group lie one behind another, so that one copy loads them."""
        assert isinstance(op, LoadRowOp)
        return self.stage.level == "token" and op.at is self.names.loops.tokens.induction

    def _load_group(self, lines: Lines, op: Operation) -> None:
        assert isinstance(op, LoadRowOp)
        to = self.names.local(self.names.plan.buffer(place_of(op)))
        source = self.names.row_in_gm(op.buffer, "blockFirst + at.token")
        if self.names.many_tokens:
            lines.add(f"CopyRowsIn({to}, {source}, at.tokens, {self.names.columns});")
        else:
            lines.add(f"CopyRowIn({to}, {source}, {self.names.columns});")


def _is_vector(op: Operation) -> bool:
    """Whether a vector instruction works for the operation."""
    return (computes_row(op) and not is_void_dot(op)) or (isinstance(op, StoreRowOp) and COPY in op.attributes)


def _twins(left: Operation, right: Operation) -> bool:
    """Whether two operations are the same move, in two outcomes of a predicate."""
    if isinstance(left, LoadRowOp) and isinstance(right, LoadRowOp):
        return left.buffer is right.buffer and left.at is right.at
    if isinstance(left, StoreRowOp) and isinstance(right, StoreRowOp):
        same = left.buffer is right.buffer and left.at is right.at
        return same and place_of(left) == place_of(right)
    return False


def _conjunction(known: Iterable[tuple[SSAValue, bool]], positions: Positions) -> str:
    return " && ".join(("" if truth else "!") + positions.holds(value) for value, truth in known)
