"""Refusals of shapes, index values and outputs, with their messages (field cases 11, 18)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
Row = tuple[str, dict[str, Any], str]
F32 = np.dtype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def strided(shape: tuple[int, ...]) -> Array:
    return np.full((*shape[:-1], 2 * shape[-1]), 7, F32)[..., ::2]


def frozen(shape: tuple[int, ...]) -> Array:
    array = np.full(shape, 7, F32)
    array.flags.writeable = False
    return array


def unaligned(shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape)) * 4
    return np.zeros(size + 4, np.uint8)[1 : size + 1].view(F32).reshape(shape)


SHAPES: list[Row] = [
    ("finalize", {"drop_pad_mode": 2}, "drop_pad_mode: expected 0 (dropless) or 1 (drop/pad), got 2"),
    ("finalize", {"drop_pad_mode": -1}, "drop_pad_mode: expected 0 (dropless) or 1 (drop/pad), got -1"),
    ("drop_pad", {"expert_num": 0}, "expert_num: expected a positive integer with drop_pad_mode 1, got 0"),
    (
        "drop_pad",
        {"expert_capacity": -4},
        "expert_capacity: expected a positive integer with drop_pad_mode 1, got -4",
    ),
    (
        "drop_pad",
        {"expert_num": 2**40, "expert_capacity": 2**40},
        f"expert_capacity: expected expert_num * expert_capacity below 2**63, got {2**40} * {2**40}",
    ),
    ("finalize", {"grad_y": np.ones((1, 2, 4), F32)}, "grad_y: expected shape (R, H), got shape (1, 2, 4)"),
    (
        "finalize",
        {"expanded_row_idx": ints(5, 0, 2, 4, 1, 3).reshape(2, 3)},
        "expanded_row_idx: expected shape (N,), got shape (2, 3)",
    ),
    (
        "finalize",
        {"expanded_x": np.ones((6, 5), F32)},
        "expanded_x: expected shape (M, H) = (6, 4), got shape (6, 5)",
    ),
    (
        "finalize",
        {"expanded_x": np.ones((5, 4), F32)},
        "expanded_x: expected M = N = 6 rows, one for each slot, got shape (5, 4)",
    ),
    (
        "finalize",
        {"active_num": 4},
        "expanded_x: expected M = active_num = 4 rows, got shape (6, 4)",
    ),
    (
        "drop_pad",
        {"expanded_x": np.ones((8, 4), F32)},
        "expanded_x: expected shape (E, C, H) = (2, 4, 4), got shape (8, 4)",
    ),
    (
        "drop_pad",
        {"expanded_x": np.ones((4, 2, 4), F32)},
        "expanded_x: expected shape (E, C, H) = (2, 4, 4), got shape (4, 2, 4)",
    ),
    (
        "drop_pad",
        {"bias": np.ones((3, 4), F32)},
        "bias: expected shape (E, H) = (2, 4), got shape (3, 4)",
    ),
    (
        "finalize",
        {"bias": np.ones((0, 4), F32)},
        "bias: expected at least one expert, got shape (0, 4)",
    ),
    (
        "finalize",
        {"scales": np.ones((3, 2), F32)},
        "scales: expected shape (R, K) = (2, K), got shape (3, 2)",
    ),
    (
        "finalize",
        {"scales": np.ones(6, F32)},
        "scales: expected shape (R, K) = (2, K), got shape (6,)",
    ),
    (
        "finalize",
        {"expert_idx": np.zeros((2, 2), np.int32)},
        "expert_idx: expected shape (R, K) = (2, 3), got shape (2, 2)",
    ),
    (
        "unpermute",
        {"probs": np.ones((2, 2), F32)},
        "probs: expected shape (R, K) = (2, 3) for the 6 elements of sorted_indices, got shape (2, 2)",
    ),
    (
        "unpermute",
        {"sorted_indices": ints(0, 1, 2, 3, 4)},
        "sorted_indices: expected N = R * K = 6 elements for probs of shape (2, 3), got shape (5,)",
    ),
    (
        "unpermute",
        {"sorted_indices": ints(0, 1, 2, 3, 4), "probs": None, "out": None},
        "sorted_indices: expected N = R * K elements, a multiple of R = 2, got shape (5,)",
    ),
    (
        "unpermute",
        {"permuted_tokens": np.ones((7, 4), F32)},
        "permuted_tokens: expected at most N = 6 rows, one for each slot, got shape (7, 4)",
    ),
    (
        "unpermute",
        {"unpermuted_tokens_grad": np.ones((2, 5), F32)},
        "unpermuted_tokens_grad: expected shape (R, H) = (2, 4), got shape (2, 5)",
    ),
    (
        "unpermute",
        {"permuted_tokens": np.ones((6, 0), F32), "unpermuted_tokens_grad": np.ones((2, 0), F32)},
        "unpermuted_tokens_grad: expected a hidden size H of at least 1, got shape (2, 0)",
    ),
    (
        "padded",
        {"sorted_indices": ints(0, 1, 0)},
        "sorted_indices: expected shape (M,) = (6,), got shape (3,)",
    ),
    (
        "padded",
        {"probs": np.ones((2, 2), F32)},
        "probs: expected M = 6 elements in any shape, got shape (2, 2)",
    ),
    (
        "padded",
        {"restore_shape": (4, 2)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (4, 2)",
    ),
    (
        "padded",
        {"restore_shape": (2, 4, 1)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (2, 4, 1)",
    ),
    (
        "unpermute",
        {"out": (np.full((5, 4), 7, F32), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected shape (6, 4), got shape (5, 4)",
    ),
    (
        "drop_pad",
        {"out": (np.full((8, 4), 7, F32), np.full((2, 3), 7, F32))},
        "grad_expanded_x in out: expected shape (2, 4, 4), got shape (8, 4)",
    ),
    (
        "unpermute",
        {"out": (np.full((6, 4), 7, F32), np.full((3, 2), 7, F32))},
        "probs_grad in out: expected shape (2, 3), got shape (3, 2)",
    ),
]

VALUES: list[Row] = [
    (
        "finalize",
        {"expanded_row_idx": ints(5, 0, 2, 4, 1, 6)},
        "expanded_row_idx: expected distinct values in [0, 5], got 6 at [5]",
    ),
    (
        "finalize",
        {"expanded_row_idx": ints(5, 0, -1, 4, 1, 3)},
        "expanded_row_idx: expected distinct values in [0, 5], got -1 at [2]",
    ),
    (
        "finalize",
        {"expanded_row_idx": ints(0, 0, 1, 2, 3, 4)},
        "expanded_row_idx: expected distinct values in [0, 5], got 0 at [0] and again at [1]",
    ),
    (
        "drop_pad",
        {"expanded_row_idx": ints(-1, 0, 8, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got 8 at [2]",
    ),
    (
        "drop_pad",
        {"expanded_row_idx": ints(-1, 0, -2, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got -2 at [2]",
    ),
    (
        "drop_pad",
        {"expanded_row_idx": ints(-1, 3, 7, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got 3 at [1] and again at [4]",
    ),
    (
        "finalize",
        {"expert_idx": np.array([[0, 1, 0], [1, 2, 1]], np.int32)},
        "expert_idx: expected values in [0, 1], got 2 at [1, 1]",
    ),
    (
        "finalize",
        {"expert_idx": np.array([[0, -1, 0], [1, 0, 1]], np.int32)},
        "expert_idx: expected values in [0, 1], got -1 at [0, 1]",
    ),
    (
        "unpermute",
        {"sorted_indices": ints(-(2**31), 0, 2, 4, 1, 3)},
        "sorted_indices: expected distinct values in [0, 5], got -2147483648 at [0]",
    ),
    (
        "unpermute",
        {"sorted_indices": ints(5, 0, 2, 4, 1, 5)},
        "sorted_indices: expected distinct values in [0, 5], got 5 at [0] and again at [5]",
    ),
    (
        "padded",
        {"sorted_indices": ints(0, 1, -1, 2, 0, 0)},
        "sorted_indices: expected values in [-1, 1], got 2 at [3]",
    ),
]

MEMORY: list[Row] = [
    (
        "unpermute",
        {"out": (strided((6, 4)), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected a C-contiguous array, got shape (6, 4), strides (32, 8), writeable=True",
    ),
    (
        "unpermute",
        {"out": (np.full((6, 4), 7, F32), frozen((2, 3)))},
        "probs_grad in out: expected a writeable array, got shape (2, 3), strides (12, 4), writeable=False",
    ),
    (
        "unpermute",
        {"out": (unaligned((6, 4)), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected an aligned array, got shape (6, 4), strides (16, 4), writeable=True",
    ),
]


@pytest.mark.parametrize(("name", "changes", "message"), SHAPES, ids=[row[2][:60] for row in SHAPES])
def test_shapes(calls: Any, name: str, changes: dict[str, Any], message: str) -> None:
    calls.refused(ValueError, name, changes, message)


@pytest.mark.parametrize(("name", "changes", "message"), VALUES, ids=[row[2][:60] for row in VALUES])
def test_values(calls: Any, name: str, changes: dict[str, Any], message: str) -> None:
    calls.refused(ValueError, name, changes, message)


@pytest.mark.parametrize(("name", "changes", "message"), MEMORY, ids=[row[2][:60] for row in MEMORY])
def test_memory(calls: Any, name: str, changes: dict[str, Any], message: str) -> None:
    calls.refused(ValueError, name, changes, message)
