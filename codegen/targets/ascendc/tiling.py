"""Prints the tiling data and the tiling function: plain C++17 for device host code and host model alike."""

from __future__ import annotations

from ...passes import ub_plan
from ...passes.ascend_names import left_over, per_core
from ...passes.ub_plan import place
from ...signature import HIDDEN, SLOTS, TOPK, tokens_symbol
from .fill import fills
from .lines import Lines
from .names import Names, size_comment
from .plan import Field

SOLVED = (
    Field("tile", "elements of a row that are in UB at once"),
    Field("pitch", "elements from one row in UB to the next"),
    Field("blockTokens", "tokens whose indices and weights are in UB at once"),
    Field("groupTokens", "tokens whose rows are in UB at once"),
    Field("chunkSlots", "slots of a token that are in flight at once"),
)
"""What the tiling function of a kernel of any shape solves; constants of the others."""


def size_fields(names: Names) -> list[Field]:
    """Sizes that a call gives."""
    return [Field(names.size(symbol), size_comment(symbol)) for symbol in names.symbols if symbol not in names.bound]


def tiling_fields(names: Names) -> list[Field]:
    """Fields of the tiling data, all assigned by the tiling function."""
    found = [
        *size_fields(names),
        Field("blockCount", "cores that run"),
        Field("tokensPerCore", "tokens of each core"),
        Field("tokensLeft", "cores that take one token more, the first ones"),
    ]
    if fills(names):
        found.append(Field("zeroFill", "0: every row is named, nothing to fill"))
    for size in filled_sizes(names):
        found.append(Field(per_core(size), "rows that each core looks after"))
        found.append(Field(left_over(size), "cores that look after one row more, the first ones"))
    return [*found, *(SOLVED if names.plan.sizes is None else ())]


def filled_sizes(names: Names) -> list[str]:
    """Names of the numbers of rows of outputs that are filled with zeros, each once."""
    return list(dict.fromkeys(fill.size for fill in fills(names)))


def tiling_constants(names: Names) -> list[str]:
    """Constants of the tiling header: bounds, and what a kernel of any shape needs to solve its plan."""
    sizes, need = names.plan.sizes, names.plan.need
    lines = []
    if TOPK in names.symbols and TOPK not in names.bound:
        limit = names.plan.chip.topk_limit
        text = f"{limit};  // slots a token that {names.plan.chip.name} takes"
        lines = [f"constexpr int64_t TOPK_LIMIT = {text if limit else 'int64_t{1} << 29;  // slots a token'}"]
    if sizes is not None:
        total = place(names.plan.buffers, sizes, names.bound.get(TOPK, 1))[-1].end
        return [*lines, f"constexpr int64_t UB_BYTES = {total};  // of Unified Buffer that the kernel takes"]
    values = {
        "UB_LIMIT": (names.plan.ub_bytes, "of Unified Buffer that the plan uses at most"),
        "TOKEN_BYTES": (need.token, "for each element of the rows of a token"),
        "SLOT_BYTES": (need.slot, "for each element of the rows of a slot"),
        "ROW_BYTES": (need.row, "for each element of one row to work on"),
        "BLOCK_BYTES": (need.block, "for each slot of a block"),
        "BLOCK_TOKEN_BYTES": (need.block_tokens, "for each token of a block"),
        "FIXED_BYTES": (need.fixed, "whatever the shape"),
        "FLIGHT_BYTES": (need.flight, "of one element that moves"),
        "WANTED_BYTES": (ub_plan.FLIGHT_BYTES, "of rows that one buffer of a queue should hold"),
        "BLOCK_SLOTS": (ub_plan.BLOCK_SLOTS, "slots whose indices and weights are in UB at once"),
        "ROW_ELEMENTS": (ub_plan.ROW_ELEMENTS, "rows start at a multiple of this many elements"),
        "TILE_ELEMENTS": (ub_plan.TILE_ELEMENTS, "parts of a row start at a multiple of this many elements"),
        "MAX_COPY_BLOCKS": (ub_plan.MAX_COPY_BLOCKS, "rows of one padded copy"),
    }
    return [*lines, *(f"constexpr int64_t {name} = {value};  // {text}" for name, (value, text) in values.items())]


def tiling_body(names: Names) -> list[str]:
    """Statements of the tiling function."""
    lines = Lines()
    _checks(names, lines)
    for field in size_fields(names):
        lines.add(f"tiling.{field.name} = sizes.{field.name};")
    tokens = _given(names, names.size(tokens_symbol(names.func)))
    lines.add(f"int64_t work = {tokens};")
    if fills(names):
        lines.add("tiling.zeroFill = everyRowNamed ? 0 : 1;")
    for size in filled_sizes(names):
        with lines.block("if (!everyRowNamed)"):
            lines.add(f"work = Max(work, {_given(names, size)});")
    lines.add(
        "tiling.blockCount = Max(1, Min(cores, work));",
        f"tiling.tokensPerCore = {tokens} / tiling.blockCount;",
        f"tiling.tokensLeft = {tokens} % tiling.blockCount;",
    )
    for size in filled_sizes(names):
        rows = _given(names, size)
        lines.add(f"tiling.{per_core(size)} = {rows} / tiling.blockCount;")
        lines.add(f"tiling.{left_over(size)} = {rows} % tiling.blockCount;")
    if names.plan.sizes is None:
        topk, hidden = _given(names, names.size(TOPK)), _given(names, names.size(HIDDEN))
        solve = f"Solve({topk if names.has_slots else 1}, {hidden}, Min(ubBytes, UB_LIMIT), tiling)"
        if names.plan.whole:
            lines.add(f"const char* problem = {solve};")
            with lines.block(f"if (problem == nullptr && tiling.tile != {hidden})"):
                lines.add('return "hidden: rows that depend on a sum must fit in UB";')
            lines.add("return problem;")
        else:
            lines.add(f"return {solve};")
    else:
        lines.add("return nullptr;")
    return lines.lines


def _checks(names: Names, lines: Lines) -> None:
    def refuse(condition: str, text: str) -> None:
        with lines.block(f"if ({condition})"):
            lines.add(f'return "{text}";')

    refuse("cores < 1", "cores: expected at least 1")
    if names.plan.sizes is not None:
        refuse("ubBytes < UB_BYTES", "ubBytes: the kernel was planned for more Unified Buffer")
    for symbol in names.symbols:
        if symbol in names.bound:
            continue
        name = names.size(symbol)
        if symbol == TOPK:
            limit, chip = names.plan.chip.topk_limit, names.plan.chip.name
            text = f"topk: {chip} takes 1 to {limit} slots a token" if limit else "topk: expected 1 to 2**29"
            refuse(f"sizes.{name} < 1 || sizes.{name} > TOPK_LIMIT", text)
        elif symbol == HIDDEN:
            refuse(f"sizes.{name} < 1 || sizes.{name} > (int64_t{{1}} << 29)", "hidden: expected 1 to 2**29")
        else:
            refuse(f"sizes.{name} < 0", f"{name}: expected a size that is not negative")
    if SLOTS in names.symbols and names.has_slots:
        slots, topk, tokens = (names.size(symbol) for symbol in (SLOTS, TOPK, tokens_symbol(names.func)))
        product = f"{_given(names, tokens)} * {_given(names, topk)}"
        refuse(f"{_given(names, slots)} != {product}", f"{slots}: expected {tokens} * topk slots")


def _given(names: Names, size: str) -> str:
    """A size in the tiling function: of the call, or the number that the program fixes."""
    return next((str(n) for symbol, n in names.bound.items() if names.size(symbol) == size), f"sizes.{size}")
