"""Refusals of missing arguments, types and dtypes, with their messages (field cases 11, 19)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
Row = tuple[str, dict[str, Any], str]
F32 = np.dtype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def other_bytes() -> Array:
    return np.ones((2, 4), F32).astype(F32.newbyteorder())


def masked() -> Any:
    return np.ma.masked_array(np.ones((2, 4), F32))


MISSING: list[Row] = [
    ("finalize", {"grad_y": None}, "grad_y: expected an array, got None"),
    ("finalize", {"expanded_row_idx": None}, "expanded_row_idx: expected an array, got None"),
    ("finalize", {"expanded_x": None}, "expanded_x: expected an array with scales, got None"),
    ("finalize", {"expert_idx": None}, "expert_idx: expected an array with bias, got None"),
    ("unpermute", {"permuted_tokens": None}, "permuted_tokens: expected an array, got None"),
    ("unpermute", {"unpermuted_tokens_grad": None}, "unpermuted_tokens_grad: expected an array, got None"),
    ("unpermute", {"sorted_indices": None}, "sorted_indices: expected an array, got None"),
    (
        "unpermute",
        {"out": (None, np.ones((2, 3), F32))},
        "permuted_tokens_grad in out: expected an array, got None",
    ),
    (
        "unpermute",
        {"out": (np.full((6, 4), 7, F32), None)},
        "probs_grad in out: expected an array with probs, got None",
    ),
    (
        "unpermute",
        {"probs": None},
        "probs_grad in out: expected None without probs, got ndarray",
    ),
]

TYPES: list[Row] = [
    ("finalize", {"out": np.ones(2)}, "out: expected a pair (grad_expanded_x, grad_scales), got ndarray"),
    ("finalize", {"out": (1,)}, "out: expected a pair (grad_expanded_x, grad_scales), got 1 elements"),
    (
        "finalize",
        {"grad_y": [[1.0]]},
        "grad_y: expected an array (NumPy's, or one with DLPack), got list",
    ),
    (
        "finalize",
        {"out": (3, np.full((2, 3), 7, F32))},
        "grad_expanded_x in out: expected an array (NumPy's, or one with DLPack), got int",
    ),
    (
        "finalize",
        {"grad_y": masked()},
        "grad_y: expected a plain array, got a masked one (use value.filled(0))",
    ),
    (
        "finalize",
        {"grad_y": np.ones((2, 4))},
        "grad_y: expected dtype float16, bfloat16 or float32, got float64",
    ),
    (
        "finalize",
        {"grad_y": np.ones((2, 4), np.int32)},
        "grad_y: expected dtype float16, bfloat16 or float32, got int32",
    ),
    (
        "finalize",
        {"grad_y": np.ones((2, 4), np.uint16)},
        "grad_y: expected dtype float16, bfloat16 or float32, got uint16"
        " (bits of bfloat16 need their dtype: use array.view(ml_dtypes.bfloat16))",
    ),
    (
        "finalize",
        {"grad_y": other_bytes()},
        "grad_y: expected dtype float16, bfloat16 or float32, got >f4 (float32 in reverse byte order)"
        " (another byte order than this machine's; use array.astype('float32'))",
    ),
    (
        "finalize",
        {"expanded_x": np.ones((6, 4), ml_dtypes.bfloat16)},
        "expanded_x: expected dtype float32, the dtype of grad_y, got bfloat16",
    ),
    (
        "finalize",
        {"bias": np.ones((2, 4), np.float16)},
        "bias: expected dtype float32, the dtype of grad_y, got float16",
    ),
    (
        "finalize",
        {"scales": np.ones((2, 3))},
        "scales: expected dtype float16, bfloat16 or float32, got float64",
    ),
    (
        "finalize",
        {"expanded_row_idx": np.arange(6)},
        "expanded_row_idx: expected dtype int32, got int64 (use array.astype(numpy.int32))",
    ),
    (
        "finalize",
        {"expanded_row_idx": np.array([2**31, 0, 1, 2, 3, 4])},
        "expanded_row_idx: expected dtype int32, got int64 (use array.astype(numpy.int32))",
    ),
    (
        "finalize",
        {"expanded_row_idx": np.arange(6, dtype=F32)},
        "expanded_row_idx: expected dtype int32, got float32",
    ),
    (
        "finalize",
        {"expert_idx": np.zeros((2, 3), np.uint32)},
        "expert_idx: expected dtype int32, got uint32 (use array.astype(numpy.int32))",
    ),
    (
        "unpermute",
        {"permuted_tokens": np.ones((6, 4), np.float16)},
        "permuted_tokens: expected dtype float32, the dtype of unpermuted_tokens_grad, got float16",
    ),
    (
        "unpermute",
        {"out": (np.ones((6, 4)), np.ones((2, 3), F32))},
        "permuted_tokens_grad in out: expected dtype float32, got float64",
    ),
    (
        "unpermute",
        {"out": (np.full((6, 4), 7, F32), np.ones((2, 3), np.float16))},
        "probs_grad in out: expected dtype float32, got float16",
    ),
    ("finalize", {"drop_pad_mode": True}, "drop_pad_mode: expected an integer, got True (bool)"),
    ("finalize", {"drop_pad_mode": 0.0}, "drop_pad_mode: expected an integer, got 0.0 (float)"),
    (
        "finalize",
        {"active_num": np.float32(1)},
        f"active_num: expected an integer, got {np.float32(1)!r} (float32)",
    ),
    ("finalize", {"expert_num": None}, "expert_num: expected an integer, got None (NoneType)"),
    ("finalize", {"expert_capacity": "3"}, "expert_capacity: expected an integer, got '3' (str)"),
    ("finalize", {"check_indices": 1}, "check_indices: expected True or False, got 1 (int)"),
    ("unpermute", {"padded_mode": 1}, "padded_mode: expected True or False, got 1 (int)"),
    ("unpermute", {"check_indices": None}, "check_indices: expected True or False, got None (NoneType)"),
    (
        "padded",
        {"restore_shape": 2},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got 2",
    ),
    (
        "padded",
        {"restore_shape": (2.0, 4)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (2.0, 4)",
    ),
]


@pytest.mark.parametrize(("name", "changes", "message"), MISSING, ids=[row[2][:60] for row in MISSING])
def test_missing(calls: Any, name: str, changes: dict[str, Any], message: str) -> None:
    calls.refused(ValueError, name, changes, message)


@pytest.mark.parametrize(("name", "changes", "message"), TYPES, ids=[row[2][:60] for row in TYPES])
def test_types(calls: Any, name: str, changes: dict[str, Any], message: str) -> None:
    calls.refused(TypeError, name, changes, message)
