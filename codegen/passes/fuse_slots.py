"""fuse-slots: tensor level to slot level, one loop over tokens and one over the slots of a token.

What depends on the token alone is computed in the loop over tokens, so each gradient row is
loaded once for its K slots; no tensor of all slots is left. Rows that an index may drop are
loaded and stored under a guard.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, MemRefType, ModuleOp, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialect.slot import (
    ForSlotsOp,
    ForTokensOp,
    InRangeOp,
    LoadIndexOp,
    LoadRowOp,
    LoadScalarOp,
    SlotOp,
    StoreRowOp,
    StoreScalarOp,
    ZeroUnnamedRowsOp,
)
from ..dialect.tensor import ActiveSlotsOp, GatherRowsOp, RepeatRowsOp, RowDotOp, RowwiseOp, ScatterRowsOp
from ..dialect.types import element, shape
from ..errors import LoweringError
from ..parsing import function, place
from ..signature import HIDDEN, SLOTS, TOPK, Tensor, signature, tokens_symbol

TOKEN, SLOT = 0, 1
"""Depth of the loop in which a value is computed."""


@dataclass(frozen=True)
class FuseSlotsPass(ModulePass):
    """Rewrites the function on buffers: inputs, then outputs marked ``moe.output``."""

    name = "fuse-slots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        func = function(op)
        Rewriter.replace_op(func, _Fuser(func).run())


@dataclass(frozen=True)
class _Value:
    """A value of one iteration, and the loop that computes it."""

    value: SSAValue
    depth: int


class _Fuser:
    def __init__(self, func: FuncOp):
        self.func = func
        self.tokens = tokens_symbol(func)
        self.tensors = signature(func)
        self.prologue: list[Operation] = []
        self.for_tokens = ForTokensOp(self.tokens)
        self.for_slots = ForSlotsOp(TOPK)
        self.bodies: tuple[Block, Block] = (self.for_tokens.body.block, self.for_slots.body.block)
        self.slot = SlotOp(self.for_tokens.induction, self.for_slots.induction, TOPK)
        self.bodies[SLOT].add_op(self.slot)
        self.values: dict[SSAValue, _Value] = {}
        self.predicates: dict[tuple[SSAValue, str], _Value] = {}
        self.new_func = self._signature_on_buffers()
        self.buffers: dict[SSAValue, SSAValue] = dict(zip(func.args, self.new_func.args, strict=False))
        self.arguments: dict[SSAValue, Tensor] = dict(zip(func.args, self.tensors, strict=False))

    def run(self) -> FuncOp:
        for op in list(self.func.body.block.ops):
            try:
                self._lower(op)
            except LoweringError as error:
                raise LoweringError(f"{place(op)}{error}") from error
        if self.bodies[SLOT].last_op is not self.slot:
            self.bodies[TOKEN].add_op(self.for_slots)
        self.new_func.body.block.add_ops([*self.prologue, self.for_tokens, ReturnOp()])
        return self.new_func

    def _signature_on_buffers(self) -> FuncOp:
        types = [MemRefType(element(tensor.type), shape(tensor.type)) for tensor in self.tensors]
        marked = [DictionaryAttr(a.data | {"moe.output": UnitAttr()}) for a in self.func.res_attrs or ()]
        arguments = ArrayAttr([*(self.func.arg_attrs or ()), *marked])
        func = FuncOp(self.func.sym_name.data, FunctionType.from_lists(types, []), arg_attrs=arguments)
        for argument, tensor in zip(func.args, self.tensors, strict=True):
            argument.name_hint = tensor.name
        func.attributes |= self.func.attributes
        return func

    def _lower(self, op: Operation) -> None:
        if isinstance(op, RepeatRowsOp):
            self.values[op.result] = _Value(self._operand(op.rows).value, SLOT)
        elif isinstance(op, GatherRowsOp):
            self._gather(op)
        elif isinstance(op, ScatterRowsOp):
            self._scatter(op)
        elif isinstance(op, ActiveSlotsOp):
            self.values[op.result] = self._predicate(op.index, op.extent.data)
        elif isinstance(op, RowwiseOp):
            self._rowwise(op)
        elif isinstance(op, ReturnOp):
            self._return(op)
        else:
            raise LoweringError(f"fuse-slots: no rule for {op.name}")

    def _emit(self, op: Operation, depth: int, hint: str | None = None) -> _Value:
        self.bodies[depth].add_op(op)
        op.results[0].name_hint = hint or op.results[0].name_hint
        return _Value(op.results[0], depth)

    def _position(self, depth: int) -> SSAValue:
        return self.slot.result if depth == SLOT else self.for_tokens.induction

    def _operand(self, value: SSAValue) -> _Value:
        """The value in one iteration; an argument is loaded, once."""
        if value not in self.values:
            tensor = self.arguments.get(value)
            if tensor is None:
                raise LoweringError(f"fuse-slots: %{value.name_hint} is a whole tensor, it can only be returned")
            depth = self._depth(tensor)
            load, kind = (LoadRowOp, "row") if tensor.is_rows else (LoadScalarOp, "value")
            loaded = load(self.buffers[value], self._position(depth))
            self.values[value] = self._emit(loaded, depth, f"{tensor.name}_{kind}")
        return self.values[value]

    def _depth(self, tensor: Tensor) -> int:
        if tensor.dims in ((self.tokens, HIDDEN), (self.tokens,)):
            return TOKEN
        if tensor.dims in ((SLOTS, HIDDEN), (SLOTS,), (self.tokens, TOPK)):
            return SLOT
        raise LoweringError(
            f"fuse-slots: {tensor.name} of dimensions ({', '.join(tensor.dims)}) has no row for a token or a slot; "
            "gather its rows by an index"
        )

    def _index(self, index: SSAValue) -> tuple[_Value, Tensor]:
        tensor = self.arguments.get(index)
        if tensor is None:
            raise LoweringError("fuse-slots: an index must be an argument of the program")
        if index not in self.values:
            depth = self._depth(tensor)
            load = LoadIndexOp(self.buffers[index], self._position(depth))
            self.values[index] = self._emit(load, depth, _index_name(tensor))
        return self.values[index], tensor

    def _predicate(self, index: SSAValue, extent: str) -> _Value:
        row, _ = self._index(index)
        if (row.value, extent) not in self.predicates:
            self.predicates[row.value, extent] = self._emit(InRangeOp(row.value, extent), row.depth)
        return self.predicates[row.value, extent]

    def _gather(self, op: GatherRowsOp) -> None:
        table = self.arguments.get(op.table)
        if table is None:
            raise LoweringError("fuse-slots: moe.gather_rows: the table must be an argument of the program")
        row, _ = self._index(op.index)
        guard = self._predicate(op.index, table.dims[0])
        load = LoadRowOp(self.buffers[op.table], row.value, guard.value)
        self.values[op.result] = self._emit(load, row.depth, f"{table.name}_row")

    def _scatter(self, op: ScatterRowsOp) -> None:
        uses = [use for use in op.result.uses if isinstance(use.operation, ReturnOp)]
        if len(uses) != 1 or op.result.has_more_than_one_use():
            raise LoweringError("fuse-slots: the result of moe.scatter_rows must be returned, once")
        position = len(self.func.args) + uses[0].index
        buffer, tensor = self.new_func.args[position], self.tensors[position]
        if tensor.dims[0] != op.extent.data:
            raise LoweringError(f"fuse-slots: {tensor.name} has {tensor.dims[0]} rows, scattered to {op.extent.data}")
        row, _ = self._index(op.index)
        guard = self._predicate(op.index, op.extent.data)
        self.prologue.append(ZeroUnnamedRowsOp(buffer, self.buffers[op.index]))
        rows = self._operand(op.rows)
        _same_depth(op, [rows, row])
        store = StoreRowOp(rows.value, buffer, row.value, guard.value)
        self.bodies[row.depth].add_op(store)

    def _rowwise(self, op: RowwiseOp) -> None:
        operands = [self._operand(value) for value in op.operands]
        depth = _same_depth(op, operands)
        result_type = _one_row(operands, op)
        clone = type(op).create(
            operands=[operand.value for operand in operands], properties=dict(op.properties), result_types=[result_type]
        )
        hoisted = max((_depth_of(operand.value, self.bodies) for operand in operands), default=depth)
        emitted = self._emit(clone, hoisted, op.result.name_hint)
        self.values[op.result] = _Value(emitted.value, depth)

    def _return(self, op: ReturnOp) -> None:
        outputs = list(enumerate(op.arguments, start=len(self.func.args)))
        for position, value in outputs:
            if isinstance(value.owner, ScatterRowsOp):
                continue
            row, tensor = self._operand(value), self.tensors[position]
            if self._depth(tensor) != row.depth:
                raise LoweringError(f"fuse-slots: {tensor.name} does not have one element for each value returned")
            store = StoreRowOp if tensor.is_rows else StoreScalarOp
            self.bodies[row.depth].add_op(store(row.value, self.new_func.args[position], self._position(row.depth)))


def _same_depth(op: Operation, operands: list[_Value]) -> int:
    """The loop of an operation whose operands all have one element for each of its iterations."""
    depths = {operand.depth for operand in operands}
    if len(depths) != 1:
        raise LoweringError(
            f"fuse-slots: {op.name}: one operand has an element a token, another an element a slot; "
            "moe.repeat_rows gives each slot the row of its token"
        )
    return depths.pop()


def _depth_of(value: SSAValue, bodies: tuple[Block, Block]) -> int:
    """The loop that really computes a value: a repeated row belongs to its token."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    return SLOT if block is bodies[SLOT] else TOKEN


def _index_name(tensor: Tensor) -> str:
    """``expert_idx`` gives ``expert``; a map from slots to rows gives ``row``."""
    stem = tensor.name.removesuffix("_idx").removesuffix("_indices")
    return stem if tensor.dims != (SLOTS,) and stem != tensor.name and stem != "sorted" else "row"


def _one_row(operands: list[_Value], op: RowwiseOp) -> Attribute:
    """Type of the result in one iteration: a row where an operand is one, unless it is a sum."""
    rows = [shape(operand.value.type) for operand in operands if shape(operand.value.type)]
    scalar = element(op.result.type)
    return scalar if not rows or isinstance(op, RowDotOp) else TensorType(scalar, rows[0])
