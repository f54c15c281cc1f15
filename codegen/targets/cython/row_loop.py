"""Prints one row loop: blocks of 32 lanes, then a tail where the hidden size leaves one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from ...dialect.slot import LoadRowOp, RowLoopOp, StoreRowOp, YieldOp, ZeroOp
from ...dialect.tensor import CastOp, RowDotOp, ScaleRowsOp
from ...errors import LoweringError
from ..common import float_type
from .lanes import ROW_OPS

if TYPE_CHECKING:
    from .printer import KernelPrinter


class RowLoopPrinter:
    """Turns the operations of a row loop into statements on lanes."""

    def __init__(self, kernel: KernelPrinter, loop: RowLoopOp):
        self.kernel = kernel
        self.loop = loop
        self.ops = [op for op in loop.body.block.ops if not isinstance(op, YieldOp)]
        self.copies = [op for op in self.ops if isinstance(op, StoreRowOp) and self._is_copy(op)]
        self.copied = {op.row.owner for op in self.copies}
        self.dots = [op for op in self.ops if isinstance(op, RowDotOp)]
        self.lanes = int(kernel.plan["lanes"])
        self.order = "_pairs" if kernel.plan["order"] == "pairs" else ""
        self.hidden = kernel.bound.get("H", 0)
        self.splats: dict[SSAValue, str] = {}
        self.sums: dict[Operation, str] = {}

    def print(self) -> None:
        """All statements of the loop; its sums become variables of the kernel."""
        with self.kernel.scope.nested():
            for copy in self.copies:
                self._copy(copy)
            if len(self.ops) > len(self.copies) + len([op for op in self.copied if isinstance(op, ZeroOp)]):
                self._loop()
        for total, dot in zip(self.loop.sums, self.dots, strict=True):
            self.kernel.assign(total, "float", self._call(f"lanes_sum{self.order}", self.sums[dot]))

    def _is_copy(self, store: StoreRowOp) -> bool:
        """Whether the stored row is a loaded one, or zero: no arithmetic, so bits are copied."""
        return isinstance(store.row.owner, LoadRowOp | ZeroOp)

    def _copy(self, store: StoreRowOp) -> None:
        kernel = self.kernel
        to, size = kernel.row_address(store.buffer, store.at), f"H * {float_type(store.buffer).bytes}"
        stream = kernel.stream_flag(store.buffer)
        if isinstance(store.row.owner, ZeroOp):
            kernel.line(f"{kernel.use('row_put_zero')}({to}, {size}, {stream})")
        else:
            kernel.line(f"{kernel.use('row_put')}({to}, {kernel.names[store.row]}, {size}, {stream})")

    def _loop(self) -> None:
        kernel = self.kernel
        self._prepare()
        j = kernel.scope.new("j", "int64_t")
        if self.hidden and self.hidden % self.lanes == 0:
            body = "H"
        else:
            body = kernel.scope.new("body", "int64_t")
            kernel.line(f"{body} = H - H % {self.lanes}")
        with kernel.block(f"for {j} in range(0, {body}, {self.lanes}):"):
            self._lanes(j, "")
        if body != "H":
            head = "" if self.hidden else f"if {body} < H:"
            if head:
                with kernel.block(head):
                    self._lanes(body, f"H - {body}")
            else:
                self._lanes(body, f"H - {body}")

    def _prepare(self) -> None:
        """Variables that live across the loop: splat scalars, addresses of stored rows, sums."""
        kernel = self.kernel
        for op in self.ops:
            if isinstance(op, ScaleRowsOp) and op.scales not in self.splats:
                name = kernel.scope.new("scale", "lanes")
                self.splats[op.scales] = name
                kernel.line(f"{name} = {kernel.use('lanes_splat')}({kernel.names[op.scales]})")
            elif isinstance(op, RowDotOp):
                self.sums[op] = kernel.scope.new(
                    f"{(op.result.name_hint or 'dot').removesuffix('_f32')}_lanes", "lanes"
                )
                kernel.line(f"{self.sums[op]} = {kernel.use('lanes_zero')}()")
            elif isinstance(op, StoreRowOp) and op not in self.copies:
                pointer = kernel.scope.new(f"{kernel.names[op.buffer]}_row", f"{float_type(op.buffer).c}*")
                kernel.line(f"{pointer} = {kernel.row_address(op.buffer, op.at)}")
                self.sums[op] = pointer

    def _lanes(self, j: str, tail: str) -> None:
        """One block of lanes at element `j`; `tail` is the number of elements where it is not full.

        Rows are loaded first and stored last: loads that wait between streaming stores cost up to half of the rate.
        """
        values: dict[SSAValue, str] = {}
        stores = [op for op in self.ops if isinstance(op, StoreRowOp) and op not in self.copies]
        if not tail:
            self._prefetch(j)
        with self.kernel.scope.nested():
            for op in self.ops:
                if isinstance(op, StoreRowOp):
                    continue
                if isinstance(op, RowDotOp):
                    operands = [self._read(operand, values, j, tail) for operand in op.operands]
                    product, total = self._call("lanes_mul", *operands), self.sums[op]
                    self.kernel.line(f"{total} = {self._call('lanes_add', total, product)}")
                else:
                    self._value(op, values, j, tail)
            for store in stores:
                self._store(store, values, j, tail)

    def _prefetch(self, j: str) -> None:
        """Asks for the same lanes of the rows that the next slot will read."""
        read = dict.fromkeys(operand for op in self.ops if op not in self.copies for operand in op.operands)
        for row in read:
            if row in self.kernel.next_rows:
                at = f"{self.kernel.next_rows[row]} + {j}"
                self.kernel.line(self._call(f"lanes_prefetch_{self._tag(row)}", at))

    def _value(self, op: Operation, values: dict[SSAValue, str], j: str, tail: str) -> None:
        """The lanes of a row value: a variable, or inlined where it is only stored."""
        result = op.results[0]
        if isinstance(op, ZeroOp):
            values[result] = self._call("lanes_zero")
            return
        if isinstance(op, CastOp):
            expression = self._cast(op, values, j, tail)
        elif isinstance(op, ScaleRowsOp):
            expression = self._call("lanes_mul", self._read(op.rows, values, j, tail), self.splats[op.scales])
        elif op.name in ROW_OPS:
            operands = [self._read(operand, values, j, tail) for operand in op.operands]
            expression = self._call(ROW_OPS[op.name], *operands)
        else:
            raise LoweringError(f"cython: no lanes for {op.name}; add it to ROW_OPS of the Cython target")
        if _only_stored(op):
            values[result] = expression
            return
        name = self.kernel.scope.new(result.name_hint or "value", "lanes")
        self.kernel.line(f"{name} = {expression}")
        values[result] = name

    def _cast(self, op: CastOp, values: dict[SSAValue, str], j: str, tail: str) -> str:
        value = self._read(op.value, values, j, tail)
        target = float_type(op.result)
        if target.tag == "f32" or _only_stored(op):
            return value
        return self._call(f"lanes_round_{target.tag}", value)

    def _read(self, value: SSAValue, values: dict[SSAValue, str], j: str, tail: str) -> str:
        """The lanes of an operand; a loaded row is read where it is first needed."""
        if value in values:
            return values[value]
        assert isinstance(value.owner, LoadRowOp)
        at, tag = f"{self.kernel.names[value]} + {j}", self._tag(value)
        loaded = self._call(f"lanes_load_{tag}_tail", at, tail) if tail else self._call(f"lanes_load_{tag}", at)
        if all(isinstance(use.operation, CastOp) for use in value.uses):
            return loaded
        name = self.kernel.scope.new(f"{self.kernel.names[value.owner.buffer]}_lanes", "lanes")
        self.kernel.line(f"{name} = {loaded}")
        values[value] = name
        return name

    def _store(self, op: StoreRowOp, values: dict[SSAValue, str], j: str, tail: str) -> None:
        tag, at = self._tag(op.buffer), f"{self.sums[op]} + {j}"
        value = self._read(op.row, values, j, tail)
        if tail:
            self.kernel.line(self._call(f"lanes_store_{tag}_tail", at, value, tail))
        else:
            self.kernel.line(self._call(f"lanes_put_{tag}", at, value, self.kernel.stream_flag(op.buffer)))

    def _tag(self, rows: SSAValue) -> str:
        """What names the functions that load and store lanes of rows in memory."""
        return float_type(rows).tag + self.order

    def _call(self, function: str, *arguments: str) -> str:
        return f"{self.kernel.use(function)}({', '.join(arguments)})"


def _only_stored(op: Operation) -> bool:
    """Whether a value has one use, a store, perhaps behind the rounding that the store does itself."""
    uses = list(op.results[0].uses)
    if len(uses) != 1:
        return False
    user = uses[0].operation
    return isinstance(user, StoreRowOp) or (
        isinstance(user, CastOp) and not isinstance(op, CastOp) and _only_stored(user)
    )
