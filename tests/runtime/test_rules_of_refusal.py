"""What holds for all refusals: their order, overlapping outputs, and what the switches do not switch off."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import moegrad

BUILDERS = ("finalize", "drop_pad", "unpermute", "padded")
F32 = np.dtype(np.float32)


def ints(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


@pytest.mark.parametrize("name", BUILDERS)
def test_the_unchanged_calls_are_fine(calls: Any, name: str) -> None:
    call = calls.build(name)
    rows, weights = calls.operator(name)(**call)
    assert rows is call["out"][0]
    assert weights is call["out"][1]
    assert not (rows == 7).any()


@pytest.mark.parametrize("name", BUILDERS)
def test_outputs_may_not_overlap_any_other_array(calls: Any, name: str) -> None:
    shared = np.ones(64, F32)
    inputs = [key for key, value in calls.build(name).items() if isinstance(value, np.ndarray) and value.dtype == F32]
    for key, position in itertools.product(inputs, (0, 1)):
        call = calls.build(name)
        view = shared[: call[key].size].reshape(call[key].shape)
        output = call["out"][position]
        start = min(call[key].size - 1, shared.size - output.size)
        out = list(call["out"])
        out[position] = shared[start : start + output.size].reshape(output.shape)
        call |= {key: view, "out": tuple(out)}
        with pytest.raises(ValueError, match=f"in out: expected memory of its own, got some shared with {key}$"):
            calls.operator(name)(**call)
        assert (shared == 1).all()


def test_outputs_may_not_overlap_each_other(calls: Any) -> None:
    shared = np.full(30, 7, F32)
    out = (shared[:24].reshape(6, 4), shared[23:29].reshape(2, 3))
    with pytest.raises(ValueError, match=r"probs_grad in out: .* shared with permuted_tokens_grad$"):
        calls.run("unpermute", out=out)
    assert (shared == 7).all()


def test_an_output_in_the_gaps_of_an_input_is_fine() -> None:
    shared = np.zeros((2, 4), F32)
    shared[:, :1] = [[1], [2]]
    rows = shared[0, 1:3].reshape(2, 1)
    got, _ = moegrad.finalize_routing_v2_grad(shared[:, :1], ints(1, 0), out=(rows, None))
    assert got is rows
    assert rows.tolist() == [[2], [1]]


ORDER: list[tuple[str, dict[str, Any]]] = [
    ("expanded_x", {"expanded_x": None}),
    ("scales", {"scales": np.ones((2, 3))}),
    ("expert_idx", {"expert_idx": np.zeros((2, 2), np.int32)}),
    ("expanded_row_idx", {"expanded_row_idx": ints(9, 0, 2, 4, 1, 3)}),
    ("grad_expanded_x in out", {"out": (np.full((6, 8), 7, F32)[:, ::2], np.full((2, 3), 7, F32))}),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_checks_come_in_the_order_of_the_contract(calls: Any, first: int) -> None:
    """All that is wrong from `first` on is wrong at once; the first is what is said."""
    changes: dict[str, Any] = {}
    for _, wrong in ORDER[first:]:
        changes |= wrong
    with pytest.raises((ValueError, TypeError), match=f"^finalize_routing_v2_grad: {ORDER[first][0]}: "):
        calls.run("finalize", **changes)


def test_check_indices_switches_off_nothing_but_values(calls: Any) -> None:
    rows, _ = moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(5, -7), check_indices=False)
    assert rows.tolist() == [[0], [0]]
    calls.run("unpermute", sorted_indices=ints(0, 0, 0, 2**31 - 1, 6, -1), check_indices=False)
    wild = np.array([[0, 2, -1], [1, 2**31 - 1, -(2**31)]], np.int32)
    calls.run("finalize", expert_idx=wild, check_indices=False)
    with pytest.raises(TypeError, match="int64"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), np.arange(2), check_indices=False)
    shared = np.ones((2, 1), F32)
    with pytest.raises(ValueError, match="expected memory of its own"):
        moegrad.finalize_routing_v2_grad(shared, ints(1, 0), out=(shared, None), check_indices=False)


def test_integers_of_numpy_and_flags_of_numpy_are_welcome(calls: Any) -> None:
    calls.run("drop_pad", drop_pad_mode=np.int8(1), expert_num=np.int64(2), expert_capacity=np.uint16(4))
    calls.run("padded", padded_mode=np.True_, check_indices=np.False_)


def test_arguments_without_a_use_are_checked_all_the_same() -> None:
    with pytest.raises(ValueError, match="expanded_x: expected shape"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(1, 0), np.ones((2, 2), F32))
    with pytest.raises(ValueError, match="expert_idx: expected an array with bias"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(1, 0), bias=np.ones((2, 1), F32))
