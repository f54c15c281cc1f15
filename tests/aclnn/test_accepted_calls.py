"""Unusual calls that both phases take, with the right values: views, no tokens, odd sizes, what is not read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from moegrad.aclnn import Session
from moegrad.tools import cases as case_tools
from moegrad.tools.compare import explain

from .calls import (
    BF16,
    EXPERTS,
    F16,
    F32,
    FINALIZE,
    HIDDEN,
    SLOTS,
    TOKENS,
    TOPK,
    UNPERMUTE,
    Arguments,
    Array,
    finalize,
    ints,
    names_of,
    nans,
    ones,
    ordered,
    plain,
    strided,
    unpermute,
)


def test_any_weight_dtype_runs_with_any_data_dtype(session: Session) -> None:
    for dtype in (F16, BF16, F32):
        arguments = finalize(dtype=dtype)
        session.run(FINALIZE, *ordered(FINALIZE, arguments))
        np.testing.assert_array_equal(arguments["grad_expanded_x"].astype(np.float32), 1)
        np.testing.assert_array_equal(arguments["grad_scales"], 2 * HIDDEN)


VIEWS: dict[str, Callable[[Array], Array]] = {
    "steps": lambda array: np.repeat(array, 2, axis=0)[::2],
    "transposed": lambda array: np.ascontiguousarray(array.T).T,
    "negative": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "inside": lambda array: np.pad(array, [(1, 1)] * array.ndim)[(slice(1, -1),) * array.ndim],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", [0, 1])
def test_strided_inputs_of_finalize(view: str, mode: int, session: Session) -> None:
    case = case_tools.Case(
        "finalize_routing_v2_grad", "scales_bias", "f16", "f32", 5, 3, 33, experts=4, capacity=5 * mode,
        drop_pad_mode=mode, drop="some" if mode else "none", seed=3,
    )  # fmt: skip
    given = case.arguments()
    inputs = {name: VIEWS[view](given[name]) for name in names_of(FINALIZE)[0]}
    for each in inputs.values():
        each.flags.writeable = False
    row, weight = np.full_like(given["expanded_x"], np.nan), np.full_like(given["scales"], np.nan)
    attributes = [given.get(name, 0) for name in names_of(FINALIZE)[1]]
    session.run(FINALIZE, *inputs.values(), *attributes, row, weight)
    assert explain(row, weight, case.expected()) is None


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("padded", [False, True])
def test_strided_inputs_of_unpermute(view: str, padded: bool, session: Session) -> None:
    mode = "padded_probs" if padded else "probs"
    sizes: Arguments = {"experts": 4, "capacity": 5, "drop": "some"} if padded else {}
    case = case_tools.Case("token_unpermute_grad", mode, "bf16", "f32", 5, 3, 33, seed=4, **sizes)
    given = case.arguments()
    inputs = {name: VIEWS[view](given[name]) for name in names_of(UNPERMUTE)[0]}
    row, weight = np.full_like(given["permuted_tokens"], np.nan), np.full_like(given["probs"], np.nan)
    session.run(UNPERMUTE, *inputs.values(), padded, None, row, weight)
    assert explain(row, weight, case.expected()) is None


@pytest.mark.parametrize("topk", [1, 3])
def test_no_tokens_dropless(topk: int, session: Session) -> None:
    none, weights = ones(0, HIDDEN), ones(0, topk)
    session.run(FINALIZE, none, ints(0), none, weights, None, None, 0, 0, 0, 0, nans(0, HIDDEN), nans(0, topk))
    session.run(FINALIZE, none, ints(0), None, None, None, None, 0, 0, 0, 0, nans(0, HIDDEN), None)
    session.run(UNPERMUTE, none, none, ints(0), weights, False, None, nans(0, HIDDEN), nans(0, topk))
    session.run(UNPERMUTE, none, none, ints(0), None, False, None, nans(0, HIDDEN), None)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_tokens_in_capacity_mode(weighted: bool, session: Session) -> None:
    row = nans(4, 8, 64)
    x, weights, gradient = (ones(4, 8, 64), ones(0, 2), nans(0, 2)) if weighted else (None, None, None)
    session.run(FINALIZE, ones(0, 64), ints(0), x, weights, None, None, 1, 0, 4, 8, row, gradient)
    assert row.tobytes() == bytes(row.nbytes)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_tokens_padded(weighted: bool, session: Session) -> None:
    row, index = nans(6, 5), np.full(6, -1, np.int32)
    weights, gradient = (ones(2, 3), nans(2, 3)) if weighted else (None, None)
    session.run(UNPERMUTE, ones(6, 5), ones(0, 5), index, weights, True, [0, 5], row, gradient)
    assert row.tobytes() == bytes(row.nbytes)
    assert gradient is None or gradient.tobytes() == bytes(gradient.nbytes)


def test_restore_shape_is_not_read_without_padded_mode(session: Session) -> None:
    arguments = unpermute(restore_shape=[17, 4])
    session.run(UNPERMUTE, *ordered(UNPERMUTE, arguments))
    np.testing.assert_array_equal(arguments["probs_grad"], HIDDEN)


@pytest.mark.parametrize("padded", [False, True])
def test_no_restore_shape(padded: bool, session: Session) -> None:
    nothings: list[list[int] | None] = [None, []]
    for nothing in nothings:
        arguments = unpermute(padded, restore_shape=nothing)
        session.run(UNPERMUTE, *ordered(UNPERMUTE, arguments))
        inactive = arguments["sorted_indices"].reshape(arguments["probs"].shape) < 0
        np.testing.assert_array_equal(arguments["probs_grad"], np.where(inactive, 0, HIDDEN))


def test_all_slots_inactive(session: Session) -> None:
    arguments = finalize(1, expanded_row_idx=np.full(SLOTS, -1, np.int32))
    session.run(FINALIZE, *ordered(FINALIZE, arguments))
    assert arguments["grad_expanded_x"].tobytes() == bytes(arguments["grad_expanded_x"].nbytes)
    np.testing.assert_array_equal(arguments["grad_scales"], HIDDEN)  # the bias


def test_capacity_beyond_the_number_of_tokens(session: Session) -> None:
    row = nans(2, 50, 3)
    session.run(FINALIZE, ones(2, 3), np.array([99, 7], np.int32), None, None, None, None, 1, 0, 2, 50, row, None)
    filled = row.reshape(100, 3)
    assert (filled[[99, 7]] == 1).all()
    assert np.delete(filled, [99, 7], axis=0).tobytes() == bytes(98 * 3 * 4)


@pytest.mark.parametrize("hidden", [1, 7, 33])
def test_one_choice_and_odd_hidden_sizes(hidden: int, session: Session) -> None:
    grad = np.arange(5 * hidden, dtype=np.float32).reshape(5, hidden)
    row, gradient = nans(5, hidden), nans(5, 1)
    index = np.array([2, 0, 4, 1, 3], np.int32)
    session.run(FINALIZE, grad, index, ones(5, hidden), ones(5, 1), None, None, 0, 0, 0, 0, row, gradient)
    np.testing.assert_array_equal(row[index], grad)
    np.testing.assert_allclose(gradient[:, 0], grad.sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("given_gradient", ["null", "fits", "other shape", "strided"])
def test_a_weight_gradient_without_weights_is_not_read(given_gradient: str, session: Session) -> None:
    gradient = {
        "null": None,
        "fits": nans(TOKENS, TOPK),
        "other shape": nans(7),
        "strided": strided(nans(TOKENS, TOPK)),
    }[given_gradient]
    arguments = plain(grad_scales=gradient)
    session.run(FINALIZE, *ordered(FINALIZE, arguments))
    assert (arguments["grad_expanded_x"] == 1).all()
    assert gradient is None or np.isnan(gradient).all()
    arguments = unpermute(probs=None, probs_grad=gradient)
    session.run(UNPERMUTE, *ordered(UNPERMUTE, arguments))
    assert (arguments["permuted_tokens_grad"] == 1).all()
    assert gradient is None or np.isnan(gradient).all()


def test_bias_and_experts_without_weights_are_not_used(session: Session) -> None:
    arguments = plain(bias=ones(EXPERTS, HIDDEN), expert_idx=np.full((TOKENS, TOPK), 99, np.int32))
    session.run(FINALIZE, *ordered(FINALIZE, arguments))
    assert (arguments["grad_expanded_x"] == 1).all()


@pytest.mark.parametrize("limit", [0, -1, SLOTS, SLOTS + 1, 2**62, -(2**63)])
def test_an_active_num_that_limits_nothing(limit: int, session: Session) -> None:
    arguments = finalize(active_num=limit)
    session.run(FINALIZE, *ordered(FINALIZE, arguments))
    assert (arguments["grad_expanded_x"] == 1).all()


@pytest.mark.parametrize("chip", ["session", "session_950"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 5, 6])
def test_fewer_permuted_rows(chip: str, weighted: bool, rows: int, request: pytest.FixtureRequest) -> None:
    """Truncation to any number of rows; Ascend 950 runs it as the other operator."""
    acl: Session = request.getfixturevalue(chip)
    drop = "none" if rows == 6 else "some" if rows else "all"
    mode = "probs" if weighted else "plain"
    case = case_tools.Case(
        "token_unpermute_grad", mode, "bf16", "f32" if weighted else None, 3, 2, 17, rows=rows, drop=drop, seed=5
    )
    given = case.arguments()
    row = np.full_like(given["permuted_tokens"], np.nan)
    weight = np.full_like(given["probs"], np.nan) if weighted else None
    inputs = [given.get(name) for name in names_of(UNPERMUTE)[0]]
    acl.run(UNPERMUTE, *inputs, False, None, row, weight)
    assert explain(row, weight, case.expected()) is None
