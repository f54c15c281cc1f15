"""plan-ascend: what an Ascend kernel decides, its UB plan, rows in flight, zero fill and barriers.

The program stays as split-inactive left it; each operation gets the name of the buffer it works
on, and the function gets the plan: chip, sizes and the buffers with their 32-byte aligned places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from ..chips import CAST, DEFAULT_CHIP, MOVE, REDUCTION, Chip, chip, require
from ..dialect.slot import LoadIndexOp, LoadScalarOp, StoreRowOp, StoreScalarOp, ZeroUnnamedRowsOp
from ..dialect.tensor import RowDotOp
from ..errors import LoweringError
from ..naming import camel
from ..parsing import function
from ..signature import HIDDEN, TOPK, Tensor, bound_sizes, signature
from . import ub_plan
from .ascend_loops import (
    Loops,
    argument_number,
    block_reads,
    is_void_dot,
    read_loops,
    reads_sums,
    sink_to_uses,
    sum_source,
)
from .ascend_names import KernelNames, block_name, out_name, part_name, sums_name, widened_name
from .ascend_rows import UB, RowPlacer, place_of, tag_of
from .ub_plan import (
    BLOCK,
    BLOCK_IN,
    BLOCK_OUT,
    BYTES,
    CALC,
    Buffer,
    Coefficients,
    Placed,
    Sizes,
)

PLAN, SUM = "moe.ascend_plan", "sum"
"""Attributes: the plan of a function; the buffer that a dot puts its sum in."""
MAP_ROWS = 4096
"""Output rows that a core marks as named or not in one scan of the indices."""


@dataclass(frozen=True)
class AscendPlan:
    """The plan of one kernel, as it stands in the attribute."""

    chip: Chip
    ub_bytes: int
    tiled: bool
    """Whether a row can be cut, so that sums are put together from parts."""
    whole: bool
    """Whether a row depends on a sum, so that rows must be in UB whole."""
    sizes: Sizes | None
    """None where topK or the hidden size is read at run time: the tiling function solves then."""
    buffers: tuple[Buffer, ...]
    flight: int
    """Bytes of one element of the rows that move."""

    @property
    def need(self) -> Coefficients:
        """Bytes by extent."""
        return Coefficients.of(self.buffers, self.flight)

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(buffer for buffer in self.buffers if buffer.name == name)


@dataclass(frozen=True)
class PlanAscendPass(ModulePass):
    """Places every row and block in UB and writes the plan to the function."""

    name = "plan-ascend"

    chip: str = DEFAULT_CHIP
    """Name of the chip in the table of ``moegrad.codegen.chips``."""
    ub_bytes: int = 0
    """UB to plan for; 0 takes the chip's, without what is reserved."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        func = function(op)
        target = chip(self.chip)
        loops, tensors, names = read_loops(func), signature(func), KernelNames.of(func)
        bound = bound_sizes(func)
        topk = 1 if loops.slots is None else bound.get(TOPK, 0)
        if target.topk_limit is not None and topk > target.topk_limit:
            raise LoweringError(
                f"plan-ascend: topk: {target.name} takes 1 to {target.topk_limit} slots a token, got {topk}"
            )
        for stage in loops.stages:
            for leaf in stage.leaves:
                sink_to_uses(leaf)
        loops = read_loops(func)
        placer = RowPlacer(loops, tensors, names)
        placer.run()
        _check_types(target, placer)
        own = _annotate(func, loops, names, placer.buffers)
        rows = [*placer.buffers.values()]
        flight = max((b.element_bytes for b in rows if b.kind != CALC and b.extent != ub_plan.ROW), default=2)
        plan = AscendPlan(target, self.ub_bytes or target.plan_bytes, False, reads_sums(loops), None, (), flight)
        for tiled in (False,) if plan.whole else (False, True):
            sums = [part for store in _scalar_stores(loops) for part in _sum_buffers(store, tensors, names, tiled)]
            placed = [*_blocks(loops, tensors, names), *rows, *_once(sums), *own, *_fill_buffers(func)]
            plan = replace(plan, tiled=tiled, buffers=tuple(_within_events(placed)))
            solved = _solve(plan, topk, bound.get(HIDDEN, 0), func.sym_name.data)
            if solved is not None and (tiled or solved.tiles == 1):
                plan = replace(plan, sizes=solved)
                break
        func.attributes[PLAN] = _plan_attribute(plan, topk)


def _solve(plan: AscendPlan, topk: int, hidden: int, key: str) -> Sizes | None:
    """The sizes of a specialised kernel, None for one that solves at run time or does not fit uncut."""
    if not topk or not hidden:
        return None
    sizes = ub_plan.solve(plan.need, topk, hidden, plan.ub_bytes)
    if plan.whole and (sizes is None or sizes.tiles > 1):
        raise LoweringError(f"{key}: plan-ascend: a row that depends on a sum must fit in UB, got {hidden} elements")
    if sizes is None:
        if not plan.tiled:
            return None
        least = Sizes(ub_plan.TILE_ELEMENTS, 1, ub_plan.TILE_ELEMENTS, 1, 1, 1)
        text = ub_plan.table(ub_plan.place(plan.buffers, least, topk), plan.ub_bytes)
        raise LoweringError(f"{key}: plan-ascend: not even {ub_plan.TILE_ELEMENTS} elements a row fit in UB\n{text}")
    ub_plan.check(ub_plan.place(plan.buffers, sizes, topk), sizes, hidden, plan.ub_bytes, key)
    return sizes


def _blocks(loops: Loops, tensors: Sequence[Tensor], names: KernelNames) -> list[Buffer]:
    """Indices and weights of a block of tokens, the weights widened where they are narrow."""
    found: list[Buffer] = []
    for value, level in block_reads(loops):
        tensor, stem = tensors[argument_number(value)], names.tensors[argument_number(value)]
        extent = BLOCK if level == "slot" else ub_plan.BLOCK_TOKENS
        tag = tag_of(value) if _is_float(value) else "i32"
        found.append(Buffer(block_name(stem), BLOCK_IN, extent, tag, 1, f"{tensor.name} of a block of tokens"))
        if found[-1].narrow:
            found.append(Buffer(widened_name(stem), CALC, extent, "f32", 1, f"{tensor.name} of a block, widened"))
    return found


def _is_float(value: SSAValue) -> bool:
    return any(isinstance(use.operation, LoadScalarOp) for use in value.uses)


def _scalar_stores(loops: Loops) -> list[StoreScalarOp]:
    return [op for stage in loops.stages for op in stage.ops if isinstance(op, StoreScalarOp)]


def _sum_buffers(store: StoreScalarOp, tensors: Sequence[Tensor], names: KernelNames, tiled: bool) -> list[Buffer]:
    tensor, stem = tensors[argument_number(store.buffer)], names.tensors[argument_number(store.buffer)]
    tag = tag_of(store.buffer)
    found = [Buffer(out_name(stem), BLOCK_OUT, BLOCK, tag, 1, f"{tensor.name} of a block of tokens, to store")]
    if found[-1].narrow:
        found.append(Buffer(sums_name(stem), CALC, BLOCK, "f32", 1, f"fp32 sums of {tensor.name}"))
    if tiled:
        found.append(Buffer(part_name(stem), CALC, BLOCK, "f32", 1, f"sums of {tensor.name} over one part of the rows"))
    return found


def _once(buffers: Sequence[Buffer]) -> list[Buffer]:
    return list(dict.fromkeys(buffers))


def _fill_buffers(func: FuncOp) -> list[Buffer]:
    if not any(isinstance(op, ZeroUnnamedRowsOp) for op in func.body.block.ops):
        return []
    return [Buffer("namedRows", CALC, BYTES, "u8", 1, "one byte a row: whether an index names it", MAP_ROWS)]


def _within_events(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Doubled queues, or single ones where eight buffers of a position do not suffice."""
    chosen = list(buffers)
    for position in ("VECIN", "VECOUT"):
        queues = [b for b in chosen if b.is_queue and b.position == position]
        if sum(queue.count for queue in queues) > ub_plan.MAX_LIVE:
            chosen = [replace(b, count=1) if b in queues else b for b in chosen]
        if len(queues) > ub_plan.MAX_LIVE:
            raise LoweringError(
                f"plan-ascend: {position} has events for {ub_plan.MAX_LIVE} queues, the program needs {len(queues)}"
            )
    return chosen


def _check_types(target: Chip, placer: RowPlacer) -> None:
    """Every interface that the kernel will call takes the element types it is called with."""
    for buffer in placer.buffers.values():
        if buffer.is_queue:
            require(target, MOVE, buffer.tag)
            if buffer.kind != ub_plan.THROUGH and buffer.narrow:
                require(target, CAST, buffer.tag)
    require(target, MOVE, "i32")
    require(target, REDUCTION, "f32")


def _annotate(func: FuncOp, loops: Loops, names: KernelNames, placed: Iterable[str]) -> list[Buffer]:
    """Names the buffers of elements, sums and fills; returns those of sums that are not stored."""
    for op in loops.tokens.walk():
        if isinstance(op, LoadIndexOp | LoadScalarOp):
            op.attributes[UB] = StringAttr(block_name(names.tensors[argument_number(op.buffer)]))
    for store in _scalar_stores(loops):
        dot = sum_source(store)
        if dot is not None and not is_void_dot(dot):
            _name_sum(dot, sums_name(names.tensors[argument_number(store.buffer)]))
    own = _own_sums(loops, names, placed)
    for fill in [op for op in func.body.block.ops if isinstance(op, ZeroUnnamedRowsOp)]:
        stores = [op for op in loops.tokens.walk() if isinstance(op, StoreRowOp) and op.buffer is fill.buffer]
        fill.attributes[UB] = StringAttr(place_of(stores[0]))
    return own


def _own_sums(loops: Loops, names: KernelNames, placed: Iterable[str]) -> list[Buffer]:
    """Buffers of the sums that only scale rows."""
    own: list[Buffer] = []
    for stage in loops.stages:
        dots = [op for op in stage.ops if isinstance(op, RowDotOp) and not is_void_dot(op)]
        if dots and stage.level == "token":
            raise LoweringError("plan-ascend: no form for a sum of a token in a program with several slots a token")
        for dot in dots:
            if SUM not in dot.attributes:
                hint = sums_name(camel(dot.result.name_hint or "dot"))
                name = names.new(hint, [*placed, *(buffer.name for buffer in own)])
                _name_sum(dot, name)
                own.append(Buffer(name, CALC, BLOCK, "f32", 1, "sums that scale rows"))
    return own


def _name_sum(dot: RowDotOp, name: str) -> None:
    if dot.attributes.get(SUM, StringAttr(name)) != StringAttr(name):
        raise LoweringError("plan-ascend: moe.row_dot: no form for a sum that is stored twice")
    dot.attributes[SUM] = StringAttr(name)


def _plan_attribute(plan: AscendPlan, topk: int) -> DictionaryAttr:
    placed = ub_plan.place(plan.buffers, plan.sizes, topk) if plan.sizes else [Placed(b, -1, -1) for b in plan.buffers]
    entries: dict[str, Attribute] = {
        "chip": StringAttr(plan.chip.name),
        "ub_bytes": IntegerAttr(plan.ub_bytes, i64),
        "flight": IntegerAttr(plan.flight, i64),
        "split": StringAttr("tokens"),
        "buffers": ArrayAttr(_buffer_attribute(item) for item in placed),
    }
    entries |= {name: UnitAttr() for name in ("tiled", "whole") if getattr(plan, name)}
    if plan.sizes is not None:
        sizes = {name: IntegerAttr(value, i64) for name, value in vars(plan.sizes).items()}
        entries["sizes"] = DictionaryAttr(sizes)
    return DictionaryAttr(entries)


def _buffer_attribute(item: Placed) -> DictionaryAttr:
    texts = {name: getattr(item.buffer, name) for name in ("name", "kind", "extent", "tag", "holds")}
    numbers = {"count": item.buffer.count, "fixed": item.buffer.fixed, "offset": item.offset, "bytes": item.bytes}
    return DictionaryAttr(
        {name: StringAttr(text) for name, text in texts.items()}
        | {name: IntegerAttr(number, i64) for name, number in numbers.items() if number >= 0}
    )


def read_plan(func: FuncOp) -> AscendPlan:
    """The plan of a function; LoweringError where the pass has not run."""
    attribute = func.attributes.get(PLAN)
    if not isinstance(attribute, DictionaryAttr):
        raise LoweringError("ascendc: the program has no plan; plan-ascend must run before it is printed")
    data = attribute.data
    sizes, buffers = data.get("sizes"), data["buffers"]
    assert isinstance(buffers, ArrayAttr)
    return AscendPlan(
        chip=chip(_text(data["chip"])),
        ub_bytes=_number(data["ub_bytes"]),
        tiled="tiled" in data,
        whole="whole" in data,
        sizes=Sizes(**{k: _number(v) for k, v in sizes.data.items()}) if isinstance(sizes, DictionaryAttr) else None,
        buffers=tuple(_buffer(entry) for entry in buffers),
        flight=_number(data["flight"]),
    )


def _buffer(entry: Attribute) -> Buffer:
    assert isinstance(entry, DictionaryAttr)
    texts = {name: _text(entry.data[name]) for name in ("name", "kind", "extent", "tag", "holds")}
    return Buffer(**texts, count=_number(entry.data["count"]), fixed=_number(entry.data["fixed"]))


def _text(attribute: Attribute) -> str:
    assert isinstance(attribute, StringAttr)
    return attribute.data


def _number(attribute: Attribute) -> int:
    assert isinstance(attribute, IntegerAttr)
    return int(attribute.value.data)


def plan_table(module: ModuleOp) -> str:
    """The UB byte table of a planned program; of one of any shape, the rule of each buffer instead."""
    func = function(module)
    plan = read_plan(func)
    topk = 1 if read_loops(func).slots is None else bound_sizes(func).get(TOPK, 0)
    if plan.sizes is not None:
        return ub_plan.table(ub_plan.place(plan.buffers, plan.sizes, topk), plan.ub_bytes)
    return "\n".join(f"{b.count} x {ub_plan.formula(b):<38} {b.tag:<5} {b.name:<24} {b.holds}" for b in plan.buffers)
