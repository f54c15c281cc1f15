"""The worked examples of docs/operators.md for every dtype, and field cases 1 to 10 and 13."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from moegrad import finalize_routing_v2_grad, token_unpermute_grad

Array = npt.NDArray[Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [pytest.param(np.dtype(dtype), id=np.dtype(dtype).name) for dtype in (np.float16, BF16, np.float32)]
each_data = pytest.mark.parametrize("data", FLOATS)
each_weight = pytest.mark.parametrize("weight", FLOATS)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """An output full of NaN inside a larger buffer of 0x5A bytes, and that buffer."""
    size = int(np.prod(shape)) * dtype.itemsize
    block = np.full(size + 128, 0x5A, np.uint8)
    view = block[64 : 64 + size].view(dtype).reshape(shape)
    view[...] = np.nan
    return view, block


def guards_hold(block: Array) -> bool:
    return bool((block[:64] == 0x5A).all() and (block[-64:] == 0x5A).all())


class Example1:
    """Mode 1, R=2 K=2 H=2 E=2 C=2: slots 0 and 3 dropped."""

    def __init__(self, data: np.dtype[Any], weight: np.dtype[Any]) -> None:
        self.grad_y = np.array([[1, 2], [3, 4]], data)
        self.idx = ints(-1, 0, 3, -1)
        self.x = np.array([[[10, 20], [30, 40]], [[50, 60], [70, 80]]], data)
        self.scales = np.array([[0.5, 0.25], [2, 1]], weight)
        self.rows = np.array([[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], data)
        self.mode: dict[str, int] = {"drop_pad_mode": 1, "expert_num": 2, "expert_capacity": 2}

    def run(self, **more: Any) -> tuple[Array, Array]:
        arguments = {"scales": self.scales, **self.mode, **more}
        return finalize_routing_v2_grad(self.grad_y, self.idx, self.x, **arguments)


@each_data
@each_weight
def test_example_1_drop_pad_with_sentinels(data: np.dtype[Any], weight: np.dtype[Any]) -> None:
    case = Example1(data, weight)
    rows, scales = case.run()
    np.testing.assert_array_equal(rows, case.rows)
    np.testing.assert_array_equal(scales, np.array([[0, 50], [530, 0]], weight))
    assert (rows.dtype, scales.dtype) == (data, weight)
    assert not np.signbit(rows).any(), "rows that nobody names are +0"


@each_data
@each_weight
def test_case_1_guards_around_both_outputs_survive(data: np.dtype[Any], weight: np.dtype[Any]) -> None:
    case = Example1(data, weight)
    (rows, around_rows), (scales, around_scales) = guarded((2, 2, 2), data), guarded((2, 2), weight)
    got = case.run(out=(rows, scales))
    assert got[0] is rows
    assert got[1] is scales
    np.testing.assert_array_equal(rows, case.rows)
    np.testing.assert_array_equal(scales, np.array([[0, 50], [530, 0]], weight))
    assert guards_hold(around_rows)
    assert guards_hold(around_scales)


@each_data
def test_case_2_weight_of_a_dropped_slot_does_not_matter(data: np.dtype[Any]) -> None:
    case = Example1(data, np.dtype(np.float32))
    case.x[-1, -1] = np.nan  # the row that -1 would read by wraparound belongs to slot 2 only
    case.idx = ints(-1, 0, 1, -1)
    results = []
    for weight in (0, 1):
        case.scales[0, 0] = weight
        results.append(case.run())
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert np.isfinite(results[0][1]).all()
    assert results[0][1][0, 0] == 0


@each_data
@each_weight
def test_example_2_bias_counts_for_dropped_slots(data: np.dtype[Any], weight: np.dtype[Any]) -> None:
    case = Example1(data, weight)
    expert_idx, bias = np.array([[1, 0], [1, 1]], np.int32), np.array([[1, 1], [2, 2]], data)
    rows, scales = case.run(expert_idx=expert_idx, bias=bias)
    np.testing.assert_array_equal(rows, case.rows)
    np.testing.assert_array_equal(scales, np.array([[6, 53], [544, 14]], weight))


@each_data
@pytest.mark.parametrize("active_num", [4, np.int64(4), np.uint8(4)])
def test_example_3_active_num(data: np.dtype[Any], active_num: Any) -> None:
    grad_y = np.repeat(np.array([[1], [2], [3]], data), 2, axis=1)
    x = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], data)
    rows, around = guarded((4, 2), data)
    scales = np.empty((3, 2), data)
    finalize_routing_v2_grad(
        grad_y, ints(5, 0, 2, 4, 1, 3), x, np.ones((3, 2), data), active_num=active_num, out=(rows, scales)
    )
    np.testing.assert_array_equal(rows, np.array([[1, 1], [3, 3], [2, 2], [3, 3]], data))
    np.testing.assert_array_equal(scales, np.array([[0, 3], [22, 0], [21, 45]], data))
    assert guards_hold(around)


@each_data
def test_case_6_truncated_permuted_tokens_are_the_same_thing(data: np.dtype[Any]) -> None:
    grad = np.repeat(np.array([[1], [2], [3]], data), 2, axis=1)
    x = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], data)
    rows, probs = token_unpermute_grad(x, grad, ints(5, 0, 2, 4, 1, 3), np.ones((3, 2), data))
    np.testing.assert_array_equal(rows, np.array([[1, 1], [3, 3], [2, 2], [3, 3]], data))
    np.testing.assert_array_equal(probs, np.array([[0, 3], [22, 0], [21, 45]], data))


@pytest.mark.parametrize("active_num", [0, -1, 6, 7, -(2**63), 2**63 - 1])
def test_case_6_no_limit(active_num: int) -> None:
    grad_y = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
    rows, _ = finalize_routing_v2_grad(grad_y, ints(5, 0, 2, 4, 1, 3), active_num=active_num)
    np.testing.assert_array_equal(rows[:, 0], [1, 3, 2, 3, 2, 1])


def test_case_6_active_num_means_nothing_with_drop_pad() -> None:
    case = Example1(np.dtype(np.float32), np.dtype(np.float32))
    np.testing.assert_array_equal(case.run(active_num=1)[0], case.rows)


@each_data
def test_example_4_direction_of_the_map(data: np.dtype[Any]) -> None:
    grad = np.array([[1], [2], [3], [4]], data)
    rows, none = finalize_routing_v2_grad(grad, ints(1, 3, 0, 2))
    assert rows.tolist() == [[3], [1], [4], [2]]
    assert none is None
    rows, none = token_unpermute_grad(np.zeros((4, 1), data), grad, ints(1, 3, 0, 2))
    assert rows.tolist() == [[3], [1], [4], [2]]
    assert none is None


@each_data
@each_weight
@pytest.mark.parametrize("shape", [(2, 2), (4,), (4, 1), (1, 2, 2)])
def test_example_5_padded_mode(data: np.dtype[Any], weight: np.dtype[Any], shape: tuple[int, ...]) -> None:
    permuted = np.array([[1, 1], [2, 2], [3, 3], [4, 4]], data)
    grad = np.array([[1, 2], [3, 4]], data)
    probs = np.array([0.5, 2, 1, 7], weight).reshape(shape)
    rows, grads = token_unpermute_grad(permuted, grad, ints(1, 0, 0, -1), probs, True, (2, 2))
    np.testing.assert_array_equal(rows, np.array([[1.5, 2], [2, 4], [1, 2], [0, 0]], data))
    np.testing.assert_array_equal(grads, np.array([7, 6, 9, 0], weight).reshape(shape))
    assert (rows.dtype, grads.dtype) == (data, weight)


@each_data
@pytest.mark.parametrize("restore", [None, [2, 2], (np.int64(2), 2), np.array([2, 2])])
def test_example_5_without_probs(data: np.dtype[Any], restore: Any) -> None:
    grad = np.array([[1, 2], [3, 4]], data)
    rows, none = token_unpermute_grad(np.zeros((4, 2), data), grad, ints(1, 0, 0, -1), None, True, restore)
    np.testing.assert_array_equal(rows, np.array([[3, 4], [1, 2], [1, 2], [0, 0]], data))
    assert none is None


@each_data
def test_case_4_rows_nobody_writes_are_zero_each_time(data: np.dtype[Any]) -> None:
    rows, around = guarded((2, 5, 3), data)
    grad = np.array([[1, 2, 3], [4, 5, 6]], data)
    for idx in (ints(9, 0), ints(4, 7)):
        finalize_routing_v2_grad(grad, idx, drop_pad_mode=1, expert_num=2, expert_capacity=5, out=(rows, None))
        expected = np.zeros((10, 3), data)
        expected[idx] = grad
        assert rows.tobytes() == expected.tobytes(), "zero is +0, to the bit"
        assert guards_hold(around)


@each_data
def test_case_5_zero_tokens(data: np.dtype[Any]) -> None:
    grad, idx, scales = np.zeros((0, 64), data), ints(), np.zeros((0, 3), data)
    out = (np.full((4, 8, 64), np.nan, data), np.zeros((0, 3), data))
    x = np.ones((4, 8, 64), data)
    finalize_routing_v2_grad(grad, idx, x, scales, None, None, 1, 0, 4, 8, out=out)
    assert not out[0].any()
    rows, grads = finalize_routing_v2_grad(grad, idx, np.zeros((0, 64), data), scales)
    assert (rows.shape, grads.shape) == ((0, 64), (0, 3))
    rows, _ = finalize_routing_v2_grad(grad, idx)
    assert rows.shape == (0, 64)
    rows, grads = token_unpermute_grad(np.zeros((0, 64), data), grad, idx, scales)
    assert (rows.shape, grads.shape) == ((0, 64), (0, 3))
    rows, grads = token_unpermute_grad(np.ones((2, 64), data), grad, ints(-1, -1), np.ones(2, data), True)
    assert not rows.any()
    assert not grads.any()
    rows, grads = token_unpermute_grad(np.ones((0, 64), data), grad, idx, np.ones((2, 0), data), True)
    assert (rows.shape, grads.shape) == ((0, 64), (2, 0))


@each_data
def test_case_5_one_slot_and_all_slots_dropped(data: np.dtype[Any]) -> None:
    rows, grads = finalize_routing_v2_grad(
        np.array([[2, 3]], data), ints(0), np.array([[4, 5]], data), np.full((1, 1), 2, data)
    )
    assert (rows.tolist(), grads.tolist()) == ([[4, 6]], [[23]])
    x, scales = np.full((2, 3, 4), np.nan, data), np.ones((3, 2), data)
    rows, grads = finalize_routing_v2_grad(np.ones((3, 4), data), ints(*[-1] * 6), x, scales, None, None, 1, 0, 2, 3)
    assert not rows.any()
    assert not grads.any()


def test_case_5_truncation_to_no_row_at_all() -> None:
    rows, grads = token_unpermute_grad(
        np.zeros((0, 3), np.float32),
        np.ones((2, 3), np.float32),
        ints(1, 3, 0, 2),
        np.ones((2, 2), np.float32),
    )
    assert rows.shape == (0, 3)
    assert grads.tolist() == [[0, 0], [0, 0]]


@each_data
def test_case_8_slots_are_token_major(data: np.dtype[Any]) -> None:
    rows, _ = finalize_routing_v2_grad(np.array([[1], [10]], data), ints(0, 1, 2, 3))
    assert rows.ravel().tolist() == [1, 1, 10, 10]


@each_data
def test_case_9_one_choice(data: np.dtype[Any]) -> None:
    rng = np.random.default_rng(9)
    grad, x = (rng.integers(-4, 5, (5, 4)).astype(data) for _ in range(2))
    idx = ints(2, 4, 1, 0, 3)
    rows, grads = finalize_routing_v2_grad(grad, idx, x, np.ones((5, 1), data))
    dots = (x.astype(np.float64)[idx] * grad.astype(np.float64)).sum(axis=1)
    assert grads.shape == (5, 1)
    np.testing.assert_array_equal(grads[:, 0].astype(np.float64), dots)
    np.testing.assert_array_equal(rows[idx], grad)


def test_case_10_fp32_weights_with_bf16_rows() -> None:
    rows, grads = finalize_routing_v2_grad(
        np.full((1, 1), 100, BF16), ints(0), np.full((1, 1), 3, BF16), np.full((1, 1), 0.3, np.float32)
    )
    assert float(rows[0, 0]) == 30.0
    assert grads.dtype == np.float32
    assert grads[0, 0] == 300


@pytest.mark.parametrize(("name", "hidden"), [("float32", 1), ("float32", 7), ("float32", 126)] + [
    ("bfloat16", h) for h in (1, 9, 17, 33, 100)
])  # fmt: skip
def test_case_13_odd_row_lengths(name: str, hidden: int) -> None:
    data = np.dtype(name)
    grad = np.arange(1, 3 * hidden + 1).reshape(3, hidden).astype(data)
    idx = ints(4, 1, 5, 0, 2, 3)
    rows, around = guarded((6, hidden), data)
    scales = np.full((3, 2), 2, data)
    grads = np.empty_like(scales)
    finalize_routing_v2_grad(grad, idx, np.ones((6, hidden), data), scales, out=(rows, grads))
    np.testing.assert_array_equal(rows[idx], np.repeat(grad, 2, axis=0) * data.type(2))
    assert guards_hold(around)
