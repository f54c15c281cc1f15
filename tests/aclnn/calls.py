"""Calls of both operators with good arguments, each of which a test may replace, and the codes of refused ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from moegrad.aclnn import FUNCTIONS

Array = npt.NDArray[Any]
Arguments = dict[str, Any]

FINALIZE = "aclnnMoeFinalizeRoutingV2Grad"
UNPERMUTE = "aclnnMoeTokenUnpermuteGrad"
MISSING, INVALID, TILING = 161001, 161002, 561002

F16, F32, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
TOKENS, TOPK, HIDDEN, EXPERTS, CAPACITY = 3, 2, 4, 2, 5
SLOTS, ROWS = TOKENS * TOPK, EXPERTS * CAPACITY
"""Ten rows in capacity mode, so that no size of it is one of another."""


def names_of(name: str) -> tuple[list[str], list[str], list[str]]:
    """Inputs, attributes and outputs in the order of the C prototype."""
    op = FUNCTIONS[name]
    return [row.name for row in op.inputs], [row for row, _ in op.attributes], [row.name for row in op.outputs]


def ordered(name: str, arguments: Arguments) -> list[Any]:
    return [arguments[each] for part in names_of(name) for each in part]


def ones(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return np.ones(shape, dtype)


def nans(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return np.full(shape, np.nan, dtype)


def ints(*shape: int) -> Array:
    return np.zeros(shape, np.int32)


def finalize(mode: int = 0, dtype: npt.DTypeLike = np.float32, **changes: Any) -> Arguments:
    """A call with everything that the operator takes; `changes` replace arguments."""
    rows = (EXPERTS, CAPACITY, HIDDEN) if mode == 1 else (SLOTS, HIDDEN)
    index = [9, 0, -1, 4, 1, 3] if mode == 1 else [5, 0, 2, 4, 1, 3]
    arguments = {
        "grad_y": ones(TOKENS, HIDDEN, dtype=dtype),
        "expanded_row_idx": np.array(index, np.int32),
        "expanded_x": ones(*rows, dtype=dtype),
        "scales": ones(TOKENS, TOPK),
        "expert_idx": ints(TOKENS, TOPK),
        "bias": ones(EXPERTS, HIDDEN, dtype=dtype),
        "drop_pad_mode": mode,
        "active_num": 0,
        "expert_num": EXPERTS if mode == 1 else 0,
        "expert_capacity": CAPACITY if mode == 1 else 0,
        "grad_expanded_x": nans(*rows, dtype=dtype),
        "grad_scales": nans(TOKENS, TOPK),
    }
    assert changes.keys() <= arguments.keys()
    return arguments | changes


def plain(**changes: Any) -> Arguments:
    """finalize_routing_v2_grad without weights."""
    without: Arguments = dict.fromkeys(("expanded_x", "scales", "expert_idx", "bias", "grad_scales"))
    return finalize(**(without | changes))


def unpermute(padded: bool = False, dtype: npt.DTypeLike = np.float32, **changes: Any) -> Arguments:
    rows = ROWS if padded else SLOTS
    weights = (EXPERTS, CAPACITY) if padded else (TOKENS, TOPK)
    index = [1, 0, 0, -1, 2, 2, -1, 1, 0, 2] if padded else [5, 0, 2, 4, 1, 3]
    arguments = {
        "permuted_tokens": ones(rows, HIDDEN, dtype=dtype),
        "unpermuted_tokens_grad": ones(TOKENS, HIDDEN, dtype=dtype),
        "sorted_indices": np.array(index, np.int32),
        "probs": ones(*weights),
        "padded_mode": padded,
        "restore_shape": [TOKENS, HIDDEN] if padded else None,
        "permuted_tokens_grad": nans(rows, HIDDEN, dtype=dtype),
        "probs_grad": nans(*weights),
    }
    assert changes.keys() <= arguments.keys()
    return arguments | changes


def strided(output: Array) -> Array:
    """The same shape in memory of twice the size."""
    wide = np.full((*output.shape[:-1], 2 * output.shape[-1]), np.nan, output.dtype)
    return wide[..., ::2]


BOTH = pytest.mark.parametrize(
    ("name", "make"), [(FINALIZE, finalize), (UNPERMUTE, unpermute)], ids=["finalize", "unpermute"]
)
