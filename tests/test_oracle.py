"""The oracle: worked examples, field cases, finite differences, and a second implementation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from moegrad.tools.cases import Case, enumerate_cases, is_self_inverse
from moegrad.tools.compare import explain
from moegrad.tools.oracle import (
    Array,
    Expected,
    finalize_routing_v2_forward,
    finalize_routing_v2_grad,
    round_once,
    token_unpermute_forward,
    token_unpermute_grad,
)

from .strategies import cases

BF16 = np.dtype(ml_dtypes.bfloat16)
DATA = [pytest.param(np.dtype(d), id=np.dtype(d).name) for d in (np.float16, ml_dtypes.bfloat16, np.float32)]


def f32(values: object) -> Array:
    return np.array(values, np.float32)


def i32(values: object) -> Array:
    return np.array(values, np.int32)


def check(found: Expected, row_grad: object, weight_grad: object = None) -> None:
    """Hold values against a hand-computed result."""
    np.testing.assert_array_equal(found.row_grad.astype(np.float64), np.array(row_grad, np.float64))
    if weight_grad is None:
        assert found.weight_grad is None
    else:
        assert found.weight_grad is not None
        np.testing.assert_array_equal(found.weight_grad.astype(np.float64), np.array(weight_grad, np.float64))


# --- worked examples, operators.md section 6 -------------------------------------------------------------


def example_1(dtype: npt.DTypeLike = np.float32) -> dict[str, Any]:
    return {
        "grad_y": np.array([[1, 2], [3, 4]], dtype),
        "expanded_row_idx": i32([-1, 0, 3, -1]),
        "expanded_x": np.array([[10, 20], [30, 40], [50, 60], [70, 80]], dtype).reshape(2, 2, 2),
        "scales": np.array([[0.5, 0.25], [2, 1]], dtype),
        "drop_pad_mode": 1,
        "expert_num": 2,
        "expert_capacity": 2,
    }


def example_2(dtype: npt.DTypeLike = np.float32) -> dict[str, Any]:
    bias = np.array([[1, 1], [2, 2]], dtype)
    return example_1(dtype) | {"expert_idx": i32([[1, 0], [1, 1]]), "bias": bias}


@pytest.mark.parametrize("dtype", DATA)
def test_example_1_drop_pad(dtype: np.dtype[Any]) -> None:
    found = finalize_routing_v2_grad(**example_1(dtype))
    check(found, [[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], np.array([[0, 50], [530, 0]], dtype))
    assert found.row_grad.dtype == dtype
    assert found.weight_dtype == dtype
    assert found.hidden == 2
    assert found.magnitude is not None
    np.testing.assert_array_equal(found.magnitude, [[0, 50], [530, 0]])


def test_example_2_bias_counts_for_dropped_slots() -> None:
    found = finalize_routing_v2_grad(**example_2())
    check(found, [[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], [[6, 53], [544, 14]])


def test_example_3_active_num() -> None:
    found = finalize_routing_v2_grad(
        f32([[1, 1], [2, 2], [3, 3]]),
        i32([5, 0, 2, 4, 1, 3]),
        f32([[1, 2], [3, 4], [5, 6], [7, 8]]),
        np.ones((3, 2), np.float32),
        active_num=4,
    )
    check(found, [[1, 1], [3, 3], [2, 2], [3, 3]], [[0, 3], [22, 0], [21, 45]])


def test_example_4_direction_of_the_map() -> None:
    index = i32([1, 3, 0, 2])
    assert not is_self_inverse(index)
    grad = f32([[1], [2], [3], [4]])
    check(finalize_routing_v2_grad(grad, index), [[3], [1], [4], [2]])
    check(token_unpermute_grad(np.zeros_like(grad), grad, index), [[3], [1], [4], [2]])


def test_example_5_padded_mode() -> None:
    found = token_unpermute_grad(
        f32([[1, 1], [2, 2], [3, 3], [4, 4]]),
        f32([[1, 2], [3, 4]]),
        i32([1, 0, 0, -1]),
        f32([[0.5, 2], [1, 7]]),
        padded_mode=True,
        restore_shape=(2, 2),
    )
    check(found, [[1.5, 2], [2, 4], [1, 2], [0, 0]], [[7, 6], [9, 0]])


# --- field cases 1 to 10: the facts about values ---------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 1.0, np.inf, np.nan])
def test_field_2_weight_of_a_dropped_slot_reaches_nothing(weight: float) -> None:
    plain = finalize_routing_v2_grad(**example_1())
    arguments = example_1()
    arguments["scales"][0, 0] = arguments["scales"][1, 1] = weight
    changed = finalize_routing_v2_grad(**arguments)
    check(changed, plain.row_grad, plain.weight_grad)


def test_field_1_unread_rows_reach_nothing() -> None:
    arguments = example_1()
    arguments["expanded_x"].reshape(4, 2)[[1, 2]] = np.nan
    check(
        finalize_routing_v2_grad(**arguments),
        finalize_routing_v2_grad(**example_1()).row_grad,
        [[0, 50], [530, 0]],
    )


def test_field_3_bias_alone_gives_the_gradient_of_a_dropped_slot() -> None:
    arguments = example_2() | {"expanded_row_idx": np.full(4, -1, np.int32)}
    check(finalize_routing_v2_grad(**arguments), np.zeros((2, 2, 2)), [[6, 3], [14, 14]])


def test_field_4_rows_nobody_names_are_positive_zero() -> None:
    grad = f32([[-1.0], [-2.0]])
    found = finalize_routing_v2_grad(grad, i32([9, 0]), drop_pad_mode=1, expert_num=2, expert_capacity=5)
    rows = found.row_grad.reshape(10)
    assert (rows[0], rows[9]) == (-2, -1)
    assert not rows[1:9].view(np.uint32).any()


@pytest.mark.parametrize("bias", [False, True])
def test_field_5_zero_tokens(bias: bool) -> None:
    empty = np.zeros((0, 2), np.int32)
    with_bias = {"expert_idx": empty, "bias": np.ones((4, 64), np.float32)} if bias else {}
    arguments: dict[str, Any] = {
        "grad_y": np.zeros((0, 64), np.float32),
        "expanded_row_idx": np.zeros(0, np.int32),
        "scales": np.zeros((0, 2), BF16),
    } | with_bias
    padded = finalize_routing_v2_grad(
        **arguments,
        expanded_x=np.full((4, 8, 64), np.nan, np.float32),
        drop_pad_mode=1,
        expert_num=4,
        expert_capacity=8,
    )
    check(padded, np.zeros((4, 8, 64)), np.zeros((0, 2)))
    check(
        finalize_routing_v2_grad(**arguments, expanded_x=np.zeros((0, 64), np.float32)),
        np.zeros((0, 64)),
        np.zeros((0, 2)),
    )
    check(finalize_routing_v2_grad(arguments["grad_y"], arguments["expanded_row_idx"]), np.zeros((0, 64)))


def test_field_5_one_slot_and_no_slot() -> None:
    one = finalize_routing_v2_grad(f32([[3]]), i32([0]), f32([[5]]), f32([[2]]))
    check(one, [[6]], [[15]])
    none = finalize_routing_v2_grad(
        f32([[3]]), i32([-1]), f32([[[5]]]), f32([[2]]), drop_pad_mode=1, expert_num=1, expert_capacity=1
    )
    check(none, [[[0]]], [[0]])


def test_field_5_padded_mode_without_tokens_and_with_nothing_but_empty_rows() -> None:
    empty = i32([-1, -1])
    for tokens in (0, 3):
        grad = np.full((tokens, 2), np.nan, np.float32)
        check(token_unpermute_grad(f32([[1, 2], [3, 4]]), grad, empty, padded_mode=True), np.zeros((2, 2)))


@pytest.mark.parametrize("active_num", [0, -1, 6, 7])
def test_field_6_values_of_active_num_that_limit_nothing(active_num: int) -> None:
    index = i32([5, 0, 2, 4, 1, 3])
    found = finalize_routing_v2_grad(f32([[1], [2], [3]]), index, active_num=active_num)
    check(found, [[1], [3], [2], [3], [2], [1]])


def test_field_6_active_num_does_nothing_in_mode_1() -> None:
    limited = finalize_routing_v2_grad(**example_1(), active_num=1)
    check(limited, [[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], [[0, 50], [530, 0]])


def test_field_6_fewer_permuted_rows_limit_token_unpermute() -> None:
    rows, grad, index = (
        f32([[1, 2], [3, 4], [5, 6], [7, 8]]),
        f32([[1, 1], [2, 2], [3, 3]]),
        i32([5, 0, 2, 4, 1, 3]),
    )
    found = token_unpermute_grad(rows, grad, index, np.ones((3, 2), np.float32))
    check(found, [[1, 1], [3, 3], [2, 2], [3, 3]], [[0, 3], [22, 0], [21, 45]])
    check(
        token_unpermute_grad(rows[:0], grad, index, np.ones((3, 2), np.float32)),
        np.zeros((0, 2)),
        np.zeros((3, 2)),
    )


def test_field_7_gathers_for_the_weight_and_scatters_for_the_row() -> None:
    index = i32([1, 3, 0, 2])
    found = finalize_routing_v2_grad(
        f32([[1], [2], [3], [4]]), index, f32([[10], [20], [30], [40]]), f32([[1], [10], [100], [1000]])
    )
    check(found, [[300], [1], [4000], [20]], [[20], [80], [30], [120]])


def test_field_8_slots_are_token_major() -> None:
    check(finalize_routing_v2_grad(f32([[1], [10]]), i32([0, 1, 2, 3])), [[1], [1], [10], [10]])


def test_field_9_k_of_one() -> None:
    rng = np.random.default_rng(9)
    grad, rows = rng.integers(-9, 9, (2, 5, 4)).astype(np.float32)
    index = i32([3, 0, 4, 1, 2])
    found = token_unpermute_grad(rows, grad, index, np.ones((5, 1), np.float32))
    assert found.weight_grad_exact is not None
    assert found.weight_grad_exact.shape == (5, 1)
    np.testing.assert_array_equal(found.weight_grad_exact[:, 0], (rows[index] * grad).sum(1))


def test_field_10_fp32_weights_are_not_rounded_to_bfloat16() -> None:
    found = finalize_routing_v2_grad(
        np.array([[100]], BF16), i32([0]), np.array([[1.5]], BF16), np.array([[0.3]], np.float32)
    )
    check(found, [[30.0]], [[150]])
    assert found.weight_grad is not None
    assert found.weight_grad.dtype == np.float32
    narrow = finalize_routing_v2_grad(
        np.array([[100]], BF16), i32([0]), np.array([[1.5]], BF16), np.array([[0.3]], BF16)
    )
    check(narrow, [[30.125]], [[150]])


# --- IEEE 754, operators.md section 4 --------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "nan"), [(np.float16, 0xFD55), (BF16, 0x7F81), (np.float32, 0xFF812345)])
@pytest.mark.parametrize("padded", [False, True])
def test_nan_payloads_are_copied_without_weights(dtype: npt.DTypeLike, nan: int, padded: bool) -> None:
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    grad = np.array([[nan, 0], [1, nan]], bits).view(dtype)
    found = token_unpermute_grad(np.zeros((2, 2), dtype), grad, i32([1, 0]), padded_mode=padded)
    np.testing.assert_array_equal(found.row_grad.view(bits), grad.view(bits)[::-1])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_gradient_of_a_dropped_weight_is_zero_whatever_the_gradient_row(value: float) -> None:
    arguments = example_1()
    arguments["grad_y"][:] = value
    exact = finalize_routing_v2_grad(**arguments).weight_grad_exact
    assert exact is not None
    assert not exact.view(np.uint64)[[0, 1], [0, 1]].any()
    assert not np.isfinite(exact[[0, 1], [1, 0]]).any()


@pytest.mark.parametrize("prob", [-1.0, np.inf, np.nan])
def test_empty_padded_rows_are_positive_zero(prob: float) -> None:
    found = token_unpermute_grad(f32([[np.nan], [1]]), f32([[np.inf]]), i32([-1, 0]), f32([prob, 2]), padded_mode=True)
    assert found.row_grad.view(np.uint32).tolist() == [[0], [0x7F800000]]
    assert found.weight_grad_exact is not None
    assert found.weight_grad_exact.tolist() == [0, np.inf]


@pytest.mark.parametrize(
    ("dtype", "grad", "scale", "bits"),
    [
        (np.float16, 300, 300, 0x7C00),  # overflow
        (np.float16, -65504, 1.0002, 0xFBFF),  # not quite
        (np.float16, 2.0**-24, 0.5, 0x0000),  # tie to zero
        (np.float16, -(2.0**-24), 0.75, 0x8001),  # subnormal
        (BF16, 2.0**-133, 0.75, 0x0001),
        (BF16, 3e38, 2, 0x7F80),
        (BF16, 1, 1 + 2.0**-8, 0x3F80),  # tie to even
        (BF16, 1, 1 + 3 * 2.0**-8, 0x3F82),
        (BF16, -0.0, 5, 0x8000),
        (np.float32, 2.0**-149, 0.75, 0x00000001),
        (np.float32, 0.0, -5, 0x80000000),
        (np.float32, np.inf, 0, None),
    ],
)
def test_product_is_rounded_once_to_the_data_type(
    dtype: npt.DTypeLike, grad: float, scale: float, bits: int | None
) -> None:
    found = finalize_routing_v2_grad(np.array([[grad]], dtype), i32([0]), np.zeros((1, 1), dtype), f32([[scale]]))
    if bits is None:
        assert np.isnan(found.row_grad).all()
    else:
        assert found.row_grad.view(f"u{found.row_grad.itemsize}")[0, 0] == bits


def test_round_once_to_bfloat16_does_not_round_twice() -> None:
    values = np.array(
        [1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8 - 2**-40, -(1 + 2**-8 + 2**-40)]
    )
    got = round_once(values, BF16).astype(np.float64)
    assert got.tolist() == [1 + 2**-7, 1, 1, 1 + 2**-7, -1 - 2**-7]
    extremes = round_once(np.array([1e300, -1e300, np.inf, -0.0, 1e-300, 2.0**-134 + 2.0**-170]), BF16)
    assert extremes.view(np.uint16).tolist() == [0x7F80, 0xFF80, 0x7F80, 0x8000, 0, 1]
    assert np.isnan(round_once(np.array([np.nan, -np.nan]), BF16)).all()


# --- finite differences of the forward operators, float64 ------------------------------------------------


def numeric_gradient(loss: Callable[[], float], array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Central differences; exact up to rounding, since every loss here is linear in each input."""
    gradient = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + 0.5
        above = loss()
        array[place] = kept - 0.5
        gradient[place] = above - loss()
        array[place] = kept
    return gradient


def float64_inputs(case: Case) -> dict[str, Any]:
    """The arguments of a case with floats replaced by random float64, so that no rounding is left."""
    rng = np.random.default_rng(case.seed + 1)
    return {
        name: rng.standard_normal(value.shape) if isinstance(value, np.ndarray) and value.dtype != np.int32 else value
        for name, value in case.arguments().items()
    }


def loss_of(case: Case, inputs: dict[str, Any], rows: npt.NDArray[np.float64]) -> Callable[[], float]:
    """The forward operator of a case, contracted with the output gradient."""
    if case.is_finalize:
        names = ("expanded_row_idx", "scales", "expert_idx", "bias")
        known = {name: inputs[name] for name in names if name in inputs}
        return lambda: float((finalize_routing_v2_forward(rows, **known, tokens=case.tokens) * inputs["grad_y"]).sum())
    grad = inputs["unpermuted_tokens_grad"]
    known = {name: inputs[name] for name in ("sorted_indices", "probs", "padded_mode") if name in inputs}
    return lambda: float((token_unpermute_forward(rows, **known, restore_shape=grad.shape) * grad).sum())


DIFFERENCE_CASES = list(
    enumerate_cases(data="f32", topks=(1, 3), hiddens=(1, 3), tokens=(1, 4), cases_per_combination=26)
)


@pytest.mark.parametrize(
    "case", [c for c in DIFFERENCE_CASES if c.weight_dtype in (None, "f32")], ids=lambda case: str(case.id)
)
def test_finite_differences(case: Case) -> None:
    inputs = float64_inputs(case)
    rows = inputs.get("expanded_x", inputs.get("permuted_tokens"))
    if rows is None:  # not read without weights, and nothing but its shape matters
        rows = np.zeros(case.expected().row_grad.shape)
    found = (finalize_routing_v2_grad if case.is_finalize else token_unpermute_grad)(**inputs)
    loss = loss_of(case, inputs, rows)
    np.testing.assert_allclose(found.row_grad, numeric_gradient(loss, rows), rtol=0, atol=1e-12)
    if case.has_weights:
        weights = inputs["scales" if case.is_finalize else "probs"]
        numeric = numeric_gradient(loss, weights)
        assert found.weight_grad_exact is not None
        np.testing.assert_allclose(found.weight_grad_exact, numeric, rtol=0, atol=1e-12)


def test_forward_of_padded_mode_needs_restore_shape() -> None:
    with pytest.raises(ValueError, match="restore_shape is needed with padded_mode"):
        token_unpermute_forward(f32([[1]]), i32([0]), padded_mode=True)


def test_scales_need_rows() -> None:
    with pytest.raises(ValueError, match="expanded_x is needed with scales"):
        finalize_routing_v2_grad(f32([[1]]), i32([0]), scales=f32([[1]]))


# --- a second implementation, vectorised and in fp32 as a backend has it ---------------------------------


def vectorised(case: Case) -> tuple[Array, Array | None]:
    """What a correct fp32 backend returns: whole-array indexing, numpy's pairwise fp32 sums."""
    arguments = case.arguments()
    rows: Any
    weights: Any
    if case.is_finalize:
        grad, index = arguments["grad_y"], arguments["expanded_row_idx"]
        rows, weights = arguments.get("expanded_x"), arguments.get("scales")
        shape: tuple[int, ...] = (case.rows, case.hidden)
        if case.has_capacity:
            shape = (case.experts, case.capacity, case.hidden)
    else:
        grad, index = arguments["unpermuted_tokens_grad"], arguments["sorted_indices"]
        rows, weights = arguments["permuted_tokens"], arguments.get("probs")
        shape = (case.rows, case.hidden)
    row_grad = np.zeros((case.rows, case.hidden), grad.dtype)
    if case.is_padded:
        (row_of,) = np.nonzero(index >= 0)
        place_of, token_of = row_of, index[row_of]
    else:
        (place_of,) = np.nonzero((index >= 0) & (index < case.rows))
        row_of, token_of = index[place_of], place_of // case.topk
    if weights is None:
        row_grad[row_of] = grad[token_of]
        return row_grad.reshape(shape), None
    with np.errstate(all="ignore"):
        scale = weights.reshape(-1)[place_of].astype(np.float32)[:, None]
        row_grad[row_of] = (grad[token_of].astype(np.float32) * scale).astype(grad.dtype)
        addend = np.zeros((weights.size, case.hidden), np.float32)
        addend[place_of] = rows.reshape(-1, case.hidden)[row_of].astype(np.float32)
        factor = np.zeros_like(addend)
        factor[place_of] = grad[token_of].astype(np.float32)
        if case.mode == "scales_bias":
            addend += arguments["bias"].astype(np.float32)[arguments["expert_idx"].reshape(-1)]
            factor = np.repeat(grad.astype(np.float32), case.topk, axis=0)
        weight_grad = (addend * factor).sum(1, dtype=np.float32).astype(weights.dtype)
    weight_shape: tuple[int, ...] = weights.shape
    return row_grad.reshape(shape), weight_grad.reshape(weight_shape)


def test_vectorised_implementation_agrees_on_the_enumerated_cases() -> None:
    for case in enumerate_cases(seed=7):
        assert explain(*vectorised(case), case.expected()) is None, case.id


@settings(max_examples=300, deadline=None)
@given(cases())
def test_vectorised_implementation_agrees(case: Case) -> None:
    assert explain(*vectorised(case), case.expected()) is None


def test_speed_of_a_demo_shape() -> None:
    case = Case("finalize_routing_v2_grad", "scales_bias", "bf16", "f32", 512, 8, 2880, experts=32)
    arguments = case.arguments()
    start = time.perf_counter()
    finalize_routing_v2_grad(**arguments)
    assert time.perf_counter() - start < 2.0
