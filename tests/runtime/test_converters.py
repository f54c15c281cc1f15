"""Maps turned round and reordered (field cases 7 and 8), and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moegrad import choice_major_to_token_major, finalize_routing_v2_grad, invert_row_map


@given(
    st.permutations(list(range(9))),
    st.sets(st.integers(0, 8)),
    st.sampled_from(["int32", "int64", "int16", ">i4"]),
)
def test_inverting_twice_gives_the_map_back(order: list[int], dropped: set[int], dtype: str) -> None:
    slots = np.array([-1 if row in dropped else row for row in order], dtype)
    rows = invert_row_map(slots, 12)
    assert (rows.shape, rows.dtype) == ((12,), np.int32)
    for slot, row in enumerate(slots):
        assert row == -1 or rows[row] == slot
    assert (rows == -1).sum() == 12 - (slots >= 0).sum()
    assert invert_row_map(rows, 9).tolist() == slots.tolist()


def test_the_example_that_is_not_its_own_inverse() -> None:
    inverse = invert_row_map(np.array([1, 3, 0, 2], np.int32))
    assert inverse.tolist() == [2, 0, 3, 1]
    rows, _ = finalize_routing_v2_grad(np.array([[1], [2], [3], [4]], np.float32), inverse)
    assert rows.ravel().tolist() == [2, 4, 1, 3]


def test_choice_major_maps() -> None:
    choice_major = np.array([0, 2, 1, 3], np.int64)  # token 0 to rows 0 and 1, token 1 to rows 2 and 3
    idx = choice_major_to_token_major(choice_major, 2, 2)
    assert (idx.tolist(), idx.dtype) == ([0, 1, 2, 3], np.int32)
    rows, _ = finalize_routing_v2_grad(np.array([[1], [10]], np.float32), idx)
    assert rows.ravel().tolist() == [1, 1, 10, 10]


@given(st.integers(0, 5), st.integers(0, 4))
def test_choice_major_to_token_major_and_back(tokens: int, topk: int) -> None:
    idx = np.random.default_rng(tokens).permutation(tokens * topk).astype(np.int32)
    there = choice_major_to_token_major(idx, tokens, topk)
    for t in range(tokens):
        for k in range(topk):
            assert there[t * topk + k] == idx[k * tokens + t]
    assert choice_major_to_token_major(there, topk, tokens).tolist() == idx.tolist()
    assert not np.shares_memory(there, idx)


REFUSALS: list[tuple[type[Exception], Any, tuple[Any, ...], str]] = [
    (
        TypeError,
        invert_row_map,
        ([0, 1],),
        "row_map: expected an array (NumPy's, or one with DLPack), got list",
    ),
    (TypeError, invert_row_map, (np.ones(2),), "row_map: expected an integer dtype, got float64"),
    (ValueError, invert_row_map, (np.ones((2, 1), int),), "row_map: expected shape (N,), got shape (2, 1)"),
    (ValueError, invert_row_map, (np.array([0, 2]),), "row_map: expected values in [-1, 1], got 2 at [1]"),
    (
        ValueError,
        invert_row_map,
        (np.array([0, -2]), 5),
        "row_map: expected values in [-1, 4], got -2 at [1]",
    ),
    (
        ValueError,
        invert_row_map,
        (np.array([2**40, 0]),),
        f"row_map: expected values in [-1, 1], got {2**40} at [0]",
    ),
    (
        ValueError,
        invert_row_map,
        (np.array([3, 1, 3]), 4),
        "row_map: expected distinct values in [-1, 3], got 3 at [0] and again at [2]",
    ),
    (TypeError, invert_row_map, (np.array([0]), 1.0), "size: expected an integer, got 1.0 (float)"),
    (ValueError, invert_row_map, (np.array([0]), -1), f"size: expected an integer in [0, {2**31}], got -1"),
    (
        ValueError,
        choice_major_to_token_major,
        (np.arange(5), 2, 3),
        "idx: expected tokens * topk = 2 * 3 = 6 elements, got shape (5,)",
    ),
    (
        TypeError,
        choice_major_to_token_major,
        (np.arange(6), True, 6),
        "tokens: expected an integer, got True (bool)",
    ),
    (
        ValueError,
        choice_major_to_token_major,
        (np.array([2**31]), 1, 1),
        f"idx: expected values in [{-(2**31)}, {2**31 - 1}], got {2**31} at [0]",
    ),
]


@pytest.mark.parametrize(("error", "function", "arguments", "message"), REFUSALS, ids=[row[3][:50] for row in REFUSALS])
def test_refusals(error: type[Exception], function: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(error) as refused:
        function(*arguments)
    assert str(refused.value) == f"{function.__name__}: {message}"
