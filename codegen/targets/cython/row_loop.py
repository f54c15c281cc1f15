"""Prints one row loop: blocks of 32 lanes, whole ones and, at the ends of a row, parts of one."""

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
        stored = {op.buffer for op in self.ops if isinstance(op, StoreRowOp) and op not in self.copies}
        self.lead = kernel.lead(stored.pop()) if len(stored) == 1 else "0"
        """How many elements before its rows the loop begins, such that stores fill whole cache lines. That turns
        the lanes of a sum, which does not change it."""
        self.splats: dict[SSAValue, str] = {}
        self.sums: dict[Operation, str] = {}

    def print(self) -> None:
        """All statements of the loop; its sums become variables of the kernel."""
        with self.kernel.scope.nested():
            self._copy()
            if len(self.ops) > len(self.copies) + len([op for op in self.copied if isinstance(op, ZeroOp)]):
                self._loop()
            self._asked_for()
        for total, dot in zip(self.loop.sums, self.dots, strict=True):
            self.kernel.assign(total, "float", self._call(f"lanes_sum{self.order}", self.sums[dot]))

    def _is_copy(self, store: StoreRowOp) -> bool:
        """Whether the stored row is a loaded one, or zero: no arithmetic, so bits are copied."""
        return isinstance(store.row.owner, LoadRowOp | ZeroOp)

    def _copy(self) -> None:
        """Rows that are stored as they were loaded, or zero; a row with a successor goes to two places at once."""
        copies = list(self.copies)
        while copies:
            store = copies.pop(0)
            row, (to, size, stream) = store.row, self._place(store)
            if isinstance(row.owner, ZeroOp):
                self.kernel.line(self._call("row_put_zero", to, size, stream))
            elif row in self.kernel.next_rows:
                second = next((other for other in copies if other.row is row), None)
                also = self._place(second)[0] if second else "NULL"
                copies = [other for other in copies if other is not second]
                ahead = self.kernel.next_rows[row]
                self.kernel.line(self._call("row_put_ahead", to, also, self.kernel.names[row], size, ahead, stream))
            else:
                self.kernel.line(self._call("row_put", to, self.kernel.names[row], size, stream))

    def _place(self, store: StoreRowOp) -> tuple[str, str, str]:
        """Where a row is stored, its size in bytes, and the flag that says whether it goes around the caches."""
        kernel, size = self.kernel, f"H * {float_type(store.buffer).bytes}"
        return kernel.row_address(store.buffer, store.at), size, kernel.stream_flag(store.buffer)

    def _asked_for(self) -> None:
        """The first loop over the token's row asks for the next token's; later ones would ask for it again."""
        for row in dict.fromkeys(operand for op in self.ops for operand in op.operands):
            if row in self.kernel.token_rows:
                self.kernel.line(f"{self.kernel.next_rows[row]} = {self.kernel.names[row]}")

    def _loop(self) -> None:
        """Whole blocks run in a loop of their own; the first and the last block may be a part of one."""
        kernel, lanes = self.kernel, self.lanes
        self._prepare()
        j = kernel.scope.new("j", "int64_t")
        if self.lead == "0" and self.hidden and self.hidden % lanes == 0:
            with kernel.block(f"for {j} in range(0, H, {lanes}):"):
                self._lanes(j)
            return
        block, first, count = (kernel.scope.new(name, "int64_t") for name in ("block", "first", "count"))
        kernel.line(f"{block} = {'' if self.lead == '0' else '-'}{self.lead}")
        with kernel.block(f"while {block} < H:"):
            with kernel.block(f"if 0 <= {block} <= H - {lanes}:"):
                with kernel.block(f"for {j} in range({block}, H - {lanes - 1}, {lanes}):"):
                    self._lanes(j)
                kernel.line(f"{block} += (H - {block}) // {lanes} * {lanes}")
            with kernel.block("else:"):
                kernel.line(f"{first} = -{block} if {block} < 0 else 0")
                kernel.line(f"{count} = ({lanes} if {block} + {lanes} < H else H - {block}) - {first}")
                kernel.line(f"{j} = {block} + {first}")
                self._lanes(j, f"{first}, {count}")
                kernel.line(f"{block} += {lanes}")

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

    def _lanes(self, j: str, part: str = "") -> None:
        """One block of lanes at element `j`; `part` names the first lane and the number of lanes where it is not whole.

        Rows are loaded first and stored last: loads that wait between streaming stores cost up to half of the rate.
        """
        values: dict[SSAValue, str] = {}
        stores = [op for op in self.ops if isinstance(op, StoreRowOp) and op not in self.copies]
        if not part:
            self._prefetch(j)
        with self.kernel.scope.nested():
            for op in self.ops:
                if isinstance(op, StoreRowOp):
                    continue
                if isinstance(op, RowDotOp):
                    operands = [self._read(operand, values, j, part) for operand in op.operands]
                    product, total = self._call("lanes_mul", *operands), self.sums[op]
                    self.kernel.line(f"{total} = {self._call('lanes_add', total, product)}")
                else:
                    self._value(op, values, j, part)
            for store in stores:
                self._store(store, values, j, part)

    def _prefetch(self, j: str) -> None:
        """Asks for the same lanes of the rows that the next slot will read."""
        read = dict.fromkeys(operand for op in self.ops if op not in self.copies for operand in op.operands)
        for row in read:
            if row in self.kernel.next_rows:
                at = f"{self.kernel.next_rows[row]} + {j}"
                self.kernel.line(self._call(f"lanes_prefetch_{self._tag(row)}", at))

    def _value(self, op: Operation, values: dict[SSAValue, str], j: str, part: str) -> None:
        """The lanes of a row value: a variable, or inlined where it is only stored."""
        result = op.results[0]
        if isinstance(op, ZeroOp):
            values[result] = self._call("lanes_zero")
            return
        if isinstance(op, CastOp):
            expression = self._cast(op, values, j, part)
        elif isinstance(op, ScaleRowsOp):
            expression = self._call("lanes_mul", self._read(op.rows, values, j, part), self.splats[op.scales])
        elif op.name in ROW_OPS:
            operands = [self._read(operand, values, j, part) for operand in op.operands]
            expression = self._call(ROW_OPS[op.name], *operands)
        else:
            raise LoweringError(f"cython: no lanes for {op.name}; add it to ROW_OPS of the Cython target")
        if _only_stored(op):
            values[result] = expression
            return
        name = self.kernel.scope.new(result.name_hint or "value", "lanes")
        self.kernel.line(f"{name} = {expression}")
        values[result] = name

    def _cast(self, op: CastOp, values: dict[SSAValue, str], j: str, part: str) -> str:
        value = self._read(op.value, values, j, part)
        target = float_type(op.result)
        if target.tag == "f32" or _only_stored(op):
            return value
        return self._call(f"lanes_round_{target.tag}", value)

    def _read(self, value: SSAValue, values: dict[SSAValue, str], j: str, part: str) -> str:
        """The lanes of an operand; a loaded row is read where it is first needed."""
        if value in values:
            return values[value]
        assert isinstance(value.owner, LoadRowOp)
        at, tag = f"{self.kernel.names[value]} + {j}", self._tag(value)
        loaded = self._call(f"lanes_load_{tag}_part", at, part) if part else self._call(f"lanes_load_{tag}", at)
        if all(isinstance(use.operation, CastOp) for use in value.uses):
            return loaded
        name = self.kernel.scope.new(f"{self.kernel.names[value.owner.buffer]}_lanes", "lanes")
        self.kernel.line(f"{name} = {loaded}")
        values[value] = name
        return name

    def _store(self, op: StoreRowOp, values: dict[SSAValue, str], j: str, part: str) -> None:
        tag, at = self._tag(op.buffer), f"{self.sums[op]} + {j}"
        value, stream = self._read(op.row, values, j, part), self.kernel.stream_flag(op.buffer)
        if part:
            self.kernel.line(self._call(f"lanes_put_{tag}_part", at, value, part, stream))
        else:
            self.kernel.line(self._call(f"lanes_put_{tag}", at, value, stream))

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
