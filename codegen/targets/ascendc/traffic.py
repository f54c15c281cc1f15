"""Bytes that a run moved, next to the least that the operator needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialect.slot import InRangeOp, LoadIndexOp, LoadRowOp, StoreRowOp, StoreScalarOp, ZeroOp, ZeroUnnamedRowsOp
from ...dialect.types import element
from ...dtypes import storage
from ...passes.ascend_loops import Leaf, Stage, argument_number, block_reads, read_loops
from ...passes.ascend_names import KernelNames, left_over, per_core
from ...passes.plan_ascend import MAP_ROWS
from ...signature import HIDDEN, TOPK, Tensor, signature, tokens_symbol

Arrays = Mapping[str, Any]
"""Arrays by tensor name; only those of indices are read."""


@dataclass(frozen=True)
class Traffic:
    """Bytes between global memory and UB."""

    moved: int = 0
    """All that the run loaded and stored."""
    least_rows: int = 0
    """Rows: each token's once, one of each table for each active slot, one stored for each active slot."""
    elements: int = 0
    """Indices and weights, weight gradients, and the scan of the indices for the zero fill."""
    zeros: int = 0
    """Rows of zeros."""

    @property
    def rows(self) -> int:
        """Bytes of rows that moved."""
        return self.moved - self.elements - self.zeros

    @property
    def ratio(self) -> float:
        """Bytes of rows that moved, against the least; 1.0 is the goal."""
        return self.rows / self.least_rows if self.least_rows else float(self.rows == 0)

    def text(self) -> str:
        """One line for people."""
        return (
            f"rows {self.rows} B, least {self.least_rows} B, ratio {self.ratio:.3f}; "
            f"indices and weights {self.elements} B, zeros {self.zeros} B"
        )


def traffic(func: FuncOp, arrays: Arrays, sizes: Mapping[str, int], tiling: Mapping[str, int], moved: int) -> Traffic:
    """The account of one run of a planned function; `moved` is what its counters say."""
    return _Account(func, arrays, sizes, tiling).total(moved)


class _Account:
    def __init__(self, func: FuncOp, arrays: Arrays, sizes: Mapping[str, int], tiling: Mapping[str, int]):
        self.func, self.loops, self.tensors = func, read_loops(func), signature(func)
        self.names = KernelNames.of(func)
        self.arrays, self.sizes, self.tiling = arrays, sizes, tiling
        tokens = sizes[tokens_symbol(func)]
        self.count = {"token": tokens, "slot": tokens * (sizes[TOPK] if self.loops.slots is not None else 1)}

    def total(self, moved: int) -> Traffic:
        """The sums over both stages, blocks and fills."""
        found = Traffic(moved=moved)
        for buffer, level in block_reads(self.loops):
            found = _plus(found, elements=self.count[level] * _bytes(buffer))
        for stage in self.loops.stages:
            for leaf in stage.leaves:
                found = self._leaf(found, leaf, stage)
        stored = {op.buffer for stage in self.loops.stages for op in stage.ops if isinstance(op, StoreScalarOp)}
        found = _plus(found, elements=sum(self.count["slot"] * _bytes(buffer) for buffer in stored))
        for op in self.func.body.block.ops:
            if isinstance(op, ZeroUnnamedRowsOp) and self.tiling["zeroFill"]:
                found = self._fill(found, op)
        return found

    def _leaf(self, found: Traffic, leaf: Leaf, stage: Stage) -> Traffic:
        active = np.ones(self.count[stage.level], np.bool_)
        for predicate, truth in leaf.known.items():
            active &= self._holds(predicate) == truth
        slots = int(active.sum())
        for buffer in {(op.buffer, op.at): op.buffer for op in leaf.ops if isinstance(op, LoadRowOp)}.values():
            found = _plus(found, least_rows=slots * self._row_bytes(buffer))
        for op in leaf.ops:
            if isinstance(op, StoreRowOp):
                kind = "zeros" if isinstance(op.row.owner, ZeroOp) else "least_rows"
                found = _plus(found, **{kind: slots * self._row_bytes(op.buffer)})
        return found

    def _holds(self, predicate: SSAValue) -> npt.NDArray[np.bool_]:
        owner = predicate.owner
        assert isinstance(owner, InRangeOp)
        assert isinstance(owner.row.owner, LoadIndexOp)
        index: npt.NDArray[Any] = self.arrays[self._tensor(owner.row.owner.buffer).name].reshape(-1)
        return (index >= 0) & (index < self.sizes[owner.extent.data])

    def _fill(self, found: Traffic, op: ZeroUnnamedRowsOp) -> Traffic:
        rows = self.sizes[self._tensor(op.buffer).dims[0]]
        index = self.arrays[self._tensor(op.index).name].reshape(-1)
        named = np.unique(index[(index >= 0) & (index < rows)]).size
        symbol = self._tensor(op.buffer).dims[0]
        size = self.names.sizes[symbol]
        each, left = self.tiling[per_core(size)], self.tiling[left_over(size)]
        scans = sum(-(-(each + (core < left)) // MAP_ROWS) for core in range(self.tiling["blockCount"]))
        return _plus(found, zeros=(rows - named) * self._row_bytes(op.buffer), elements=scans * index.nbytes)

    def _tensor(self, buffer: SSAValue) -> Tensor:
        return self.tensors[argument_number(buffer)]

    def _row_bytes(self, buffer: SSAValue) -> int:
        return self.sizes[HIDDEN] * _bytes(buffer)


def _bytes(buffer: SSAValue) -> int:
    return storage(element(buffer.type)).bytes


def _plus(found: Traffic, **more: int) -> Traffic:
    return replace(found, **{name: getattr(found, name) + value for name, value in more.items()})
