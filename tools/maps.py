"""Index maps of cases: random, and not their own inverse wherever the shape allows it.

A self-inverse map (identity, reversal, swaps) cannot tell a map from its inverse.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .oracle import Array

__all__ = ["DROPS", "is_self_inverse", "padded_map", "slot_map"]

# Which slots (with padded_mode: which rows) have no counterpart.
DROPS = ("none", "all", "first", "last", "some")


def is_self_inverse(index: Array) -> bool:
    """Whether a map equals its inverse, wherever it is not negative: index[index[i]] == i."""
    slots = np.flatnonzero(index >= 0)
    targets = index[slots]
    return bool((targets < index.size).all()) and np.array_equal(index[targets], slots)


def _drop_count(kind: str, size: int) -> int:
    """How many of ``size`` places a kind of drop asks for."""
    return min(size, {"none": 0, "all": size, "some": max(1, size // 3)}.get(kind, 1))


def _dropped(rng: np.random.Generator, size: int, kind: str, count: int) -> npt.NDArray[np.bool_]:
    """Which of ``size`` places are dropped: ``count`` of them, with the one that ``kind`` names."""
    order = rng.permutation(size)
    if kind in ("first", "last") and size:
        named = 0 if kind == "first" else size - 1
        order = np.concatenate([[named], order[order != named]])
    mask = np.zeros(size, np.bool_)
    mask[order[:count]] = True
    return mask


def slot_map(rng: np.random.Generator, slots: int, rows: int, drop: str, capacity: bool) -> npt.NDArray[np.int32]:
    """Row of each slot, (slots,); dropped ones hold -1 with ``capacity``, otherwise a row past ``rows``.

    Without capacity the map is a permutation of the slots.
    """
    count = max(slots - rows, 0)
    if capacity:
        count = max(count, _drop_count(drop, slots))
    for _ in range(100):  # small shapes may have no map that differs from its inverse
        dropped = _dropped(rng, slots, drop, count)
        index = np.full(slots, -1, np.int32)
        index[~dropped] = rng.permutation(rows)[: slots - count]
        if not capacity:
            index[dropped] = rng.permutation(np.arange(rows, slots))
        if not is_self_inverse(index):
            break
    return index


def padded_map(rng: np.random.Generator, tokens: int, rows: int, drop: str) -> npt.NDArray[np.int32]:
    """Token of each row, (rows,), with repeats; -1 for an empty row."""
    index = rng.integers(0, max(tokens, 1), rows).astype(np.int32)
    index[_dropped(rng, rows, drop, _drop_count(drop, rows))] = -1
    return index
