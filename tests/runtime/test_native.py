"""The compiled helpers against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moegrad import _native

Array = npt.NDArray[Any]


def offences(values: list[int], low: int, high: int, distinct: bool) -> tuple[int, int] | None:
    """find_bad_index in plain Python."""
    repeated, seen = -1, set()
    for i, value in enumerate(values):
        if not low <= value < high:
            return i, repeated
        if distinct and value >= 0 and value in seen and repeated < 0:
            repeated = i
        seen.add(value)
    return None if repeated < 0 else (-1, repeated)


@given(
    st.lists(st.one_of(st.integers(-2, 12), st.integers(-(2**31), 2**31 - 1)), max_size=20),
    st.sampled_from([0, -1]),
    st.sampled_from([0, 1, 9, 12, 64, 65, 20_000, 2**31, 2**40]),
    st.booleans(),
)
def test_find_bad_index(values: list[int], low: int, high: int, distinct: bool) -> None:
    expected = offences(values, low, high, distinct)
    array = np.array(values, np.int32)
    assert _native.find_bad_index(array, low, high, distinct) == expected
    assert _native.find_bad_index(np.repeat(array, 2)[::2], low, high, distinct) == expected


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 8191, 8192, 8193, 100_000])
def test_find_bad_index_at_the_ends_of_its_bitmap(rows: int) -> None:
    indices = np.random.default_rng(rows).permutation(rows).astype(np.int32)
    assert _native.find_bad_index(indices, 0, rows, True) is None
    again = np.append(indices, np.int32(rows - 1))
    assert _native.find_bad_index(again, 0, rows, True) == (-1, rows)
    assert _native.find_bad_index(indices, 0, rows - 1, True) == (int(indices.argmax()), -1)


slices = st.builds(slice, st.integers(0, 5), st.integers(0, 6), st.sampled_from([1, 2, 3, -1, -2]))


@given(st.tuples(slices, slices), st.tuples(slices, slices))
def test_overlapping_bounds(first: tuple[slice, slice], second: tuple[slice, slice]) -> None:
    base = np.zeros((6, 6), np.float32)
    a, b = base[first], base[second]
    assert _native.overlapping_bounds(a, (None, b)) == ((1,) if np.may_share_memory(a, b) else ())


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_empty_aligned(shape: tuple[int, ...], dtype: str) -> None:
    array = _native.empty_aligned(shape, np.dtype(dtype))
    array[...] = 1
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.ctypes.data % 64 == 0
    assert array.flags.c_contiguous
    assert array.flags.aligned


def test_first_odd_shape_reads_sizes_as_it_goes() -> None:
    sizes: dict[str, int] = {"C": 3}
    arrays = (np.ones((2, 5)), None, np.ones((2, 3)))
    assert _native.first_odd_shape(arrays, (("A", "B"), ("A",), ("A", "C")), sizes) == -1
    assert sizes == {"A": 2, "B": 5, "C": 3}
    assert _native.first_odd_shape(arrays, (("A", "B"), ("A",), ("B", "C")), sizes) == 2
    assert _native.first_odd_shape(arrays, (("A",), ("A",), ("A", "C")), sizes) == 0
    assert _native.first_odd_shape(arrays, (("A", "B"), None, None), {"M": 6}) == -1
    assert _native.first_odd_shape(arrays, (("A", "B"), None, None), {"M": 7}) == 2


def test_cpu_variants_end_with_the_baseline() -> None:
    variants = _native.cpu_variants()
    assert variants[-1] == "baseline"
    assert set(variants) <= {"avx512", "avx2", "baseline"}
