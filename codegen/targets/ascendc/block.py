"""Prints what happens once for a block of tokens: indices and weights in, sums together, results out."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...passes.ascend_loops import block_reads
from ...passes.ascend_names import block_name, out_name, part_name, sums_name
from ...passes.ub_plan import BLOCK_OUT, CONSTANT, Buffer
from .lines import Lines
from .names import TYPES, Names
from .plan import Method


@dataclass(frozen=True)
class Result:
    """One output of one value a slot."""

    queue: Buffer
    base: str
    """Its name in the kernel."""

    @property
    def narrow(self) -> bool:
        """Whether its fp32 sums are rounded before they are stored."""
        return self.queue.narrow

    @property
    def sums(self) -> str:
        """Tensor of its fp32 sums."""
        return sums_name(self.base)

    @property
    def part(self) -> str:
        """Tensor of the sums over one part of the rows."""
        return part_name(self.base)


def results(names: Names) -> list[Result]:
    """Every output of one value a slot."""
    stems = {out_name(stem): stem for stem in names.map.tensors}
    return [Result(b, stems[b.name]) for b in names.plan.buffers if b.kind == BLOCK_OUT]


class BlockPrinter:
    """The functions of a block of tokens."""

    def __init__(self, names: Names):
        self.names = names
        self.results = results(names)
        self.reads = block_reads(names.loops)

    def load(self) -> Method:
        """Indices and weights, each by one copy."""
        lines = Lines()
        narrow = [(buffer, level) for buffer, level in self.reads if self._block(buffer).narrow]
        if self.reads:
            lines.add("Sync<AscendC::HardEvent::S_MTE2>();")
        for buffer, level in self.reads:
            block = self._block(buffer)
            lines.add(f"CopyRowIn({block.name}, {self.names.gm(buffer)}[{self._first(level)}], {self._count(level)});")
        if self.reads and not narrow:
            lines.add("Sync<AscendC::HardEvent::MTE2_S>();")
        if narrow:
            # The scalar unit waits for the copies behind the vector unit, and the vector unit for it behind the copies.
            lines.add("Sync<AscendC::HardEvent::MTE2_V>();")
            for buffer, level in narrow:
                block = self._block(buffer)
                wide = self.names.weights(buffer)
                lines.add(
                    f"AscendC::Cast({wide}, {block.name}, AscendC::RoundMode::CAST_NONE, "
                    f"static_cast<uint32_t>({self._count(level)}));"
                )
            lines.add("Sync<AscendC::HardEvent::V_S>();")
        if self.names.plan.whole:
            lines.add("Sync<AscendC::HardEvent::S_V>();")
        self._begin_sums(lines, finished=bool(narrow))
        comment = ("Indices and weights of the block, each by one copy; the scalar unit reads them from UB.",)
        return Method(comment, "void LoadBlock()", tuple(lines.lines))

    def _begin_sums(self, lines: Lines, finished: bool) -> None:
        """Sums start at zero. `finished`: the scalar unit has just waited for all vector instructions."""
        for result in self.results:
            if not result.narrow:
                lines.add(f"{result.sums} = {result.queue.name}.AllocTensor<float>();")
        if any(result.narrow for result in self.results) and not finished:
            self.barrier(lines)
        for result in self.results:
            lines.add(f"AscendC::Duplicate({result.sums}, 0.0f, static_cast<int32_t>({self._slots()}));")

    def begin_part(self, lines: Lines) -> None:
        """Sums over one part of the rows start at zero."""
        if self.results:
            self.barrier(lines)
        for result in self.results:
            lines.add(f"AscendC::Duplicate({result.part}, 0.0f, static_cast<int32_t>({self._slots()}));")

    def end_part(self, lines: Lines) -> None:
        """The part's sums join the others."""
        if self.results:
            self.barrier(lines)
        for result in self.results:
            count = f"static_cast<int32_t>({self._slots()})"
            lines.add(f"AscendC::Add({result.sums}, {result.sums}, {result.part}, {count});")

    def store(self) -> Method | None:
        """Results of the block, each by one copy."""
        if not self.results:
            return None
        lines = Lines()
        if any(result.narrow for result in self.results):
            self.barrier(lines)
        for result in self.results:
            type_, local = TYPES[result.queue.tag], result.sums
            if result.narrow:
                local = block_name(result.base)
                lines.add(
                    f"AscendC::LocalTensor<{type_}> {local} = {result.queue.name}.AllocTensor<{type_}>();",
                    f"AscendC::Cast({local}, {result.sums}, AscendC::RoundMode::CAST_RINT, "
                    f"static_cast<uint32_t>({self._slots()}));",
                )
            lines.add(
                f"{result.queue.name}.EnQue({local});",
                f"{local} = {result.queue.name}.DeQue<{type_}>();",
                f"CopyRowOut({result.base}Gm[{self._first('slot')}], {local}, {self._slots()});",
                f"{result.queue.name}.FreeTensor({local});",
            )
        return Method(
            ("Results of the block, rounded once, each by one copy.",), "void StoreBlock()", tuple(lines.lines)
        )

    def make_zeros(self) -> list[str]:
        """Rows of zeros, filled once; they are only read afterwards."""
        rows = [buffer for buffer in self.names.plan.buffers if buffer.kind == CONSTANT]
        lines = [
            f"AscendC::Duplicate({b.name}.ReinterpretCast<int32_t>(), 0, "
            f"static_cast<int32_t>(pitch * sizeof({TYPES[b.tag]}) / sizeof(int32_t)));"
            for b in rows
        ]
        return [*lines, "Sync<AscendC::HardEvent::V_MTE3>();"] if lines else []

    def barrier(self, lines: Lines) -> None:
        """A barrier where the chip needs one."""
        if self.names.plan.chip.vector_barriers:
            lines.add("AscendC::PipeBarrier<PIPE_V>();")

    def _block(self, buffer: SSAValue) -> Buffer:
        return self.names.plan.buffer(self.names.block(buffer))

    def _slots(self) -> str:
        return self._count("slot")

    def _count(self, level: str) -> str:
        return "tokensInBlock * topk" if level == "slot" and self.names.has_slots else "tokensInBlock"

    def _first(self, level: str) -> str:
        return "blockFirst * topk" if level == "slot" and self.names.has_slots else "blockFirst"
