"""Prints a function after `plan-cpu` as the statements of a Cython kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, MemRefType, StringAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialect.slot import (
    ForSlotsOp,
    ForTokensOp,
    IfOp,
    InRangeOp,
    LoadIndexOp,
    LoadRowOp,
    LoadScalarOp,
    PairSlotsOp,
    RowLoopOp,
    SlotOp,
    StoreRowOp,
    StoreScalarOp,
    ZeroOp,
    ZeroUnnamedRowsOp,
)
from ...dialect.tensor import CastOp, SelectSlotsOp
from ...dtypes import from_mlir
from ...errors import LoweringError
from ...passes.plan_cpu import PLAN, PREFETCH
from ...signature import bound_sizes, signature, size_symbols
from ..common import float_type
from .plan import KernelSource, Parameter
from .row_loop import RowLoopPrinter
from .scope import Scope, decision_names, tensor_names


class KernelPrinter:
    """Walks one lowered function; afterwards `source` has everything that the template needs."""

    def __init__(self, func: FuncOp):
        self.func = func
        self.tensors = signature(func)
        self.bound = bound_sizes(func)
        self.plan = _plan(func)
        self.used: set[str] = set()
        """Functions of the lanes header."""
        self.lines: list[str] = []
        self.setup: list[str] = []
        self.decisions: list[Parameter] = []
        """What is decided once a call: for each output whether its rows are streamed, and where their loops begin."""
        self.labels = tensor_names((tensor.name for tensor in self.tensors), size_symbols(func))
        """Tensor -> its name in the kernel."""
        self.scope = Scope({*self.labels.values(), *size_symbols(func), *decision_names(self.labels.values())})
        self.names: dict[SSAValue, str] = {}
        """Expression of each value."""
        self.dims: dict[SSAValue, tuple[str, ...]] = {}
        """Symbols of each tensor's dimensions."""
        self.next_rows: dict[SSAValue, str] = {}
        """Loaded row -> address of the row that a slot to come, or the next token, will load from the same buffer."""
        self.token_rows: set[SSAValue] = set()
        """Those of them that are the token's own."""
        self.depth = 0

    def source(self, key: str, shape_key: str) -> KernelSource:
        """The kernel's source under a name."""
        for argument, tensor in zip(self.func.args, self.tensors, strict=True):
            self.names[argument] = self.labels[tensor.name]
            self.dims[argument] = tensor.dims
        tokens = self._function_body()
        constants = [f"cdef int64_t {symbol} = {size}" for symbol, size in self.bound.items()]
        return KernelSource(
            key=key,
            shape_key=shape_key,
            parameters=tuple(self._parameters()),
            token_parameters=tuple(self._token_parameters()),
            tokens=tokens,
            setup=(*constants, "cdef int64_t t", *(f"cdef {decision}" for decision in self.decisions), *self.setup),
            body=(*constants, *(f"cdef {variable}" for variable in self.scope.declared()), *self.lines),
            finish=self._finish(),
            launch_arguments=tuple(self._launch_arguments()),
        )

    def _finish(self) -> tuple[str, ...]:
        """What each thread does after its last token."""
        flags = [decision.name for decision in self.decisions if decision.type == "bint"]
        return (f"if {' or '.join(flags)}:", f"    {self.use('stream_fence')}()") if flags else ()

    def use(self, function: str) -> str:
        """Notes that the kernel calls a function of the lanes header; returns its name."""
        self.used.add(function)
        return function

    def line(self, text: str) -> None:
        """One statement at the current depth."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block under a head line."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def assign(self, value: SSAValue, type_: str, expression: str) -> str:
        """A local variable for a value."""
        name = self.scope.new(value.name_hint or "value", type_)
        self.names[value] = name
        self.line(f"{name} = {expression}")
        return name

    def _parameters(self) -> Iterator[Parameter]:
        for tensor in self.tensors:
            yield Parameter(self.labels[tensor.name], ("" if tensor.output else "const ") + _c_type(tensor.type) + "*")
        for symbol in size_symbols(self.func):
            if symbol not in self.bound:
                yield Parameter(symbol, "int64_t")

    def _token_parameters(self) -> Iterator[Parameter]:
        words = set(re.findall(r"\w+", "\n".join(self.lines)))
        yield from (parameter for parameter in (*self._parameters(), *self.decisions) if parameter.name in words)

    def _launch_arguments(self) -> Iterator[str]:
        sizes = size_symbols(self.func)
        for position, parameter in enumerate(self._parameters()):
            if parameter.name in sizes:
                yield f"sizes[{sizes.index(parameter.name)}]"
            else:
                yield f"<{parameter.type}>tensors[{position}]"

    def _function_body(self) -> str:
        tokens = ""
        for op in self.func.body.block.ops:
            if isinstance(op, ZeroUnnamedRowsOp):
                self._zero_unnamed(op)
            elif isinstance(op, ForTokensOp):
                tokens = op.extent.data
                self.names[op.induction] = "t"
                self._ops(op.body.block)
            elif not isinstance(op, ReturnOp):
                raise _unexpected(op)
        return tokens

    def _ops(self, block: Block) -> None:
        with self.scope.nested():
            for op in block.ops:
                self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case ForSlotsOp():
                self._for_slots(op)
            case PairSlotsOp():
                self._pair_slots(op)
            case SlotOp():
                self.assign(op.result, "int64_t", f"{self.names[op.token]} * {op.topk.data} + {self.names[op.slot]}")
            case LoadIndexOp():
                self.assign(op.result, "int64_t", f"{self.names[op.buffer]}[{self.names[op.at]}]")
            case InRangeOp():
                self.names[op.result] = f"0 <= {self.names[op.row]} < {op.extent.data}"
            case LoadScalarOp():
                self.names[op.result] = f"{self.names[op.buffer]}[{self.names[op.at]}]"
            case LoadRowOp() if op.guard is None:
                self.assign(op.result, f"const {float_type(op.result).c}*", self.row_address(op.buffer, op.at))
                if PREFETCH in op.attributes:
                    self._next_row(op)
            case CastOp():
                self.names[op.result] = self._scalar_cast(op)
            case ZeroOp():
                self.names[op.result] = "0"
            case StoreScalarOp():
                self.line(f"{self.names[op.buffer]}[{self.names[op.at]}] = {self.names[op.value]}")
            case IfOp():
                self._if(op)
            case RowLoopOp():
                RowLoopPrinter(self, op).print()
            case _:
                raise _unexpected(op)

    def row_address(self, buffer: SSAValue, at: SSAValue) -> str:
        """Address of a row; the offset is 64-bit from the first multiplication."""
        return f"{self.names[buffer]} + {self.names[at]} * H"

    def stream_flag(self, buffer: SSAValue) -> str:
        """The flag that tells whether rows of an output go around the caches; ``False`` if never."""
        if self.plan.get("store") != "auto":
            return str(self.plan.get("store") == "stream")
        part = str(self.plan["stream_above"]).removeprefix("cache/")
        size = f"{self.dims[buffer][0]}, H * {float_type(buffer).bytes}, {part}"
        return self._decide(f"stream_{self.names[buffer]}", "bint", "stream_pays", f"{self.names[buffer]}, {size}")

    def lead(self, buffer: SSAValue) -> str:
        """How many elements before a row of an output its loops begin; ``0`` if its rows never go around the caches."""
        stream, size = self.stream_flag(buffer), float_type(buffer).bytes
        if stream == "False":
            return "0"
        arguments = f"{self.names[buffer]}, H * {size}, {size}, {stream}"
        return self._decide(f"lead_{self.names[buffer]}", "int64_t", "stream_lead", arguments)

    def _decide(self, name: str, type_: str, function: str, arguments: str) -> str:
        decision = Parameter(name, type_)
        if decision not in self.decisions:
            self.decisions.append(decision)
            self.setup.append(f"{name} = {self.use(function)}({arguments})")
        return name

    def _next_row(self, op: LoadRowOp) -> None:
        """The address of the next token's row, or of the row of a slot to come; of this one where there is none."""
        buffer, row, index = self.names[op.buffer], self.names[op.result], op.at.owner
        pointer = self.next_rows[op.result] = self.scope.new(f"{buffer}_next", f"const {float_type(op.result).c}*")
        if not isinstance(index, LoadIndexOp):
            self.token_rows.add(op.result)
            self.line(f"{pointer} = {row} + H")
            return
        distance = op.attributes[PREFETCH]
        assert isinstance(distance, IntegerAttr)
        here, source, slots = self.names[op.at], self.names[index.buffer], self._count(index.buffer)
        ahead = f"{self.names[_last_slot(index.at)]} + {distance.value.data}"
        next_index = self.scope.new(f"next_{op.at.name_hint or 'row'}", "int64_t")
        self.line(f"{next_index} = {source}[{ahead}] if {ahead} < {slots} else {here}")
        self.line(
            f"{pointer} = {buffer} + ({next_index} if 0 <= {next_index} < {self.dims[op.buffer][0]} else {here}) * H"
        )

    def _for_slots(self, op: ForSlotsOp) -> None:
        counter = self.names[op.induction] = self.scope.new("k", "int64_t")
        pairs = [inner for inner in op.walk() if isinstance(inner, PairSlotsOp)]
        for pair in pairs:
            waiting = self.names[pair.alone.block.args[0]] = self.scope.new("waiting", "int64_t")
            self.names[pair.both.block.args[0]] = waiting
            self.line(f"{waiting} = -1")
        with self.block(f"for {counter} in range({op.extent.data}):"):
            self._ops(op.body.block)
        for pair in pairs:
            with self.block(f"if {self.names[pair.alone.block.args[0]]} >= 0:"):
                self._ops(pair.alone.block)

    def _pair_slots(self, op: PairSlotsOp) -> None:
        """Every second slot runs with the one that waits for it; the last may be left to the loop's end."""
        first, second = op.both.block.args
        waiting, self.names[second] = self.names[first], self.names[op.slot]
        with self.block(f"if {waiting} < 0:"):
            self.line(f"{waiting} = {self.names[op.slot]}")
        with self.block("else:"):
            self._ops(op.both.block)
            self.line(f"{waiting} = -1")

    def _if(self, op: IfOp) -> None:
        with self.block(f"if {self.names[op.condition]}:"):
            self._ops(op.then.block)
        if op.otherwise is not None:
            with self.block("else:"):
                self._ops(op.otherwise.block)

    def _scalar_cast(self, op: CastOp) -> str:
        source, target = float_type(op.value), float_type(op.result)
        value = self.names[op.value]
        if source.tag != "f32":
            value = f"{self.use(f'widen_{source.tag}')}({value})"
        return value if target.tag == "f32" else f"{self.use(f'narrow_{target.tag}')}({value})"

    def _zero_unnamed(self, op: ZeroUnnamedRowsOp) -> None:
        buffer, index = self.names[op.buffer], self.names[op.index]
        rows = f"{buffer}, {self.dims[op.buffer][0]}, H * {float_type(op.buffer).bytes}"
        call = f"{self.use('zero_unnamed_rows')}({rows}, {index}, {self._count(op.index)}, num_threads)"
        self.setup += [f"if {call} != 0:", "    return -1"]

    def _count(self, buffer: SSAValue) -> str:
        """Number of elements of a map."""
        return " * ".join(self.dims[buffer])


def _last_slot(slot: SSAValue) -> SSAValue:
    """The second of two slots at once, else the slot itself."""
    block = slot.owner.parent_block() if isinstance(slot.owner, SlotOp) else None
    if block is None or not isinstance(block.parent_op(), PairSlotsOp):
        return slot
    return next(op.result for op in block.ops if isinstance(op, SlotOp) and op.slot is block.args[-1])


def _c_type(type_: object) -> str:
    assert isinstance(type_, MemRefType)
    scalar = type_.get_element_type()
    row = from_mlir(scalar)
    if row is None and scalar != i32:
        raise LoweringError(f"cython: no C type for {scalar}")
    return row.c if row else "int32_t"


def _plan(func: FuncOp) -> dict[str, str | int]:
    plan = func.attributes.get(PLAN)
    if not isinstance(plan, DictionaryAttr):
        raise LoweringError("cython: the program has no plan; plan-cpu must run before it is printed")
    return {
        name: value.data if isinstance(value, StringAttr) else value.value.data
        for name, value in plan.data.items()
        if isinstance(value, StringAttr | IntegerAttr)
    }


def _unexpected(op: Operation) -> LoweringError:
    guarded = isinstance(op, LoadRowOp | StoreRowOp | SelectSlotsOp)
    step = "split-inactive" if guarded else "fuse-slots"
    return LoweringError(f"cython: {op.name} reached the printer; {step} should have removed it")
