"""The case generator: determinism, valid inputs, and coverage of what the contract names."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from moegrad.tools.cases import DROPS, DTYPES, MODES, VALUES, Case, enumerate_cases, is_self_inverse
from moegrad.tools.compare import weight_grad_error

from .strategies import cases

CASES = list(enumerate_cases())
ALL_MODES = [(operator, mode) for operator, modes in MODES.items() for mode in modes]
PLAIN = Case("finalize_routing_v2_grad", "plain", "f32", None, tokens=3, topk=2, hidden=4)
UNPERMUTE = dataclasses.replace(PLAIN, operator="token_unpermute_grad")
PAD: dict[str, Any] = {"experts": 2, "capacity": 4, "rows": -1, "drop_pad_mode": 1}


def index_of(case: Case) -> Any:
    return case.arguments()["expanded_row_idx" if case.is_finalize else "sorted_indices"]


def inactive(case: Case) -> Any:
    """Which slots, or padded rows, have no counterpart."""
    index = index_of(case)
    return (index < 0) | (index >= case.rows) if not case.is_padded else index < 0


def same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    return type(left) is type(right) and left == right


# --- validity, by the tables of operators.md -------------------------------------------------------------


def check_index(case: Case) -> None:
    index = index_of(case)
    assert index.dtype == np.int32
    active = index[index >= 0]
    if case.is_padded:
        assert index.shape == (case.rows,)
        assert ((index >= -1) & (index < max(case.tokens, 0))).all()
        return
    assert index.shape == (case.slots,)
    assert len(set(active.tolist())) == active.size
    if case.has_capacity:
        assert ((index >= -1) & (index < case.experts * case.capacity)).all()
    else:
        assert sorted(index.tolist()) == list(range(case.slots))


def check_drop(case: Case) -> None:
    dropped = inactive(case)
    if not dropped.size:
        return
    if case.drop == "none":
        assert not dropped.any()
    elif case.drop == "all":
        assert dropped.all()
    elif case.drop == "first":
        assert dropped[0]
    elif case.drop == "last":
        assert dropped[-1]
    else:
        assert dropped.any()


def check_unpermute(case: Case, given: dict[str, Any]) -> None:
    data, tokens, hidden, rows = DTYPES[case.data_dtype], case.tokens, case.hidden, case.rows
    assert given.pop("permuted_tokens").shape == (rows, hidden)
    grad = given.pop("unpermuted_tokens_grad")
    assert (grad.shape, grad.dtype) == ((tokens, hidden), data)
    given.pop("sorted_indices")
    if case.has_weights:
        probs = given.pop("probs")
        assert probs.dtype == DTYPES[str(case.weight_dtype)]
        if case.is_padded:
            assert probs.shape in ((case.experts, case.capacity), (rows,))
        else:
            assert probs.shape == (tokens, case.topk)
    assert given.pop("padded_mode", False) == case.is_padded
    assert given.pop("restore_shape", (tokens, hidden)) == (tokens, hidden)


def check_finalize(case: Case, given: dict[str, Any]) -> None:
    data, tokens, hidden, rows = DTYPES[case.data_dtype], case.tokens, case.hidden, case.rows
    grad = given.pop("grad_y")
    assert (grad.shape, grad.dtype) == ((tokens, hidden), data)
    given.pop("expanded_row_idx")
    shape = (case.experts, case.capacity, hidden) if case.drop_pad_mode else (rows, hidden)
    if case.has_weights or "expanded_x" in given:
        expanded_x = given.pop("expanded_x")
        assert (expanded_x.shape, expanded_x.dtype) == (shape, data)
    if case.has_weights:
        scales = given.pop("scales")
        assert (scales.shape, scales.dtype) == ((tokens, case.topk), DTYPES[str(case.weight_dtype)])
    if case.mode == "scales_bias" or "expert_idx" in given:
        expert_idx = given.pop("expert_idx")
        assert (expert_idx.shape, expert_idx.dtype) == ((tokens, case.topk), np.int32)
        assert ((expert_idx >= 0) & (expert_idx < case.experts)).all()
    if case.mode == "scales_bias" or "bias" in given:
        bias = given.pop("bias")
        assert (bias.shape, bias.dtype) == ((case.experts, hidden), data)
    assert given.pop("drop_pad_mode") == case.drop_pad_mode
    active_num = given.pop("active_num")
    if case.drop_pad_mode:
        assert (given.pop("expert_num"), given.pop("expert_capacity")) == (case.experts, case.capacity)
    else:
        assert rows == (active_num if 0 < active_num < case.slots else case.slots)


def check_case(case: Case) -> None:
    check_index(case)
    check_drop(case)
    given = case.arguments()
    (check_finalize if case.is_finalize else check_unpermute)(case, given)
    assert not given, "arguments that the operator does not have"
    expected = case.expected()
    hidden = case.hidden
    padded = case.is_finalize and case.drop_pad_mode
    shape = (case.experts, case.capacity, hidden) if padded else (case.rows, hidden)
    assert expected.row_grad.shape == shape
    assert expected.row_grad.dtype == DTYPES[case.data_dtype]
    assert expected.copied is not case.has_weights


@pytest.mark.parametrize("data", DTYPES)
@pytest.mark.parametrize(("operator", "mode"), ALL_MODES)
def test_enumerated_cases_are_valid(operator: str, mode: str, data: str) -> None:
    for case in CASES:
        if (case.operator, case.mode, case.data_dtype) == (operator, mode, data):
            check_case(case)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_any_case_is_valid(case: Case) -> None:
    check_case(case)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_arguments_are_the_same_every_time(case: Case) -> None:
    first, second = case.arguments(), dataclasses.replace(case).arguments()
    assert first.keys() == second.keys()
    assert all(same(first[name], second[name]) for name in first)
    for value in first.values():  # fresh arrays: writing to one reaches nothing else
        if isinstance(value, np.ndarray):
            value.fill(0)
    assert all(same(value, case.arguments()[name]) for name, value in second.items())


def test_seed_changes_the_arrays() -> None:
    one, other = (dataclasses.replace(PLAIN, seed=seed).arguments() for seed in (1, 2))
    assert not same(one["grad_y"], other["grad_y"])


# --- index maps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "answer"),
    [
        ([0, 1, 2], True),
        ([2, 1, 0], True),
        ([1, 0, 3, 2], True),
        ([1, 2, 0], False),
        ([1, 3, 0, 2], False),
        ([-1, 0, 3, -1], False),
        ([-1, 1, -1], True),
        ([5, -1], False),
        ([], True),
    ],
)
def test_is_self_inverse(index: list[int], answer: bool) -> None:
    assert is_self_inverse(np.array(index, np.int32)) is answer


def test_maps_differ_from_their_inverse() -> None:
    for case in CASES:
        if not case.is_padded and (~inactive(case)).sum() >= 4:
            assert not is_self_inverse(index_of(case)), case.id


def test_three_slots_still_get_a_map_that_differs_from_its_inverse() -> None:
    for seed in range(20):
        assert not is_self_inverse(index_of(dataclasses.replace(UNPERMUTE, topk=1, rows=3, seed=seed)))


@pytest.mark.parametrize(("drop", "count"), [("none", 0), ("all", 6), ("first", 1), ("last", 1), ("some", 2)])
def test_drop_with_capacity(drop: str, count: int) -> None:
    case = dataclasses.replace(PLAIN, **PAD, drop=drop)
    dropped = inactive(case)
    assert dropped.sum() == count
    check_drop(case)


def test_capacity_below_the_slots_drops_the_rest() -> None:
    case = dataclasses.replace(PLAIN, **(PAD | {"capacity": 1}), drop="some")
    assert inactive(case).sum() == 4
    assert sorted(index_of(case).tolist()) == [-1, -1, -1, -1, 0, 1]


# --- coverage --------------------------------------------------------------------------------------------


def combinations() -> set[tuple[str, str, str, str | None]]:
    found = set()
    for operator, modes in MODES.items():
        for mode in modes:
            weights = [None] if mode in ("plain", "padded") else list(DTYPES)
            found |= set(itertools.product([operator], [mode], DTYPES, weights))
    return found


def test_every_combination_has_its_cases() -> None:
    counts = Counter((c.operator, c.mode, c.data_dtype, c.weight_dtype) for c in CASES)
    assert set(counts) == combinations()
    assert set(counts.values()) == {8}
    assert len({case.id for case in CASES}) == len(CASES) == 45 * 8


@pytest.mark.parametrize(("operator", "mode"), ALL_MODES)
def test_every_mode_meets_every_drop_shape_and_kind_of_values(operator: str, mode: str) -> None:
    mine = [case for case in CASES if (case.operator, case.mode) == (operator, mode)]
    assert {case.drop for case in mine} == set(DROPS)
    assert {case.values for case in mine} == set(VALUES)
    assert {case.topk for case in mine} == {1, 2, 8}
    assert {case.tokens for case in mine} >= {0, 1, 3, 5, 16}
    assert {case.hidden for case in mine} == {1, 7, 9, 17, 33, 64, 100, 126, 257, 1024}
    assert {case.extra for case in mine} == {False, True}
    if operator == "token_unpermute_grad" and mode in ("plain", "probs"):
        assert any(0 < case.rows < case.slots - 1 for case in mine)
        assert any(case.rows == case.slots - 1 for case in mine)
        assert any(case.rows == 0 < case.slots for case in mine)


@pytest.mark.parametrize("mode", MODES["finalize_routing_v2_grad"])
def test_finalize_meets_its_limits_and_capacities(mode: str) -> None:
    mine = [case for case in CASES if case.is_finalize and case.mode == mode and case.tokens]
    dropless = [case for case in mine if case.drop_pad_mode == 0]
    assert any(case.active_num == -1 for case in dropless)
    assert any(case.active_num == case.slots for case in dropless)
    assert any(case.active_num == case.slots + 1 for case in dropless)
    assert any(0 < case.active_num < case.slots for case in dropless)
    padded = [case for case in mine if case.drop_pad_mode == 1]
    assert any(case.rows > case.slots and case.drop == "none" for case in padded)
    assert any(case.rows < case.slots for case in padded)
    assert any(case.capacity > case.tokens for case in padded)


def test_filters_keep_a_subset_in_order() -> None:
    for filters in (
        {"operator": "token_unpermute_grad"},
        {"mode": "plain"},
        {"data": "bf16"},
        {"weight": "f32"},
        {"operator": "finalize_routing_v2_grad", "mode": "scales", "data": "f16", "weight": "bf16"},
    ):
        names = {"data": "data_dtype", "weight": "weight_dtype"}
        want = [
            case
            for case in CASES
            if all(getattr(case, names.get(name, name)) == value for name, value in filters.items())
        ]
        assert want
        assert list(enumerate_cases(**filters)) == want  # type: ignore[arg-type]


def test_more_cases_add_to_the_end_and_a_seed_changes_them() -> None:
    filters: dict[str, Any] = {"mode": "scales", "data": "f16", "weight": "bf16"}
    many = list(enumerate_cases(**filters, cases_per_combination=40))
    assert many[:8] == list(enumerate_cases(**filters))
    assert len(set(many)) == 40
    assert list(enumerate_cases(**filters, seed=1)) != many[:8]


def test_shapes_are_taken_from_the_arguments() -> None:
    found = list(enumerate_cases(topks=(3,), hiddens=(5,), tokens=(2,), cases_per_combination=6))
    assert {(case.topk, case.hidden, case.tokens) for case in found} == {(3, 5, 2)}
    for case in found:
        check_case(case)


# --- values ----------------------------------------------------------------------------------------------


def test_normal_and_level_values_are_finite() -> None:
    for case in CASES:
        if case.values != "special":
            arrays = (v for v in case.arguments().values() if isinstance(v, np.ndarray))
            assert all(np.isfinite(array.astype(np.float64)).all() for array in arrays), case.id


@pytest.mark.parametrize("tag", DTYPES)
def test_special_values_meet_everything_ieee_has(tag: str) -> None:
    dtype = DTYPES[tag]
    case = Case("token_unpermute_grad", "plain", tag, None, tokens=200, topk=1, hidden=64, values="special", seed=3)
    grad = case.arguments()["unpermuted_tokens_grad"]
    with np.errstate(invalid="ignore"):
        wide = grad.astype(np.float64)
    bits = grad.view(f"u{dtype.itemsize}")
    sign = 1 << (dtype.itemsize * 8 - 1)
    mantissa = {"f16": 10, "bf16": 7, "f32": 23}[tag]
    for pattern in (0, 1, (1 << mantissa) - 1, 1 << mantissa):  # zero, subnormals, the least normal
        assert (bits == pattern).any()
        assert (bits == pattern | sign).any()
    assert (wide == np.inf).any()
    assert (wide == -np.inf).any()
    nans = bits[np.isnan(wide)]
    quiet = (nans >> (mantissa - 1)) & 1 == 1
    assert quiet.any()
    assert not quiet.all()
    assert np.isfinite(wide).all(axis=1).sum() > 100
    assert (np.abs(wide[np.isfinite(wide)]) > 6e4).any()


def test_special_values_leave_most_weight_gradients_finite_and_some_not() -> None:
    special = [case.expected().weight_grad_exact for case in CASES if case.values == "special"]
    exact = np.concatenate([gradient.ravel() for gradient in special if gradient is not None])
    finite = np.isfinite(exact).mean()
    assert 0.5 < finite < 0.9
    assert np.isnan(exact).any()
    assert np.isinf(exact).any()


def test_special_values_never_reach_the_end_of_fp32_by_addition() -> None:
    for case in enumerate_cases(hiddens=(1024,), cases_per_combination=4):
        magnitude = case.expected().magnitude
        if magnitude is not None:
            assert (magnitude[np.isfinite(magnitude)] < 2.0**124).all()


def test_special_values_poison_what_no_output_reads() -> None:
    case = Case(
        "finalize_routing_v2_grad", "scales", "f32", "f32", 5, 2, 4, experts=3, capacity=5, drop_pad_mode=1,
        drop="some", values="special",
    )  # fmt: skip
    given, dropped = case.arguments(), inactive(case)
    unread = np.setdiff1d(np.arange(15), index_of(case))
    assert np.isnan(given["expanded_x"].reshape(15, 4)[unread]).all()
    assert np.isnan(given["scales"].reshape(-1)[dropped]).all()
    rows = case.expected().row_grad.reshape(15, 4)
    assert not rows[unread].view(np.uint32).any()


def test_level_values_expose_a_serial_sum() -> None:
    case = Case("token_unpermute_grad", "probs", "f32", "f32", 40, 2, 1024, values="level")
    given = case.arguments()
    index = given["sorted_indices"]
    products = given["permuted_tokens"][index] * np.repeat(given["unpermuted_tokens_grad"], 2, axis=0)
    serial = np.cumsum(products, axis=1, dtype=np.float32)[:, -1].reshape(40, 2)
    assert weight_grad_error(serial, case.expected()) > 2
    assert weight_grad_error(products.sum(1).reshape(40, 2), case.expected()) < 1


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (PLAIN, {"operator": "moe"}, "operator: expected one of .*, got 'moe'"),
        (PLAIN, {"mode": "padded"}, "mode of finalize_routing_v2_grad: expected one of .*, got 'padded'"),
        (PLAIN, {"data_dtype": "f64"}, "data_dtype: expected one of .*, got 'f64'"),
        (PLAIN, {"weight_dtype": "f32"}, r"weight_dtype of plain: expected one of \[None\], got 'f32'"),
        (PLAIN, {"mode": "scales"}, "weight_dtype of scales: expected one of .*, got None"),
        (PLAIN, {"drop": "most"}, "drop: expected one of .*, got 'most'"),
        (PLAIN, {"values": "odd"}, "values: expected one of .*, got 'odd'"),
        (PLAIN, {"hidden": 0}, "hidden >= 1"),
        (PLAIN, {"topk": 0}, "topk >= 1"),
        (PLAIN, {"drop_pad_mode": 2}, "drop_pad_mode of finalize_routing_v2_grad: got 2"),
        (UNPERMUTE, {"drop_pad_mode": 1}, "drop_pad_mode of token_unpermute_grad: got 1"),
        (PLAIN, {"drop_pad_mode": 1}, "expected positive experts and capacity, got 0 and 0"),
        (UNPERMUTE, {"mode": "padded"}, "expected positive experts and capacity"),
        (
            PLAIN,
            {"mode": "scales_bias", "weight_dtype": "f32"},
            "experts: expected at least 1 with bias, got 0",
        ),
        (PLAIN, {"rows": 5}, "rows: expected 6 to 6, got 5"),
        (UNPERMUTE, {"rows": 7}, "rows: expected 0 to 6, got 7"),
        (PLAIN, {"drop": "some"}, "drop with 6 slots and 6 rows"),
        (UNPERMUTE, {"rows": 5}, "drop with 6 slots and 5 rows: expected one of .*, got 'none'"),
        (PLAIN, {**PAD, "capacity": 2}, "drop with 6 slots and 4 rows"),
    ],
)
def test_contradictions_are_refused(base: Case, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(base, **changes)


@pytest.mark.parametrize("name", ["operator", "mode", "data", "weight"])
def test_unknown_filters_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected one of .*, got 'moe'"):
        next(enumerate_cases(**{name: "moe"}))  # type: ignore[arg-type]
