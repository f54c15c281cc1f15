"""The comparison: bits of the row gradient, and the error bound of the weight gradient."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moegrad.tools.compare import (
    accumulator_interval,
    error_bound,
    explain,
    row_grad_matches,
    row_grad_mismatch,
    weight_grad_error,
    weight_grad_mismatch,
)
from moegrad.tools.oracle import Array, Expected, finalize_routing_v2_grad, round_once

F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
DTYPES = [pytest.param(dtype, id=dtype.name) for dtype in (F16, BF16, F32)]
HALVES = DTYPES[:2]
UNIT = 2.0**-24


def expect(
    exact: float | list[float], magnitude: float | list[float], dtype: np.dtype[Any], hidden: int = 32
) -> Expected:
    """An expectation about weights alone; the bound is (hidden / 32 + 12) * 2**-24 * magnitude."""
    return Expected(
        np.zeros((1, hidden), dtype),
        np.atleast_1d(exact) * 1.0,
        np.atleast_1d(magnitude) * 1.0,
        dtype,
        hidden,
    )


def error(got: object, exact: float, magnitude: float, dtype: np.dtype[Any] = F32, hidden: int = 32) -> float:
    return weight_grad_error(np.atleast_1d(np.array(got, dtype)), expect(exact, magnitude, dtype, hidden))


def rows(values: Array, *, weights: bool) -> Expected:
    """An expectation about rows alone, of a mode with or without weights."""
    if not weights:
        return Expected(values, None, None, None, values.shape[1])
    return Expected(values, np.zeros(1), np.zeros(1), F32, values.shape[1])


# --- rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", [False, True])
def test_rows_match_bit_for_bit(dtype: np.dtype[Any], weights: bool) -> None:
    want = np.array([[1, 0, np.inf], [2, -3, 4]], dtype)
    expected = rows(want, weights=weights)
    assert row_grad_matches(want.copy(), expected)
    assert row_grad_matches(np.asfortranarray(want), expected)
    bits = np.dtype(f"u{dtype.itemsize}")
    for place in np.ndindex(want.shape):
        got = want.copy()
        got.view(bits)[place] ^= 1
        assert not row_grad_matches(got, expected)
    negative_zero = want.copy()
    negative_zero[0, 1] = -0.0
    assert not row_grad_matches(negative_zero, expected)


def test_nan_payloads_count_only_where_rows_are_copied() -> None:
    want = np.array([[0x7FC00000, 0]], np.uint32).view(np.float32)
    got = np.array([[0xFF800001, 0]], np.uint32).view(np.float32)
    assert row_grad_matches(got, rows(want, weights=True))
    assert not row_grad_matches(got, rows(want, weights=False))
    assert row_grad_matches(got, rows(want, weights=False), copied=False)
    assert not row_grad_matches(got, rows(want, weights=True), copied=True)
    number = np.array([[1, 0]], np.float32)
    assert not row_grad_matches(number, rows(want, weights=True))
    assert not row_grad_matches(want, rows(number, weights=True))


def test_row_message_says_where_and_how_many() -> None:
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = want.copy()
    got[0, 2] = 7
    got[1, 1] = -0.0
    found = row_grad_mismatch(got, rows(want, weights=True))
    assert found is not None
    assert (found.count, found.total, found.index) == (2, 6, (0, 2))
    assert str(found) == (
        "row_grad: 2 of 6 elements differ, first at [0, 2]: expected 2.0 (0x40000000), got 7.0 (0x40e00000)"
    )


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (np.zeros((2, 2), np.float32), "row_grad: expected float32[2, 3], got float32[2, 2]"),
        (np.zeros((2, 3), BF16), "row_grad: expected float32[2, 3], got bfloat16[2, 3]"),
        (np.zeros((1, 2, 3), np.float32), "row_grad: expected float32[2, 3], got float32[1, 2, 3]"),
    ],
)
def test_rows_of_another_layout_do_not_match(got: Array, message: str) -> None:
    expected = rows(np.zeros((2, 3), np.float32), weights=False)
    assert str(row_grad_mismatch(got, expected)) == message
    assert explain(got, None, expected) == message


def test_empty_rows_match() -> None:
    assert row_grad_matches(np.zeros((0, 3), BF16), rows(np.zeros((0, 3), BF16), weights=False))


# --- intervals of the 16-bit types, against exhaustive search --------------------------------------------


def finite_values(dtype: np.dtype[Any]) -> Array:
    """All finite values that are not negative, in order."""
    values = np.arange(1 << 15, dtype=np.uint16).view(dtype)
    infinity = int(np.full((), np.inf, dtype).view(np.uint16))
    finite: Array = values[:infinity]
    return finite


VALUES = {dtype: [Fraction(float(v)) for v in finite_values(dtype)] for dtype in (F16, BF16)}


def brute_force_round(value: float, dtype: np.dtype[Any]) -> float:
    """Round to nearest even by definition, in exact rational arithmetic: bisect, compare distances."""
    values = VALUES[dtype]
    following = 2 * values[-1] - values[-2]
    size = Fraction(abs(value))
    if size >= following:
        return float(np.copysign(np.inf, value))
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if values[middle] <= size else (low, middle)
    above = values[high] if high < len(values) else following
    twice = 2 * size - values[low] - above
    chosen = high if twice > 0 or (twice == 0 and low % 2 == 1) else low
    magnitude = float(values[chosen]) if chosen < len(values) else np.inf
    return float(np.copysign(magnitude, value))


reals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-7e4, 7e4),
    st.floats(-1e-4, 1e-4),
    st.floats(-1e-37, 1e-37),
    st.floats(1e38, 4e38),
)


@pytest.mark.parametrize("dtype", HALVES)
@given(value=reals)
def test_round_once_is_rounding_by_definition(dtype: np.dtype[Any], value: float) -> None:
    got = float(round_once(np.array([value]), dtype)[0])
    want = brute_force_round(value, dtype)
    assert got == want
    assert np.signbit(got) == np.signbit(want)


@pytest.mark.parametrize("dtype", HALVES)
@given(value=reals)
def test_interval_holds_what_rounds_to_it(dtype: np.dtype[Any], value: float) -> None:
    rounded = np.array([brute_force_round(value, dtype)], dtype)
    low, high = accumulator_interval(rounded)
    assert low[0] <= value <= high[0]


@pytest.mark.parametrize("dtype", HALVES)
def test_intervals_of_all_values(dtype: np.dtype[Any]) -> None:
    magnitudes = np.concatenate([finite_values(dtype), np.full(1, np.inf, dtype)])
    everything = np.concatenate([magnitudes, -magnitudes])
    low, high = accumulator_interval(everything)
    assert (low < high).all()
    inside = [np.nextafter(low, np.inf), np.nextafter(high, -np.inf)]
    for values in inside:
        np.testing.assert_array_equal(round_once(values, dtype), everything)
    for ends, outward in ((low, -np.inf), (high, np.inf)):
        ends_inside = np.isfinite(ends)
        beyond = round_once(np.nextafter(ends, outward), dtype)
        assert (beyond != everything)[ends_inside].all()
    even = (everything.view(np.uint16) & 1) == 0
    for ends in (low, high):  # a tie goes to the even value
        ties = round_once(ends, dtype) == everything
        np.testing.assert_array_equal(ties[np.isfinite(ends)], even[np.isfinite(ends)])
    starts, stops = accumulator_interval(magnitudes)
    np.testing.assert_array_equal(stops[:-1], starts[1:])


def test_intervals_at_the_end_of_the_range() -> None:
    low, high = accumulator_interval(np.array([65504, np.inf, -np.inf], F16))
    assert (low.tolist(), high.tolist()) == ([65488, 65520, -np.inf], [65520, np.inf, -65520])
    low, high = accumulator_interval(np.array([np.inf, 1.5, -1.5], F32))
    assert (low.tolist(), high.tolist()) == ([2.0**128 - 2.0**103, 1.5, -1.5], [np.inf, 1.5, -1.5])
    assert np.isnan(accumulator_interval(np.array([np.nan], BF16))).all()


# --- errors in units of the bound ------------------------------------------------------------------------


def test_bound_is_the_contracts() -> None:
    (bound,) = error_bound(expect(1, 3, F32, hidden=100))
    assert bound == pytest.approx((100 / 32 + 12) * UNIT * 3, rel=1e-12)
    with pytest.raises(ValueError, match="expected a mode with weights"):
        error_bound(Expected(np.zeros((1, 1)), None, None, None, 1))


def test_fp32_results_are_compared_as_they_are() -> None:
    assert error(1, 1, 1) == 0
    assert error(1 + 2.0**-20, 1, 1) == pytest.approx(16 / 13)
    assert error(1 + 2.0**-20, 1, -2 / -1) == pytest.approx(8 / 13)
    assert error(1 - 2.0**-24, 1, 1) == pytest.approx(1 / 13)
    assert error([1], 1, 1) == 0


@pytest.mark.parametrize("dtype", HALVES)
def test_half_results_are_compared_before_their_rounding(dtype: np.dtype[Any]) -> None:
    ulp = float(np.nextafter(np.ones((), dtype), np.full((), 2, dtype))) - 1
    middle = 1 + ulp / 2
    bound = 13 * UNIT
    assert error(1, middle, 1, dtype) == 0
    assert error(1 + ulp, middle, 1, dtype) == 0
    assert error(1, middle + bound / 2, 1, dtype) == pytest.approx(0.5)
    assert error(1 + ulp, middle + bound / 2, 1, dtype) == 0
    assert error(1 + ulp, middle - bound * 2, 1, dtype) == pytest.approx(2)
    assert error(1 - ulp / 2, 1 - ulp / 4 + bound, 1, dtype) == pytest.approx(1)  # finer below a power of two
    assert error(-1, -middle - bound / 2, 1, dtype) == pytest.approx(0.5)
    assert error(1 + 2 * ulp, 1, 1, dtype) > 1000


@pytest.mark.parametrize("dtype", HALVES)
@given(value=st.floats(-70000, 70000), shift=st.floats(-3, 3), magnitude=st.floats(0, 1e5))
def test_error_is_at_most_that_of_the_accumulator(
    dtype: np.dtype[Any], value: float, shift: float, magnitude: float
) -> None:
    bound = float(error_bound(expect(value, magnitude, dtype))[0])
    accumulated = value + shift * bound
    got = np.array([brute_force_round(accumulated, dtype)], dtype)
    assert weight_grad_error(got, expect(value, magnitude, dtype)) <= abs(shift) * (1 + 1e-6) + 1e-6 * bool(bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bound_of_zero_demands_zero(dtype: np.dtype[Any]) -> None:
    assert error(0, 0, 0, dtype) == 0
    assert error(-0.0, 0, 0, dtype) == 0
    tiny = np.array(1, f"u{dtype.itemsize}").view(dtype)
    assert error(tiny, 0, 0, dtype) == np.inf
    assert error(np.nan, 0, 0, dtype) == np.inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinities_have_to_be_there_and_only_there(dtype: np.dtype[Any]) -> None:
    for exact, right, wrong in (
        (np.nan, np.nan, (0, 1, np.inf)),
        (np.inf, np.inf, (np.nan, -np.inf, 1)),
        (-np.inf, -np.inf, (np.nan, np.inf, 1)),
        (1.0, 1, (np.nan, np.inf, -np.inf)),
    ):
        magnitude = 1.0 if exact == 1 else abs(exact)
        assert error(right, exact, magnitude, dtype) == 0
        assert [error(value, exact, magnitude, dtype) for value in wrong] == [np.inf] * 3 or exact == 1
        assert all(error(value, exact, magnitude, dtype) > 1 for value in wrong)


def test_overflow_to_infinity() -> None:
    assert error(np.inf, 65520, 65520, F16) == 0
    assert error(65504, 65520, 65520, F16) == 0
    assert error(np.inf, 65504, 65504, F16) > 1
    assert error(65504, 66000, 66000, F16) > 1
    assert error(np.inf, 1e30, 1e30, F16) == 0
    assert error(np.inf, 1e30, 1e30, BF16) > 1
    assert error(np.inf, 3.4e38, 3.4e38, BF16) == 0
    assert error(np.inf, 1e39, 1e39, F32) == 0
    assert error(np.inf, 3e38, 3e38, F32) > 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_partial_sums_beyond_fp32_excuse_infinities_and_nan(dtype: np.dtype[Any]) -> None:
    for value in (np.inf, -np.inf, np.nan):
        assert error(value, 1.0, 4e38, dtype) == 0
    assert error(np.nan, 1.0, 3e38, dtype) == np.inf
    assert error(np.inf, 1.0, 3e38, dtype) > 1 or dtype == F16  # whose range ends within the bound
    assert error(np.inf, np.nan, np.nan, dtype) == np.inf


def test_underflow_costs_half_a_unit_for_each_product() -> None:
    tiny = 2.0**-149
    assert error(0, 0.4 * tiny, 0.4 * tiny) <= 1  # one product, rounded to zero
    assert error(tiny, 0.6 * tiny, 0.6 * tiny) <= 1
    assert error(0, 16 * tiny, 16 * tiny, hidden=32) <= 1
    assert error(0, 17 * tiny, 17 * tiny, hidden=32) > 1
    assert error(2 * tiny, 0.5 * tiny, 0.5 * tiny) > 1  # never more than the products themselves


def test_layout_of_weights() -> None:
    expected = expect([1, 2], [1, 2], BF16)
    right = np.array([1, 2], BF16)
    assert weight_grad_error(right, expected) == 0
    assert weight_grad_mismatch(right, expected) is None
    for got, text in (
        (right[:1], "bfloat16[1]"),
        (right.astype(np.float32), "float32[2]"),
        (None, "None"),
    ):
        assert weight_grad_error(got, expected) == np.inf
        assert str(weight_grad_mismatch(got, expected)) == f"weight_grad: expected bfloat16[2], got {text}"
    without = Expected(np.zeros((1, 1)), None, None, None, 1)
    assert weight_grad_error(None, without) == 0
    assert weight_grad_mismatch(None, without) is None
    assert weight_grad_error(right, without) == np.inf
    assert str(weight_grad_mismatch(right, without)) == "weight_grad: expected None, got bfloat16[2]"
    empty = Expected(np.zeros((0, 1)), np.zeros((0, 2)), np.zeros((0, 2)), F32, 1)
    assert weight_grad_error(np.zeros((0, 2), np.float32), empty) == 0
    assert weight_grad_error(np.zeros((0, 3), np.float32), empty) == np.inf


def test_weight_message_says_where_and_how_many() -> None:
    expected = expect([1, 2, 3, np.nan], [1, 2, 3, np.nan], F32)
    got = np.array([1, 2.5, 3, 4], np.float32)
    assert weight_grad_error(got, expected) == np.inf
    assert str(weight_grad_mismatch(got, expected)) == (
        "weight_grad: 2 of 4 elements differ, first at [1]: expected 2.0 (0x40000000), got 2.5 (0x40200000), "
        "off by 3.23e+05 bounds"
    )
    message = explain(np.ones((1, 32), np.float32), got, expected)
    assert message is not None
    assert message.startswith("row_grad: 32 of 32 elements differ")
    assert "\nweight_grad: 2 of 4" in message


# --- what the bound is for: a serial loop fails, lanes pass ----------------------------------------------


def serial(products: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """fp32 sums of each row, one term after the other."""
    return np.cumsum(products, axis=-1, dtype=np.float32)[:, -1]


def lanes(products: npt.NDArray[np.float32], count: int = 32) -> npt.NDArray[np.float32]:
    """fp32 sums of each row in ``count`` interleaved lanes, then over the lanes and the rest."""
    whole = products.shape[1] // count * count
    partial = np.cumsum(products[:, :whole].reshape(len(products), -1, count), axis=1, dtype=np.float32)[:, -1]
    return serial(np.concatenate([partial, products[:, whole:]], axis=1))


@pytest.mark.parametrize("hidden", [1024, 7168, 16384])
def test_serial_sum_fails_and_lanes_pass(hidden: int) -> None:
    rng = np.random.default_rng(hidden)
    tokens = 64
    x, grad = (np.repeat(rng.random((tokens, 1), np.float32) + 0.5, hidden, axis=1) for _ in range(2))
    index = np.arange(tokens, dtype=np.int32)
    expected = finalize_routing_v2_grad(grad, index, x, np.ones((tokens, 1), np.float32))
    assert weight_grad_error(serial(x * grad)[:, None], expected) > 3
    assert weight_grad_error(lanes(x * grad)[:, None], expected) < 1
    assert weight_grad_error((x * grad).sum(1, keepdims=True), expected) < 0.1
    assert "off by" in str(weight_grad_mismatch(serial(x * grad)[:, None], expected))
