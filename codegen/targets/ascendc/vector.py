"""Prints row operations as vector instructions, with a barrier where one needs another's result."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...chips import CAST, require
from ...dialect.tensor import AddRowsOp, CastOp, MulRowsOp, RowDotOp, ScaleRowsOp, SubRowsOp
from ...errors import LoweringError
from ...passes.ascend_loops import is_row, is_void_dot, scalar_source
from ...passes.ascend_rows import place_of, tag_of
from ...passes.plan_ascend import SUM
from ...passes.ub_plan import BLOCK_BYTES, CALC, CONSTANT, Buffer
from .lines import Lines
from .names import Names, Positions

BINARY = {AddRowsOp.name: "Add", SubRowsOp.name: "Sub", MulRowsOp.name: "Mul"}
"""Elementwise operation on rows -> its instruction."""


class VectorPrinter:
    """Instructions of one loop body, or of one branch of it."""

    def __init__(self, names: Names, lines: Lines, positions: Positions, batched: bool = False):
        self.names = names
        self.lines = lines
        self.positions = positions
        self.batched = batched
        """Whether one instruction works on the rows of all tokens of a group."""
        self.barriers = names.plan.chip.vector_barriers
        # What an earlier pass of the loop has touched is not known here, so it counts as under way.
        working = {b.name for b in names.plan.buffers if b.kind in (CALC, CONSTANT)}
        self.written = set(working)
        self.read = set(working)

    def issue(self, text: str, reads: Sequence[str], writes: str) -> None:
        """One instruction, behind a barrier where it needs one."""
        if self.written.intersection(reads) or writes in self.written | self.read:
            self.barrier()
        self.lines.add(text)
        self.read.update(reads)
        self.written.add(writes)

    def barrier(self) -> None:
        """Lets everything before it finish."""
        if self.barriers:
            self.lines.add("AscendC::PipeBarrier<PIPE_V>();")
        self.written.clear()
        self.read.clear()

    def op(self, op: Operation) -> None:
        """The instructions of one operation on rows."""
        result = self._buffer(place_of(op))
        to = self._row(result)
        reads = [place_of(operand.owner) for operand in op.operands if is_row(operand)]
        sources = [self._row(self._buffer(name)) for name in reads]
        match op:
            case CastOp():
                mode = "CAST_NONE" if tag_of(op.result) == "f32" else "CAST_RINT"
                narrow = op.value if tag_of(op.result) == "f32" else op.result
                call, more = self._call(CAST, tag_of(narrow)), (sources[0], f"AscendC::RoundMode::{mode}")
            case ScaleRowsOp():
                call, more = self._call("Muls", result.tag), (sources[0], self.scalar(op.scales))
            case RowDotOp():
                call, more = self._call("Mul", result.tag), (sources[0], sources[1])
            case _ if op.name in BINARY:
                call, more = self._call(BINARY[op.name], result.tag), (sources[0], sources[1])
            case _:
                raise LoweringError(f"ascendc: no instruction for {op.name}; add it to BINARY of the Ascend target")
        self.issue(f"{call}({', '.join([to, *more, self._count()])});", reads, result.name)
        if isinstance(op, RowDotOp):
            self._sum(op, to, result.name)

    def copy(self, source: Operation, to: Buffer) -> None:
        """A row moved inside UB, bits as they are; whole 32-byte blocks, so past the end of a ragged row."""
        origin = self._buffer(place_of(source))
        step = BLOCK_BYTES // to.element_bytes
        count = f"({self.names.columns} + {step - 1}) / {step} * {step}"
        self.issue(
            f"{self._call('DataCopy', to.tag)}({self._row(to)}, {self._row(origin)}, {count});", [origin.name], to.name
        )

    def _call(self, interface: str, tag: str) -> str:
        """An interface that the chip has for an element type; SpecError where it has not."""
        require(self.names.plan.chip, interface, tag)
        return f"AscendC::{interface}"

    def scalar(self, value: SSAValue) -> str:
        """A weight as a float, or a sum that the scalar unit waits for."""
        load = scalar_source(value)
        if isinstance(load, RowDotOp) and is_void_dot(load):
            return "0.0f"
        if isinstance(load, RowDotOp):
            self.lines.add("Sync<AscendC::HardEvent::V_S>();")
            return f"{self._sums(load)}.GetValue(slot)"
        return f"{self.names.weights(load.buffer)}.GetValue({self.positions.element(load, load.at)})"

    def _sum(self, op: RowDotOp, row: str, region: str) -> None:
        target = self._sums(op)
        if self.names.plan.tiled:
            target = f"{target.removesuffix('Sums')}Part"
        self.lines.add(f"SumRow({target}[slot], {row}, {self.names.columns});")
        self.written, self.read = {target, region}, {region}

    def _sums(self, op: RowDotOp) -> str:
        sums = op.attributes[SUM]
        assert isinstance(sums, StringAttr)
        return str(sums.data)

    def _buffer(self, name: str) -> Buffer:
        return self.names.plan.buffer(name)

    def _row(self, buffer: Buffer) -> str:
        return self.names.local(buffer) if self.batched else self.names.row(buffer)

    def _count(self) -> str:
        return "elements" if self.batched and self.names.many_tokens else self.names.columns
