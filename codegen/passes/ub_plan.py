"""The Unified Buffer plan: how many rows are in flight, how a row is cut, where each buffer lies.

`solve` is the one definition of the arithmetic; the tiling function that is printed for kernels of
any shape follows it line by line, and a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..dtypes import STORAGE
from ..errors import LoweringError

BLOCK_BYTES = 32
"""Alignment of every buffer and every row in UB."""
ROW_ELEMENTS = 16
"""Rows start at a multiple of this many elements: 32 bytes of a 16-bit type, 64 of fp32."""
TILE_ELEMENTS = 256
"""Parts of a row start at a multiple of this many elements: 512 bytes of a 16-bit type."""
BLOCK_SLOTS = 512
"""Slots whose indices, weights and sums are in UB at once."""
FLIGHT_BYTES = 16384
"""Bytes of rows that one buffer of a queue should hold: a transfer of this size is near full bandwidth."""
MAX_COPY_BLOCKS = 4095
"""Rows that one padded copy can move."""
MAX_COPY_BYTES = 2097151
"""Bytes that one row of a padded copy can have."""
MAX_COPY_STRIDE = 2**32 - 1
"""Bytes from the end of one row to the start of the next in a padded copy on architecture 2201."""
MAX_LIVE = 8
"""Buffers of one position that may be allocated at once: each holds an event id."""

TOKEN, SLOT, ROW, BLOCK, BLOCK_TOKENS, BYTES = "token", "slot", "row", "block", "block tokens", "bytes"
"""Extent of a buffer: the rows of a group of tokens, of a chunk of slots, one row; one element for
each slot or token of a block; a fixed number of bytes."""

IN, OUT, THROUGH, CALC, BLOCK_IN, BLOCK_OUT, CONSTANT = (
    "in",
    "out",
    "through",
    "calc",
    "block in",
    "block out",
    "constant",
)
"""What a buffer is for: a queue of loaded rows; of rows to store; of rows that are loaded and stored
as they are; working space; a block of indices or weights; a block of results; a row of zeros."""

_POSITIONS = {
    IN: "VECIN",
    OUT: "VECOUT",
    THROUGH: "VECIN",
    CALC: "VECCALC",
    BLOCK_IN: "VECIN",
    BLOCK_OUT: "VECOUT",
    CONSTANT: "VECOUT",
}


@dataclass(frozen=True)
class Buffer:
    """One buffer, or a queue of `count` equal ones."""

    name: str
    kind: str
    extent: str
    tag: str
    """Element type: f16, bf16, f32, i32 or u8."""
    count: int
    holds: str
    """What is in it, for the comment of the kernel."""
    fixed: int = 0
    """Bytes of one buffer of extent BYTES."""

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return STORAGE[self.tag].bytes

    @property
    def narrow(self) -> bool:
        """Whether it holds floats that are widened before anything is computed."""
        return STORAGE[self.tag].narrow

    @property
    def position(self) -> str:
        """Its TPosition."""
        return _POSITIONS[self.kind]

    @property
    def is_queue(self) -> bool:
        """Whether tensors are taken from it and given back, with events; else it is one TBuf."""
        return self.kind in (IN, OUT, THROUGH, BLOCK_OUT)


@dataclass(frozen=True)
class Coefficients:
    """Bytes of UB for each element of each extent, all buffers and their doubles counted."""

    token: int
    slot: int
    row: int
    block: int
    block_tokens: int
    fixed: int
    flight: int
    """Bytes of one element of the rows that move."""

    @classmethod
    def of(cls, buffers: Iterable[Buffer], flight: int) -> Coefficients:
        """The sums over a list of buffers."""
        total = dict.fromkeys((TOKEN, SLOT, ROW, BLOCK, BLOCK_TOKENS, BYTES), 0)
        for buffer in buffers:
            unit = buffer.fixed if buffer.extent == BYTES else buffer.element_bytes
            total[buffer.extent] += buffer.count * unit
        return cls(total[TOKEN], total[SLOT], total[ROW], total[BLOCK], total[BLOCK_TOKENS], total[BYTES], flight)


@dataclass(frozen=True)
class Sizes:
    """What the plan decides for one topK and hidden size."""

    tile: int
    """Elements of a row that are in UB at once."""
    tiles: int
    """Parts a row is cut into."""
    pitch: int
    """Elements from the start of one row in UB to the next."""
    block_tokens: int
    """Tokens whose indices and weights are in UB at once."""
    group_tokens: int
    """Tokens whose rows are in UB at once."""
    chunk_slots: int
    """Slots of one token that are in flight at once."""

    def elements(self, extent: str, topk: int) -> int:
        """Elements of one buffer of an extent other than BYTES."""
        return {
            TOKEN: self.group_tokens * self.pitch,
            SLOT: self.group_tokens * self.chunk_slots * self.pitch,
            ROW: self.pitch,
            BLOCK: round_up(self.block_tokens * topk, ROW_ELEMENTS),
            BLOCK_TOKENS: round_up(self.block_tokens, ROW_ELEMENTS),
        }[extent]


@dataclass(frozen=True)
class Placed:
    """A buffer with its place."""

    buffer: Buffer
    offset: int
    """Bytes from the start of UB, a multiple of 32."""
    bytes: int
    """Bytes of one buffer, a multiple of 32."""

    @property
    def end(self) -> int:
        """Where the next buffer starts."""
        return self.offset + self.buffer.count * self.bytes


def round_up(value: int, step: int) -> int:
    """The least multiple of `step` that is not below `value`."""
    return -(-value // step) * step


def solve(need: Coefficients, topk: int, hidden: int, ub_bytes: int) -> Sizes | None:
    """The plan for one shape, or None where not even one tile of a row fits."""
    block_tokens = max(1, BLOCK_SLOTS // topk)
    block = round_up(block_tokens * topk, ROW_ELEMENTS) * need.block
    block += round_up(block_tokens, ROW_ELEMENTS) * need.block_tokens
    room = ub_bytes - need.fixed - block
    one_row = need.row + need.token + need.slot
    tile = hidden
    if round_up(hidden, ROW_ELEMENTS) * one_row > room:
        largest = room // one_row // TILE_ELEMENTS * TILE_ELEMENTS
        if largest < TILE_ELEMENTS:
            return None
        parts = -(-hidden // largest)
        tile = round_up(-(-hidden // parts), TILE_ELEMENTS)
    tiles = -(-hidden // tile)
    pitch = round_up(tile, ROW_ELEMENTS)
    group, chunk = _in_flight(need, topk, tile, pitch, block_tokens, room - pitch * need.row)
    return Sizes(tile, tiles, pitch, block_tokens, group, chunk)


def _in_flight(need: Coefficients, topk: int, tile: int, pitch: int, block_tokens: int, room: int) -> tuple[int, int]:
    """Tokens of a group and slots of a chunk, so that a buffer of rows holds FLIGHT_BYTES where it can."""
    wanted = -(-FLIGHT_BYTES // (tile * need.flight))
    token_bytes, slot_bytes = pitch * need.token, pitch * need.slot
    if slot_bytes == 0 or wanted > topk:
        tokens = wanted if slot_bytes == 0 else -(-wanted // topk)
        group = min(tokens, block_tokens, MAX_COPY_BLOCKS, room // (token_bytes + topk * slot_bytes))
        if group >= 1:
            return group, topk
    chunk = min(topk, wanted, (room - token_bytes) // max(1, slot_bytes))
    return 1, -(-topk // -(-topk // chunk))


def place(buffers: Sequence[Buffer], sizes: Sizes, topk: int) -> list[Placed]:
    """Buffers one after another, as InitBuffer puts them."""
    placed, offset = [], 0
    for buffer in buffers:
        size = buffer.fixed
        if buffer.extent != BYTES:
            size = round_up(sizes.elements(buffer.extent, topk) * buffer.element_bytes, BLOCK_BYTES)
        placed.append(Placed(buffer, offset, size))
        offset = placed[-1].end
    return placed


def check(placed: Sequence[Placed], sizes: Sizes, hidden: int, ub_bytes: int, key: str) -> None:
    """What the arithmetic promises, asserted once more on the result; the message holds the plan."""
    problems = []
    total = placed[-1].end if placed else 0
    if total > ub_bytes:
        problems.append(f"{total} bytes in all, {ub_bytes} at most")
    problems += [f"{item.buffer.name} starts at {item.offset}" for item in placed if item.offset % BLOCK_BYTES]
    rows = max((item.buffer.element_bytes for item in placed if item.buffer.extent in (TOKEN, SLOT)), default=2)
    if sizes.tile * rows > MAX_COPY_BYTES:
        problems.append(f"a copy of {sizes.tile * rows} bytes, {MAX_COPY_BYTES} at most")
    if sizes.group_tokens > MAX_COPY_BLOCKS:
        problems.append(f"a copy of {sizes.group_tokens} rows, {MAX_COPY_BLOCKS} at most")
    if (hidden - 1) * rows > MAX_COPY_STRIDE:
        problems.append(f"rows of {hidden * rows} bytes, a stride of {MAX_COPY_STRIDE} at most")
    if problems:
        raise LoweringError(f"{key}: plan-ascend: {'; '.join(problems)}\n{table(placed, ub_bytes)}")


def formula(buffer: Buffer) -> str:
    """Bytes of one buffer of a kernel of any shape, as an expression in the sizes of its tiling data."""
    if buffer.extent == BYTES:
        return str(buffer.fixed)
    elements = {
        TOKEN: "groupTokens * pitch",
        SLOT: "groupTokens * chunkSlots * pitch",
        ROW: "pitch",
        BLOCK: "blockSlots",
        BLOCK_TOKENS: "blockTokensUp",
    }[buffer.extent]
    return f"{elements} * {buffer.element_bytes}"


def table(placed: Sequence[Placed], ub_bytes: int) -> str:
    """The byte table: one line a buffer, then the total."""
    head = ("offset", "bytes", "count", "position", "type", "buffer", "holds")
    rows = [
        (
            str(item.offset),
            str(item.bytes),
            str(item.buffer.count),
            item.buffer.position if item.buffer.kind != THROUGH else "VECIN-VECOUT",
            item.buffer.tag,
            item.buffer.name,
            item.buffer.holds,
        )
        for item in placed
    ]
    total = placed[-1].end if placed else 0
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [_line(row, widths) for row in (head, *rows)]
    return "\n".join([*lines, f"{total} of {ub_bytes} bytes, {ub_bytes - total} free"])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
    words = [cell.ljust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
    return "  ".join([*numbers, *words]).rstrip()
