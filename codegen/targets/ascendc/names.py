"""Names and expressions of a kernel: tensors, rows in UB, places in global memory, sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialect.slot import InRangeOp, LoadIndexOp, SlotOp
from ...dtypes import STORAGE
from ...errors import LoweringError
from ...naming import camel
from ...passes.ascend_loops import Loops, argument_number, read_loops
from ...passes.ascend_names import KernelNames, block_name, unique, widened_name
from ...passes.plan_ascend import AscendPlan, read_plan
from ...passes.ub_plan import BLOCK, BLOCK_TOKENS, ROW, SLOT, TOKEN, Buffer
from ...signature import TOPK, Tensor, bound_sizes, signature, size_symbols

TYPES = {tag: row.ascendc for tag, row in STORAGE.items()}
"""Tag of an element type -> its Ascend C name."""

SIZE_COMMENTS = {
    "R": "tokens",
    "K": "slots a token",
    "H": "elements a row",
    "N": "slots",
    "M": "rows of the permuted side",
    "E": "experts",
}


def size_comment(symbol: str) -> str:
    """What a size counts."""
    return SIZE_COMMENTS.get(symbol, f"size {symbol} of the program")


@dataclass
class Names:
    """What every printer of one kernel asks for."""

    func: FuncOp
    loops: Loops
    plan: AscendPlan
    tensors: list[Tensor]
    map: KernelNames
    bound: dict[str, int]
    symbols: list[str]
    locals: dict[str, str]
    """Queue -> the variable of the tensor that is taken from it."""

    @classmethod
    def of(cls, func: FuncOp) -> Names:
        """The names of a function after plan-ascend."""
        loops = read_loops(func)
        bound = bound_sizes(func)
        symbols = size_symbols(func)
        if loops.slots is None:
            bound = {symbol: size for symbol, size in bound.items() if symbol != TOPK}
            symbols = [symbol for symbol in symbols if symbol != TOPK]
        plan = read_plan(func)
        return cls(func, loops, plan, signature(func), KernelNames.of(func), bound, symbols, _locals(plan))

    @property
    def has_slots(self) -> bool:
        """Whether tokens have several slots; else each token is its one slot."""
        return self.loops.slots is not None

    @property
    def many_tokens(self) -> bool:
        """Whether a group can hold several tokens."""
        return self.plan.sizes is None or self.plan.sizes.group_tokens > 1

    @property
    def many_slots(self) -> bool:
        """Whether a chunk can hold several slots of a token."""
        return self.has_slots and (self.plan.sizes is None or self.plan.sizes.chunk_slots > 1)

    @property
    def columns(self) -> str:
        """Elements of a row that are in UB, as an expression."""
        return "at.columns" if self.plan.tiled else "columns"

    def tensor(self, buffer: SSAValue) -> Tensor:
        """The tensor of a buffer of the program."""
        return self.tensors[argument_number(buffer)]

    def stem(self, buffer: SSAValue) -> str:
        """Its name in the kernel."""
        return self.map.tensors[argument_number(buffer)]

    def size(self, symbol: str) -> str:
        """Identifier of a size."""
        return self.map.sizes[symbol]

    def gm(self, buffer: SSAValue) -> str:
        """Its GlobalTensor."""
        return self.stem(buffer) + "Gm"

    def block(self, buffer: SSAValue) -> str:
        """Its elements for a block of tokens, in UB."""
        return block_name(self.stem(buffer))

    def weights(self, buffer: SSAValue) -> str:
        """The same as fp32: widened where they are narrow."""
        block = self.plan.buffer(self.block(buffer))
        return widened_name(self.stem(buffer)) if block.narrow else block.name

    def local(self, buffer: Buffer) -> str:
        """The LocalTensor of a buffer or of the buffer of a queue that is at work."""
        return self.locals.get(buffer.name, buffer.name)

    def row(self, buffer: Buffer) -> str:
        """The row of the current token or slot in a buffer."""
        many = {TOKEN: self.many_tokens, SLOT: self.many_tokens or self.many_slots}.get(buffer.extent, False)
        place = "place" if self.many_tokens and self.many_slots else "k" if self.many_slots else "token"
        index = {TOKEN: "token", SLOT: place}.get(buffer.extent, "")
        return f"{self.local(buffer)}[{index} * pitch]" if many else self.local(buffer)

    def elements(self, buffer: Buffer) -> str:
        """Elements of one buffer, as an expression."""
        if buffer.extent == SLOT:
            parts = ["groupTokens"] * self.many_tokens + ["chunkSlots"] * self.many_slots + ["pitch"]
            return " * ".join(parts)
        return {
            TOKEN: "groupTokens * pitch" if self.many_tokens else "pitch",
            ROW: "pitch",
            BLOCK: "blockSlots",
            BLOCK_TOKENS: "blockTokensUp",
        }[buffer.extent]

    def row_in_gm(self, buffer: SSAValue, row: str) -> str:
        """A row, or the part of it that is worked on, in global memory; 64-bit from the first product."""
        factor = row if re.fullmatch(r"\w+", row) else f"({row})"
        column = " + at.column" if self.plan.tiled else ""
        return f"{self.gm(buffer)}[{factor} * hidden{column}]"


def _locals(plan: AscendPlan) -> dict[str, str]:
    found: dict[str, str] = {}
    for buffer in plan.buffers:
        if buffer.is_queue:
            name = re.sub(r"(In|Out|Through)(\d*)$", r"Rows\2", buffer.name)
            found[buffer.name] = unique(name, found.values())
    return found


class Positions:
    """Indices and predicates of one loop body: the expression of each, and what must be declared for it."""

    def __init__(self, names: Names, level: str):
        self.names = names
        self.level = level
        self.taken = [*names.locals.values(), *(buffer.name for buffer in names.plan.buffers)]
        self.declared: dict[SSAValue, tuple[str, str]] = {}
        """Value -> variable and its declaration, in order of need."""

    def of(self, at: SSAValue) -> str:
        """Row or element of a tensor that a position stands for."""
        if at is self.names.loops.tokens.induction:
            if self.level == "slot" and not self.names.has_slots:
                return "blockFirst + slot"
            return "blockFirst + at.token + token" if self.names.many_tokens else "blockFirst + at.token"
        if isinstance(at.owner, SlotOp):
            return "blockFirst * topk + slot"
        if isinstance(at.owner, LoadIndexOp):
            return self._index(at.owner)
        raise LoweringError(f"ascendc: %{at.name_hint}: no expression for a position that {at.owner} computes")

    def holds(self, predicate: SSAValue) -> str:
        """The variable of a predicate."""
        owner = predicate.owner
        assert isinstance(owner, InRangeOp)
        row = self.of(owner.row)
        text = f"{row} >= 0 && {row} < {self.names.size(owner.extent.data)}"
        return self._declare(predicate, f"{row}Active", "bool", text)

    def element(self, op: Operation, at: SSAValue) -> str:
        """Place of an element in the block of its tensor."""
        if at is self.names.loops.tokens.induction and self.names.has_slots:
            return "at.token + token" if self.names.many_tokens else "at.token"
        return "slot"

    def _index(self, op: LoadIndexOp) -> str:
        name = camel(op.result.name_hint or "row")
        value = f"{self.names.block(op.buffer)}.GetValue({self.element(op, op.at)})"
        return self._declare(op.result, name, "int64_t", value)

    def _declare(self, value: SSAValue, name: str, type_: str, text: str) -> str:
        if value not in self.declared:
            name = self.names.map.local(name, self.taken)
            self.taken.append(name)
            self.declared[value] = (name, f"const {type_} {name} = {text};")
        return self.declared[value][0]
