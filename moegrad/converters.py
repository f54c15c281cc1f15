"""Checked conversions between the conventions that index maps come in.

The operators take the map from slots to rows, in token-major slot order: slot t * K + k is choice k of token
t. Other programs keep the inverse map (which slot each row came from) or number slots choice-major (slot k *
R + t). A map taken for the other kind is a valid map that gives wrong gradients, hence functions with names.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import _native
from .arrays import Array, as_array, like

INT32_MAX = 2**31 - 1


def invert_row_map(row_map: Any, size: int | None = None) -> Any:
    """Turn a map from slots to rows into the map from rows to slots, or the other way round.

    row_map: (N,), any integer dtype; distinct values in [0, size - 1], or -1 (any number of times) for a slot
        that was dropped or a row that is empty.
    size: the number of values the map may take, and the length of the result: M to invert a slot-to-row map,
        N to invert a row-to-slot map. By default N, which suits a permutation.

    Returns int32 of shape (size,), the kind of array that row_map is: result[row_map[i]] == i, and -1 where
    nobody points. Inverting twice, with the right sizes, gives row_map back.
    Raises TypeError for other dtypes, ValueError for other ranks, values out of range and repeated values.
    """
    array = _integers("invert_row_map", "row_map", row_map)
    extent = array.shape[0] if size is None else _size("invert_row_map", "size", size)
    narrow = _narrow("invert_row_map", "row_map", array, -1, extent)
    bad = _native.find_bad_index(narrow, -1, extent, True)
    if bad is not None:
        first = int(np.flatnonzero(narrow == narrow[bad[1]])[0])
        got = f"{narrow[bad[1]]} at [{first}] and again at [{bad[1]}]"
        raise ValueError(f"invert_row_map: row_map: expected distinct values in [-1, {extent - 1}], got {got}")
    inverse = np.full(extent, -1, np.int32)
    named = np.flatnonzero(narrow >= 0)
    inverse[narrow[named]] = named
    return like(row_map, inverse)


def choice_major_to_token_major(idx: Any, tokens: int, topk: int) -> Any:
    """Reorder a map whose slots are numbered choice by choice into the token-major order the operators take.

    idx: (tokens * topk,), any integer dtype; idx[k * tokens + t] belongs to choice k of token t. Only the
        order of the slots changes; the values, which number rows, stay as they are.

    Returns int32 of shape (tokens * topk,), the kind of array that idx is: result[t * topk + k] == idx[k *
    tokens + t]. With the two numbers exchanged it converts the other way.
    Raises TypeError for other dtypes, ValueError for another length, and for values that int32 cannot hold.
    """
    array = _integers("choice_major_to_token_major", "idx", idx)
    rows = _size("choice_major_to_token_major", "tokens", tokens)
    columns = _size("choice_major_to_token_major", "topk", topk)
    if array.shape[0] != rows * columns:
        expected = f"tokens * topk = {rows} * {columns} = {rows * columns} elements"
        raise ValueError(f"choice_major_to_token_major: idx: expected {expected}, got shape {array.shape}")
    narrow = _narrow("choice_major_to_token_major", "idx", array, -INT32_MAX - 1, INT32_MAX + 1)
    return like(idx, narrow.reshape(columns, rows).T.flatten())


def _integers(function: str, name: str, value: Any) -> Array:
    """`value` as a one-dimensional integer array."""
    array = as_array(f"{function}: {name}", value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{function}: {name}: expected an integer dtype, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{function}: {name}: expected shape (N,), got shape {array.shape}")
    return array


def _size(function: str, name: str, value: Any) -> int:
    """`value` as a count that int32 indices can reach."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}: {name}: expected an integer, got {value!r} ({type(value).__name__})")
    number = operator.index(value)
    if not 0 <= number <= INT32_MAX + 1:
        raise ValueError(f"{function}: {name}: expected an integer in [0, {INT32_MAX + 1}], got {number}")
    return number


def _narrow(function: str, name: str, array: Array, low: int, high: int) -> Array:
    """`array` as dense int32; ValueError naming the first value outside [low, high)."""
    outside = np.flatnonzero((array < low) | (array >= high))
    if outside.size:
        first = int(outside[0])
        got = f"{array[first]} at [{first}]"
        raise ValueError(f"{function}: {name}: expected values in [{low}, {high - 1}], got {got}")
    return np.ascontiguousarray(array, dtype=np.int32)
