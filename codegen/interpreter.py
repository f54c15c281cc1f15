"""Gives programs of the tensor and slot levels their meaning on NumPy arrays.

Every pass is tested by running a program before and after it. Rows and tensors are arrays,
indices and scalars are Python and NumPy numbers, fp32 arithmetic is NumPy's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Attribute, Block

from .dialect import slot, tensor
from .dialect.types import element, shape
from .dtypes import from_mlir
from .errors import MoegradError
from .parsing import function
from .signature import SLOTS, TOPK, Tensor, bound_sizes, signature, tokens_symbol

Array = np.ndarray[Any, np.dtype[Any]]


def run_program(
    module: ModuleOp, inputs: Mapping[str, Array], sizes: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Runs a program; returns its outputs by name.

    `inputs` holds one array a tensor, of the shape and dtype that the signature states. `sizes`
    gives the symbols that no input shows, such as M for a program that only scatters rows.
    Raises MoegradError where an input is missing or its shape or dtype disagrees.
    """
    func = function(module)
    tensors = signature(func)
    known = _bind_sizes(tensors, inputs, {**bound_sizes(func), **(sizes or {})}, tokens_symbol(func))
    with np.errstate(all="ignore"):
        return _run(module, inputs, tensors, known)


def _run(
    module: ModuleOp, inputs: Mapping[str, Array], tensors: list[Tensor], known: Mapping[str, int]
) -> dict[str, Array]:
    func = function(module)
    interpreter = Interpreter(module)
    interpreter.register_implementations(FuncFunctions())
    interpreter.register_implementations(MoeFunctions(known))
    arguments = [inputs[t.name] for t in tensors if not t.output]
    if any(t.output for t in tensors[: len(func.function_type.inputs)]):
        outputs = {t.name: _poisoned(t, known) for t in tensors if t.output}
        interpreter.call_op(func, (*arguments, *outputs.values()))
        return outputs
    results = interpreter.call_op(func, tuple(arguments))
    return dict(zip([t.name for t in tensors if t.output], results, strict=True))


def numpy_dtype(type_: Attribute) -> np.dtype[Any]:
    """NumPy dtype of a tensor's elements."""
    row = from_mlir(element(type_))
    if row is None:
        return np.dtype(np.int32)
    return np.dtype(getattr(ml_dtypes, row.numpy) if row.tag == "bf16" else row.numpy)


def _bind_sizes(
    tensors: list[Tensor], inputs: Mapping[str, Array], sizes: dict[str, int], tokens: str
) -> dict[str, int]:
    for each in tensors:
        if each.output:
            continue
        if each.name not in inputs:
            raise MoegradError(f"{each.name}: the program needs this input, got {', '.join(inputs) or 'none'}")
        array = inputs[each.name]
        if array.ndim != len(each.dims) or array.dtype != numpy_dtype(each.type):
            expected = f"({', '.join(each.dims)}) {numpy_dtype(each.type)}"
            raise MoegradError(f"{each.name}: expected {expected}, got {array.shape} {array.dtype}")
        for symbol, size in zip(each.dims, array.shape, strict=True):
            if sizes.setdefault(symbol, size) != size:
                raise MoegradError(f"{each.name}: expected {symbol} = {sizes[symbol]}, got shape {array.shape}")
    if SLOTS in sizes and TOPK not in sizes:
        sizes[TOPK] = sizes[SLOTS] // sizes[tokens] if sizes[tokens] else 1
    if SLOTS in sizes and sizes[SLOTS] != sizes[tokens] * sizes[TOPK]:
        expected = f"{SLOTS} = {tokens} * {TOPK} = {sizes[tokens] * sizes[TOPK]}"
        raise MoegradError(f"sizes: expected {expected}, got {sizes[SLOTS]}")
    missing = sorted({dim for each in tensors for dim in each.dims} - set(sizes))
    if missing:
        raise MoegradError(f"sizes: no input shows {', '.join(missing)}")
    return sizes


def _poisoned(output: Tensor, sizes: Mapping[str, int]) -> Array:
    """An output whose every element must be written."""
    return np.full([sizes[dim] for dim in output.dims], np.nan, numpy_dtype(output.type))


def lane_sum(products: Array, lanes: int) -> np.float32:
    """Sum of a row in the canonical order: lane l adds elements l, l + lanes, ...; then by halves."""
    padded = np.zeros(-(-len(products) // lanes) * lanes, np.float32)
    padded[: len(products)] = products
    total = np.zeros(lanes, np.float32)
    for block in padded.reshape(-1, lanes):
        total = total + block
    while len(total) > 1:
        total = total[: len(total) // 2] + total[len(total) // 2 :]
    return np.float32(float(total[0]))


@register_impls
class MoeFunctions(InterpreterFunctions):
    """Implementations of the ``moe`` operations, for one run with known sizes."""

    def __init__(self, sizes: Mapping[str, int]):
        super().__init__()
        self.sizes = sizes
        self.waiting: dict[slot.PairSlotsOp, int] = {}
        """Slots that wait for a second one."""

    @impl(tensor.RepeatRowsOp)
    def repeat_rows(self, interpreter: Interpreter, op: tensor.RepeatRowsOp, args: PythonValues) -> PythonValues:
        return (np.repeat(args[0], self.sizes[TOPK], axis=0),)

    @impl(tensor.GatherRowsOp)
    def gather_rows(self, interpreter: Interpreter, op: tensor.GatherRowsOp, args: PythonValues) -> PythonValues:
        table, index = args[0], args[1].reshape(-1)
        active = (index >= 0) & (index < len(table))
        rows = np.zeros((len(index), table.shape[1]), table.dtype)
        rows[active] = table[index[active]]
        return (rows,)

    @impl(tensor.ScatterRowsOp)
    def scatter_rows(self, interpreter: Interpreter, op: tensor.ScatterRowsOp, args: PythonValues) -> PythonValues:
        rows, index = args[0], args[1].reshape(-1)
        extent = self.sizes[op.extent.data]
        active = (index >= 0) & (index < extent)
        out = np.zeros((extent, rows.shape[1]), rows.dtype)
        out[index[active]] = rows[active]
        return (out,)

    @impl(tensor.ActiveSlotsOp)
    def active_slots(self, interpreter: Interpreter, op: tensor.ActiveSlotsOp, args: PythonValues) -> PythonValues:
        return ((args[0] >= 0) & (args[0] < self.sizes[op.extent.data]),)

    @impl(tensor.CastOp)
    def cast(self, interpreter: Interpreter, op: tensor.CastOp, args: PythonValues) -> PythonValues:
        return (np.asarray(args[0]).astype(numpy_dtype(op.result.type))[()],)

    @impl(tensor.ScaleRowsOp)
    def scale_rows(self, interpreter: Interpreter, op: tensor.ScaleRowsOp, args: PythonValues) -> PythonValues:
        scales = np.asarray(args[1]).astype(np.float32)
        scales = scales.reshape(-1, 1) if args[0].ndim == 2 else scales
        return (self._rounded(op, args[0].astype(np.float32) * scales),)

    @impl(tensor.AddRowsOp)
    def add_rows(self, interpreter: Interpreter, op: tensor.AddRowsOp, args: PythonValues) -> PythonValues:
        return (self._rounded(op, args[0].astype(np.float32) + args[1].astype(np.float32)),)

    @impl(tensor.SubRowsOp)
    def sub_rows(self, interpreter: Interpreter, op: tensor.SubRowsOp, args: PythonValues) -> PythonValues:
        return (self._rounded(op, args[0].astype(np.float32) - args[1].astype(np.float32)),)

    @impl(tensor.MulRowsOp)
    def mul_rows(self, interpreter: Interpreter, op: tensor.MulRowsOp, args: PythonValues) -> PythonValues:
        return (self._rounded(op, args[0].astype(np.float32) * args[1].astype(np.float32)),)

    @impl(tensor.RowDotOp)
    def row_dot(self, interpreter: Interpreter, op: tensor.RowDotOp, args: PythonValues) -> PythonValues:
        products = args[0].astype(np.float32) * args[1].astype(np.float32)
        if op.lanes is not None:
            return (self._rounded(op, lane_sum(products, op.lanes.value.data)),)
        sums = products.sum(axis=-1, dtype=np.float64).astype(np.float32)
        if len(shape(op.result.type)) == 2:
            sums = sums.reshape(-1, self.sizes[TOPK])
        return (self._rounded(op, sums),)

    @impl(tensor.SelectSlotsOp)
    def select_slots(self, interpreter: Interpreter, op: tensor.SelectSlotsOp, args: PythonValues) -> PythonValues:
        value, active = np.asarray(args[0]), np.asarray(args[1])
        if active.ndim and value.size != active.size:
            active = active.reshape(-1, 1)
        elif active.ndim:
            active = active.reshape(value.shape)
        return (np.where(active, value, np.zeros((), value.dtype))[()],)

    @staticmethod
    def _rounded(op: tensor.RowwiseOp, value: Any) -> Any:
        return np.asarray(value).astype(numpy_dtype(op.result.type))[()]

    @impl(slot.ForTokensOp)
    def for_tokens(self, interpreter: Interpreter, op: slot.ForTokensOp, args: PythonValues) -> PythonValues:
        return self._loop(interpreter, op.body.block, self.sizes[op.extent.data])

    @impl(slot.ForSlotsOp)
    def for_slots(self, interpreter: Interpreter, op: slot.ForSlotsOp, args: PythonValues) -> PythonValues:
        self._loop(interpreter, op.body.block, self.sizes[op.extent.data])
        for pair, waiting in self.waiting.items():
            self._run_block(interpreter, pair.alone.block, (waiting,))
        self.waiting.clear()
        return ()

    @impl(slot.PairSlotsOp)
    def pair_slots(self, interpreter: Interpreter, op: slot.PairSlotsOp, args: PythonValues) -> PythonValues:
        if op in self.waiting:
            self._run_block(interpreter, op.both.block, (self.waiting.pop(op), args[0]))
        else:
            self.waiting[op] = args[0]
        return ()

    def _loop(self, interpreter: Interpreter, block: Block, extent: int) -> PythonValues:
        for position in range(extent):
            self._run_block(interpreter, block, (position,))
        return ()

    @staticmethod
    def _run_block(interpreter: Interpreter, block: Block, args: PythonValues) -> None:
        interpreter.push_scope("block")
        interpreter.set_values(zip(block.args, args, strict=True))
        for op in block.ops:
            results = interpreter.run_op(op, interpreter.get_values(op.operands))
            interpreter.set_values(zip(op.results, results, strict=True))
        interpreter.pop_scope()

    @impl(slot.IfOp)
    def run_if(self, interpreter: Interpreter, op: slot.IfOp, args: PythonValues) -> PythonValues:
        if args[0]:
            self._run_block(interpreter, op.then.block, ())
        elif op.otherwise is not None:
            self._run_block(interpreter, op.otherwise.block, ())
        return ()

    @impl(slot.RowLoopOp)
    def row_loop(self, interpreter: Interpreter, op: slot.RowLoopOp, args: PythonValues) -> PythonValues:
        return interpreter.run_ssacfg_region(op.body, (), "row_loop")

    @impl_terminator(slot.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: slot.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    @impl(slot.SlotOp)
    def run_slot(self, interpreter: Interpreter, op: slot.SlotOp, args: PythonValues) -> PythonValues:
        return (args[0] * self.sizes[op.topk.data] + args[1],)

    @impl(slot.LoadIndexOp)
    def load_index(self, interpreter: Interpreter, op: slot.LoadIndexOp, args: PythonValues) -> PythonValues:
        return (int(args[0].reshape(-1)[args[1]]),)

    @impl(slot.InRangeOp)
    def in_range(self, interpreter: Interpreter, op: slot.InRangeOp, args: PythonValues) -> PythonValues:
        return (0 <= args[0] < self.sizes[op.extent.data],)

    @impl(slot.LoadRowOp)
    def load_row(self, interpreter: Interpreter, op: slot.LoadRowOp, args: PythonValues) -> PythonValues:
        table = args[0]
        if len(args) == 3 and not args[2]:
            return (np.zeros(table.shape[1], table.dtype),)
        return (table[args[1]],)

    @impl(slot.StoreRowOp)
    def store_row(self, interpreter: Interpreter, op: slot.StoreRowOp, args: PythonValues) -> PythonValues:
        row, table, at, *guard = args
        if not guard or guard[0]:
            table[at] = row
        return ()

    @impl(slot.LoadScalarOp)
    def load_scalar(self, interpreter: Interpreter, op: slot.LoadScalarOp, args: PythonValues) -> PythonValues:
        return (args[0].reshape(-1)[args[1]],)

    @impl(slot.StoreScalarOp)
    def store_scalar(self, interpreter: Interpreter, op: slot.StoreScalarOp, args: PythonValues) -> PythonValues:
        args[1].reshape(-1)[args[2]] = args[0]
        return ()

    @impl(slot.ZeroOp)
    def zero(self, interpreter: Interpreter, op: slot.ZeroOp, args: PythonValues) -> PythonValues:
        row = shape(op.result.type)
        return (np.zeros([self.sizes["H"]] if row else [], numpy_dtype(op.result.type))[()],)

    @impl(slot.ZeroUnnamedRowsOp)
    def zero_unnamed_rows(
        self, interpreter: Interpreter, op: slot.ZeroUnnamedRowsOp, args: PythonValues
    ) -> PythonValues:
        table, index = args[0], args[1].reshape(-1)
        named = np.zeros(len(table), bool)
        named[index[(index >= 0) & (index < len(table))]] = True
        table[~named] = 0
        return ()
