"""Strided, read-only and unaligned inputs (field case 18), floats as bits (19), where results live (12)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from moegrad import _native, finalize_routing_v2_grad, token_unpermute_grad

Array = npt.NDArray[Any]

FLOATS = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)]


def every_second(array: Array) -> Array:
    base = np.zeros((2 * array.shape[0], *array.shape[1:]), array.dtype)
    base[::2] = array
    return base[::2]


def backwards(array: Array) -> Array:
    return array[::-1].copy()[::-1]


def transposed(array: Array) -> Array:
    return np.asfortranarray(array)


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array: Array) -> Array:
    block = np.empty(array.nbytes + 1, np.uint8)
    view = block[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def subclass(array: Array) -> Array:
    return array.view(np.recarray)


LAYOUTS: list[Callable[[Array], Array]] = [
    every_second,
    backwards,
    transposed,
    read_only,
    unaligned,
    subclass,
]


def arguments(data: np.dtype[Any]) -> dict[str, Any]:
    rng = np.random.default_rng(18)
    idx = rng.permutation(12).astype(np.int32) - 1
    return {
        "grad_y": rng.normal(size=(4, 5)).astype(data),
        "expanded_row_idx": idx,
        "expanded_x": rng.normal(size=(3, 4, 5)).astype(data),
        "scales": rng.normal(size=(4, 3)).astype(np.float32),
        "expert_idx": rng.integers(0, 3, (4, 3)).astype(np.int32),
        "bias": rng.normal(size=(3, 5)).astype(data),
    }


def bits(results: tuple[Array, Array]) -> tuple[bytes, bytes]:
    return results[0].tobytes(), results[1].tobytes()


MODE: dict[str, Any] = {"drop_pad_mode": 1, "expert_num": 3, "expert_capacity": 4}


@pytest.mark.parametrize("data", FLOATS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_change_nothing(layout: Callable[[Array], Array], data: np.dtype[Any]) -> None:
    call = arguments(data)
    expected = bits(finalize_routing_v2_grad(**call, **MODE))
    for name in call:
        assert bits(finalize_routing_v2_grad(**(call | {name: layout(call[name])}), **MODE)) == expected, name
    relaid: dict[str, Any] = {name: layout(array) for name, array in call.items()}
    got = finalize_routing_v2_grad(**relaid, **MODE)
    assert bits(got) == expected
    assert [type(array) for array in got] == [np.ndarray, np.ndarray]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_change_nothing_in_padded_mode(layout: Callable[[Array], Array]) -> None:
    rng = np.random.default_rng(5)
    call: dict[str, Any] = {
        "permuted_tokens": rng.normal(size=(6, 5)).astype(np.float32),
        "unpermuted_tokens_grad": rng.normal(size=(4, 5)).astype(np.float32),
        "sorted_indices": np.array([3, 0, -1, 0, 2, 1], np.int32),
        "probs": rng.normal(size=(2, 3)).astype(np.float16),
    }
    expected = bits(token_unpermute_grad(**call, padded_mode=True))
    relaid: dict[str, Any] = {name: layout(array) for name, array in call.items()}
    assert bits(token_unpermute_grad(**relaid, padded_mode=True)) == expected


def test_broadcast_inputs_are_inputs_like_any_other() -> None:
    rows, scales = finalize_routing_v2_grad(
        np.broadcast_to(np.float32(2), (2, 3)),
        np.array([1, 0], np.int32),
        np.broadcast_to(np.float32(5), (2, 3)),
        np.broadcast_to(np.float32(3), (2, 1)),
    )
    assert rows.tolist() == [[6] * 3] * 2
    assert scales.tolist() == [[30], [30]]


@pytest.mark.parametrize("bits16", [0x7FA5, 0xFFA5, 0x0001, 0x8000])
@pytest.mark.parametrize("data", FLOATS[:2], ids=str)
def test_without_weights_bits_are_copied(data: np.dtype[Any], bits16: int) -> None:
    grad = np.full((1, 33), bits16, np.uint16).view(data)
    rows, _ = finalize_routing_v2_grad(grad, np.array([1, 0, 2], np.int32))
    assert rows.dtype == data
    assert (rows.view(np.uint16) == bits16).all()


def test_without_weights_a_float32_nan_keeps_its_payload() -> None:
    grad = np.array([[0x7F800001, 0xFFC12345]], np.uint32).view(np.float32)
    rows, _ = token_unpermute_grad(np.zeros((2, 2), np.float32), grad, np.array([1, 0], np.int32))
    assert rows.view(np.uint32).tolist() == [[0x7F800001, 0xFFC12345]] * 2


@pytest.mark.parametrize("data", FLOATS, ids=str)
@pytest.mark.parametrize("hidden", [1, 7, 64])
def test_results_start_on_a_cache_line_and_are_the_callers_own(data: np.dtype[Any], hidden: int) -> None:
    grad, idx = np.ones((3, hidden), data), np.array([2, 0, 1], np.int32)
    for _ in range(8):
        rows, scales = finalize_routing_v2_grad(grad, idx, grad, np.ones((3, 1), data))
        for array in (rows, scales):
            assert array.ctypes.data % 64 == 0
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert not np.shares_memory(array, grad)
        assert not np.shares_memory(rows, scales)


def test_inputs_that_are_dense_are_not_copied() -> None:
    """Field case 12: what a call allocates beyond its results is small, however much is dropped."""
    grad, x = np.ones((4096, 256), np.float32), np.ones((8, 4096, 256), np.float32)
    scales = np.ones((4096, 8), np.float32)
    rng = np.random.default_rng(12)
    for dropped in (0.0, 0.5, 0.99):
        idx = rng.permutation(4096 * 8).astype(np.int32)
        idx[rng.random(idx.size) < dropped] = -1
        out = (np.empty_like(x), np.empty_like(scales))
        tracemalloc.start()
        finalize_routing_v2_grad(grad, idx, x, scales, None, None, 1, 0, 8, 4096, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20


def test_a_result_too_large_for_any_memory_is_a_memory_error() -> None:
    grad, idx = np.ones((1, 64), np.float32), np.array([0], np.int32)
    with pytest.raises(MemoryError, match="does not fit in the address space"):
        finalize_routing_v2_grad(grad, idx, drop_pad_mode=1, expert_num=2**30, expert_capacity=2**30)


def test_helpers_refuse_what_they_cannot_do() -> None:
    with pytest.raises(TypeError, match="expected int32, got int64"):
        _native.find_bad_index(np.arange(3), 0, 3, True)
    with pytest.raises(ValueError, match="invalid PyCapsule"):
        _native.launch(object(), (), (), (), 1)
    with pytest.raises(IndexError):
        _native.find_bad_values((), ((0, 0, 3, True),))
    with pytest.raises(ValueError, match="expected a dense array"):
        _native.Exported(np.ones((4, 4), np.float32).T, 2, 32)
    with pytest.raises(ValueError, match="at most 32 dimensions, got 33"):
        _native.empty_aligned((1,) * 33, np.dtype(np.float32))
