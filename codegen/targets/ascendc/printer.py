"""Prints a function after `plan-ascend` as an Ascend C kernel class with its tiling data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...dialect.types import element
from ...dtypes import storage
from ...passes import ub_plan
from ...passes.ub_plan import BYTES, THROUGH, Buffer
from ...signature import TOPK
from .block import BlockPrinter, results
from .fill import MAP_CONSTANT, fill_methods, fills
from .helpers import helpers
from .lines import Lines
from .names import TYPES, Names, size_comment
from .plan import Field, KernelSource, Method, Parameter
from .stage import StagePrinter
from .tiling import SOLVED, size_fields, tiling_body, tiling_constants, tiling_fields


class KernelPrinter:
    """Everything that the templates need for one lowered function."""

    def __init__(self, func: FuncOp):
        self.names = Names.of(func)
        self.plan = self.names.plan
        self.block = BlockPrinter(self.names)
        token = self.names.loops.token_stage
        self.token = StagePrinter(self.names, token) if token is not None and any(token.ops) else None
        self.slot = StagePrinter(self.names, self.names.loops.slot_stage)

    def source(self, key: str, header: tuple[str, ...], about: Sequence[str] = ()) -> KernelSource:
        """The kernel's source under a name; `about` says what it computes."""
        methods = self._methods()
        return KernelSource(
            key=key,
            symbol=symbol_of(key),
            header=header,
            summary=tuple(self._summary(about)),
            parameters=tuple(self._parameters()),
            constants=tuple(self._constants()),
            members=tuple(self._members()),
            span=tuple(self._span()),
            init=tuple(self._init()),
            methods=(*methods, *helpers(methods, self.plan.chip.vector_barriers)),
            fields=tuple(tiling_fields(self.names)),
            sizes=tuple(size_fields(self.names)),
            tiling=tuple(tiling_body(self.names)),
            tiling_constants=tuple(tiling_constants(self.names)),
            solves=self.plan.sizes is None,
        )

    def _parameters(self) -> list[Parameter]:
        return [
            Parameter(stem, _scalar(t.type), f"({', '.join(t.dims)})", t.output)
            for t, stem in zip(self.names.tensors, self.names.map.tensors, strict=True)
        ]

    def _summary(self, about: Sequence[str]) -> list[str]:
        plan, names = self.plan, self.names
        lines = [*about, *([""] if about else [])]
        lines += [f"{'->' if p.output else '  '} {p.name:<24} {p.shape} {p.type}" for p in self._parameters()]
        used = [f"{symbol} {size_comment(symbol)}" for symbol in names.symbols]
        lines += [f"with {', '.join(used)}.", "", f"Unified Buffer of {plan.chip.name}:"]
        if plan.sizes is not None:
            placed = ub_plan.place(plan.buffers, plan.sizes, names.bound.get(TOPK, 1))
            return [*lines, *ub_plan.table(placed, plan.ub_bytes).splitlines()]
        return [*lines, *(f"{b.count} x {ub_plan.formula(b):<36} {b.name:<26} {b.holds}" for b in plan.buffers)]

    def _constants(self) -> list[str]:
        names, sizes = self.names, self.plan.sizes
        fixed = [
            (f"int64_t {names.size(symbol)} = {size}", size_comment(symbol)) for symbol, size in names.bound.items()
        ]
        if sizes is not None:
            fixed += self._solved_constants()
        if fills(names):
            fixed.append(MAP_CONSTANT)
        return [f"static constexpr {text};  // {comment}" for text, comment in fixed]

    def _solved_constants(self) -> list[tuple[str, str]]:
        sizes, names = self.plan.sizes, self.names
        assert sizes is not None
        topk = names.bound.get(TOPK, 1)
        values = (sizes.tile, sizes.pitch, sizes.block_tokens, sizes.group_tokens, sizes.chunk_slots)
        wanted = {"tile": self.plan.tiled, "groupTokens": names.many_tokens, "chunkSlots": names.many_slots}
        found = [
            (f"int64_t {field.name} = {value}", field.comment)
            for field, value in zip(SOLVED, values, strict=True)
            if wanted.get(field.name, True)
        ]
        if not self.plan.tiled:
            found.insert(0, (f"int32_t columns = {sizes.tile}", "elements of a row in UB: all of them"))
        block = sizes.elements(ub_plan.BLOCK, topk)
        found.append((f"int64_t blockSlots = {block}", "slots that a block has room for"))
        if any(buffer.extent == ub_plan.BLOCK_TOKENS for buffer in self.plan.buffers):
            up = sizes.elements(ub_plan.BLOCK_TOKENS, topk)
            found.append((f"int64_t blockTokensUp = {up}", "tokens that a block has room for"))
        return found

    def _span(self) -> list[str]:
        """What one step works on, without what is fixed."""
        names = self.names
        fields = [("int64_t token", "the first, counted in the block", True), ("int64_t tokens", "", names.many_tokens)]
        fields += [
            ("int64_t slot", "the first of each token", names.has_slots),
            ("int64_t slots", "", names.many_slots),
        ]
        fields += [
            ("int64_t column", "the first element of each row", self.plan.tiled),
            ("int32_t columns", "", self.plan.tiled),
        ]
        return [f"{text};" + (f"  // {comment}" if comment else "") for text, comment, wanted in fields if wanted]

    def _run_time(self) -> list[Field]:
        """Tiling fields that the kernel keeps; the core split is used up in Init."""
        used_up = {"blockCount", "tokensPerCore", "tokensLeft"}
        return [field for field in tiling_fields(self.names) if field.name not in used_up]

    def _members(self) -> list[str]:
        lines = []
        for buffer in self.plan.buffers:
            lines.append(_declaration(buffer))
        for buffer in self.plan.buffers:
            if not buffer.is_queue:
                lines.append(f"AscendC::LocalTensor<{TYPES[buffer.tag]}> {buffer.name};")
        held = [*(self.token.inward if self.token else ()), *(self.token.outward if self.token else ())]
        for buffer in held:
            lines.append(
                f"AscendC::LocalTensor<{TYPES[buffer.tag]}> {self.names.local(buffer)};  // of the group at work"
            )
        lines += [
            f"AscendC::LocalTensor<float> {r.sums};  // of the block at work"
            for r in results(self.names)
            if not r.narrow
        ]
        lines += [f"AscendC::GlobalTensor<{p.type}> {p.name}Gm;" for p in self._parameters()]
        lines += [f"int64_t {field.name};" for field in self._run_time()]
        if self.plan.sizes is None:
            lines += ["int32_t columns;"] if not self.plan.tiled else []
            lines += ["int64_t blockSlots;", *(["int64_t blockTokensUp;"] if self._needs_tokens_up() else [])]
        return [*lines, "int64_t firstToken;", "int64_t lastToken;", "int64_t blockFirst;", "int64_t tokensInBlock;"]

    def _needs_tokens_up(self) -> bool:
        return any(buffer.extent == ub_plan.BLOCK_TOKENS for buffer in self.plan.buffers)

    def _init(self) -> list[str]:
        lines = [f"{field.name} = tiling.{field.name};" for field in self._run_time()]
        if self.plan.sizes is None:
            topk = "blockTokens * topk" if self.names.has_slots else "blockTokens"
            step = ub_plan.ROW_ELEMENTS
            lines += ["columns = static_cast<int32_t>(tile);"] if not self.plan.tiled else []
            lines.append(f"blockSlots = ({topk} + {step - 1}) / {step} * {step};")
            if self._needs_tokens_up():
                lines.append(f"blockTokensUp = (blockTokens + {step - 1}) / {step} * {step};")
        lines += [
            "const int64_t core = AscendC::GetBlockIdx();",
            "firstToken = core * tiling.tokensPerCore + Min(core, tiling.tokensLeft);",
            "lastToken = firstToken + tiling.tokensPerCore + (core < tiling.tokensLeft ? 1 : 0);",
        ]
        for tensor, parameter in zip(self.names.tensors, self._parameters(), strict=True):
            size = " * ".join(self.names.size(symbol) for symbol in tensor.dims)
            lines.append(f"{parameter.name}Gm.SetGlobalBuffer((__gm__ {parameter.type}*){parameter.name}, {size});")
        for buffer in self.plan.buffers:
            lines += self._init_buffer(buffer)
        return lines

    def _init_buffer(self, buffer: Buffer) -> list[str]:
        size = (
            str(buffer.fixed)
            if buffer.extent == BYTES
            else f"{self.names.elements(buffer)} * sizeof({TYPES[buffer.tag]})"
        )
        if buffer.is_queue:
            return [f"pipe->InitBuffer({buffer.name}, {buffer.count}, {size});"]
        return [
            f"pipe->InitBuffer({buffer.name}Buffer, {size});",
            f"{buffer.name} = {buffer.name}Buffer.Get<{TYPES[buffer.tag]}>();",
        ]

    def _methods(self) -> list[Method]:
        found = [self._process(), self.block.load()]
        found.append(self._group())
        if self.token is not None:
            found += self._token_methods(self.token)
        found += self._slot_methods()
        store = self.block.store()
        if store is not None:
            found.append(store)
        for fill in fills(self.names):
            found += fill_methods(self.names, fill)
        return found

    def _process(self) -> Method:
        lines = Lines()
        lines.add(*self.block.make_zeros())
        if fills(self.names):
            with lines.block("if (zeroFill != 0)"):
                lines.add(*(f"ZeroUnnamedRowsOf{fill.name}();" for fill in fills(self.names)))
        with lines.block("for (blockFirst = firstToken; blockFirst < lastToken; blockFirst += blockTokens)"):
            lines.add("tokensInBlock = Min(blockTokens, lastToken - blockFirst);", "LoadBlock();")
            if self.plan.tiled:
                with lines.block("for (int64_t column = 0; column < hidden; column += tile)"):
                    self.block.begin_part(lines)
                    self._groups(lines)
                    self.block.end_part(lines)
            else:
                self._groups(lines)
            if results(self.names):
                lines.add("StoreBlock();")
        return Method(("All tokens of this core, a block at a time.",), "void Process()", tuple(lines.lines))

    def _groups(self, lines: Lines) -> None:
        lines.add("Span at{};")
        if self.plan.tiled:
            lines.add("at.column = column;", "at.columns = static_cast<int32_t>(Min(tile, hidden - column));")
        step = "at.token += groupTokens" if self.names.many_tokens else "++at.token"
        with lines.block(f"for (at.token = 0; at.token < tokensInBlock; {step})"):
            if self.names.many_tokens:
                lines.add("at.tokens = Min(groupTokens, tokensInBlock - at.token);")
            lines.add("ProcessGroup(at);")

    def _group(self) -> Method:
        lines = Lines()
        if self.token is not None:
            lines.add(*(f"{call}(at);" for call in self._token_calls(self.token)))
        if self._slot_calls():
            if self.names.has_slots:
                step = "at.slot += chunkSlots" if self.names.many_slots else "++at.slot"
                with lines.block(f"for (at.slot = 0; at.slot < topk; {step})"):
                    if self.names.many_slots:
                        lines.add("at.slots = Min(chunkSlots, topk - at.slot);")
                    lines.add(*(f"{call}(at);" for call in self._slot_calls()))
            else:
                lines.add(*(f"{call}(at);" for call in self._slot_calls()))
        if self.token is not None:
            lines.add(*(self.token.give(buffer, "FreeTensor") for buffer in (*self.token.inward, *self.token.outward)))
        comment = ("The tokens of a group: what is theirs once, then their slots.",)
        return Method(comment, "void ProcessGroup(Span at)", tuple(lines.lines))

    def _token_calls(self, stage: StagePrinter) -> list[str]:
        return ["CopyInTokens", self._second_step(stage), *(["CopyOutTokens"] if stage.stores else [])]

    def _second_step(self, stage: StagePrinter) -> str:
        return "ComputeTokens" if stage.computes else "AwaitTokens"

    def _token_methods(self, stage: StagePrinter) -> list[Method]:
        body = Lines()
        body.add(*(stage.deque(buffer, declare=False) for buffer in stage.inward))
        body.add(*(stage.alloc(buffer, declare=False) for buffer in stage.outward))
        stage.compute(body)
        body.add(*(stage.give(buffer, "EnQue") for buffer in stage.outward))
        body.add(*(stage.deque(buffer, declare=False) for buffer in stage.outward))
        second = "What is computed once for all slots of a token." if stage.computes else "Waits for the rows."
        copy_in = stage.copy_in(declare=False)
        found = [
            Method(("Rows of the tokens of a group.",), "void CopyInTokens(const Span& at)", tuple(copy_in)),
            Method((second,), f"void {self._second_step(stage)}(const Span& at)", tuple(body.lines)),
        ]
        if stage.stores:
            out = Lines()
            stage.copy_out(out)
            found.append(Method(("Rows of tokens to store.",), "void CopyOutTokens(const Span& at)", tuple(out.lines)))
        return found

    def _slot_calls(self) -> list[str]:
        calls = ["CopyInSlots"] if self.slot.inward else []
        calls += ["ComputeSlots"] if self.slot.computes else []
        return [*calls, *(["CopyOutSlots"] if self.slot.stores else [])]

    def _slot_methods(self) -> list[Method]:
        stage, calls, found = self.slot, self._slot_calls(), []
        if "CopyInSlots" in calls:
            found.append(
                Method(
                    ("Rows of the active slots of a chunk.",),
                    "void CopyInSlots(const Span& at)",
                    tuple(stage.copy_in(declare=True)),
                )
            )
        if "ComputeSlots" in calls:
            body = Lines()
            body.add(
                *(stage.deque(buffer, declare=True) for buffer in stage.read),
                *(stage.alloc(buffer, declare=True) for buffer in stage.outward),
            )
            stage.compute(body)
            body.add(*(stage.give(buffer, "FreeTensor") for buffer in stage.read))
            body.add(*(stage.give(buffer, "EnQue") for buffer in stage.outward))
            found.append(
                Method(
                    ("Row gradients and sums of the slots of a chunk.",),
                    "void ComputeSlots(const Span& at)",
                    tuple(body.lines),
                )
            )
        if "CopyOutSlots" in calls:
            out = Lines()
            out.add(*(stage.deque(buffer, declare=True) for buffer in (*stage.outward, *stage.through)))
            stage.copy_out(out)
            out.add(*(stage.give(buffer, "FreeTensor") for buffer in (*stage.outward, *stage.through)))
            found.append(
                Method(
                    ("Row gradients of a chunk, each to the row that its index names.",),
                    "void CopyOutSlots(const Span& at)",
                    tuple(out.lines),
                )
            )
        return found


def _scalar(type_: Attribute) -> str:
    return storage(element(type_)).ascendc


def _declaration(buffer: Buffer) -> str:
    position = f"AscendC::TPosition::{buffer.position}"
    if buffer.kind == THROUGH:
        return f"AscendC::TQueBind<{position}, AscendC::TPosition::VECOUT, 1> {buffer.name};  // {buffer.holds}"
    if buffer.is_queue:
        return f"AscendC::TQue<{position}, 1> {buffer.name};  // {buffer.holds}"
    return f"AscendC::TBuf<{position}> {buffer.name}Buffer;  // {buffer.holds}"


def symbol_of(key: str) -> str:
    """A kernel's name as an identifier that C++ does not reserve."""
    return re.sub("_+", "_", key)
