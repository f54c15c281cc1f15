"""Prints the zero fill: rows that no index names, each by the one core that looks after it."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialect.slot import ZeroUnnamedRowsOp
from ...passes.ascend_names import left_over, per_core
from ...passes.ascend_rows import place_of
from ...passes.plan_ascend import MAP_ROWS
from ...passes.ub_plan import CONSTANT
from ...signature import Tensor
from .lines import Lines
from .names import TYPES, Names
from .plan import Method


@dataclass(frozen=True)
class Fill:
    """One output with rows that may stay unnamed."""

    op: ZeroUnnamedRowsOp
    rows: Tensor
    index: Tensor
    stem: str
    """Name of the output in the kernel."""
    size: str
    """Name of the number of its rows."""

    @property
    def name(self) -> str:
        """Name of the output, capitalised."""
        return self.stem[0].upper() + self.stem[1:]


def fills(names: Names) -> list[Fill]:
    """Every output of a program that is filled with zeros."""
    ops = [op for op in names.func.body.block.ops if isinstance(op, ZeroUnnamedRowsOp)]
    return [_fill(names, op) for op in ops]


def _fill(names: Names, op: ZeroUnnamedRowsOp) -> Fill:
    rows = names.tensor(op.buffer)
    return Fill(op, rows, names.tensor(op.index), names.stem(op.buffer), names.size(rows.dims[0]))


def index_slots(names: Names, fill: Fill) -> str:
    """Number of indices, as an expression."""
    return " * ".join(names.size(symbol) for symbol in fill.index.dims)


def fill_methods(names: Names, fill: Fill) -> list[Method]:
    """The functions of one fill."""
    return [_zero(names, fill), _mark(names, fill), _store(names, fill)]


def _zero(names: Names, fill: Fill) -> Method:
    buffer = names.plan.buffer(place_of(fill.op))
    lines = Lines()
    type_ = TYPES[buffer.tag]
    constant = buffer.kind == CONSTANT
    source = names.local(buffer) if constant else "zeros"
    if not constant:
        lines.add(f"AscendC::LocalTensor<{type_}> {source} = {buffer.name}.AllocTensor<{type_}>();")
        words = f"static_cast<int32_t>({names.elements(buffer)} * sizeof({type_}) / sizeof(int32_t))"
        lines.add(
            f"AscendC::Duplicate({source}.ReinterpretCast<int32_t>(), 0, {words});",
            "Sync<AscendC::HardEvent::V_MTE3>();",
        )
    lines.add("const int64_t core = AscendC::GetBlockIdx();")
    each, left = per_core(fill.size), left_over(fill.size)
    lines.add(f"const int64_t firstRow = core * {each} + Min(core, {left});")
    lines.add(f"const int64_t lastRow = firstRow + {each} + (core < {left} ? 1 : 0);")
    with lines.block("for (int64_t row = firstRow; row < lastRow; row += mapRows)"):
        lines.add(
            "const int64_t rows = Min(mapRows, lastRow - row);",
            f"MarkNamedRowsOf{fill.name}(row, rows);",
            f"StoreUnnamedRowsOf{fill.name}(row, rows, {source});",
        )
    if not constant:
        lines.add(f"{buffer.name}.FreeTensor({source});")
    comment = (
        f"+0 in every row of {fill.rows.name} that {fill.index.name} does not name. Each core looks after a range",
        "of rows of its own; a named row is written by the core of its slot only, so no core waits for another.",
    )
    return Method(comment, f"void ZeroUnnamedRowsOf{fill.name}()", tuple(lines.lines))


def _mark(names: Names, fill: Fill) -> Method:
    block, gm = names.block(fill.op.index), names.gm(fill.op.index)
    lines = Lines()
    lines.add(
        "Sync<AscendC::HardEvent::S_V>();",
        "AscendC::Duplicate(namedRows.ReinterpretCast<int32_t>(), 0, static_cast<int32_t>(mapRows / sizeof(int32_t)));",
        "Sync<AscendC::HardEvent::V_S>();",
        f"const int64_t slots = {index_slots(names, fill)};",
    )
    with lines.block("for (int64_t first = 0; first < slots; first += blockSlots)"):
        lines.add(
            "const int64_t count = Min(blockSlots, slots - first);",
            "Sync<AscendC::HardEvent::S_MTE2>();",
            f"CopyRowIn({block}, {gm}[first], count);",
            "Sync<AscendC::HardEvent::MTE2_S>();",
        )
        with lines.block("for (int64_t i = 0; i < count; ++i)"):
            lines.add(f"const int64_t row = {block}.GetValue(i) - firstRow;")
            with lines.block("if (row >= 0 && row < rows)"):
                lines.add("namedRows.SetValue(row, static_cast<uint8_t>(1));")
    comment = ("Marks which of `rows` rows from `firstRow` on an index names. -1 and indices past the end name none.",)
    return Method(comment, f"void MarkNamedRowsOf{fill.name}(int64_t firstRow, int64_t rows)", tuple(lines.lines))


def _store(names: Names, fill: Fill) -> Method:
    buffer = names.plan.buffer(place_of(fill.op))
    lines = Lines()
    lines.add(f"const int64_t capacity = {names.elements(buffer)};", "int64_t row = 0;")
    with lines.block("while (row < rows)"):
        lines.add("const int64_t begin = row;")
        with lines.block("while (row < rows && namedRows.GetValue(row) == 0)"):
            lines.add("++row;")
        lines.add("const int64_t end = row * hidden;")
        with lines.block("for (int64_t at = begin * hidden; at < end; at += capacity)"):
            lines.add(
                f"CopyRowOut({names.gm(fill.op.buffer)}[firstRow * hidden + at], zeros, Min(capacity, end - at));"
            )
        lines.add("++row;")
    type_ = TYPES[buffer.tag]
    comment = ("Zeros over each run of unmarked rows.",)
    arguments = f"int64_t firstRow, int64_t rows, const AscendC::LocalTensor<{type_}>& zeros"
    return Method(comment, f"void StoreUnnamedRowsOf{fill.name}({arguments})", tuple(lines.lines))


MAP_CONSTANT = (f"int64_t mapRows = {MAP_ROWS}", "rows that one scan of the indices marks")
"""Constant and comment."""
