"""Rounding, arithmetic and reductions against independent references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .driver import FUSED_MAC, SATURATE, Array, Compiler, Library, out, put

NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
MODES = {"none": NONE, "rint": RINT, "floor": FLOOR, "ceil": CEIL, "round": ROUND, "trunc": TRUNC, "odd": ODD}


@pytest.fixture(scope="module")
def reductions(compiler: Compiler) -> Library:
    return compiler.library()


@pytest.fixture(scope="module")
def numerics(compiler: Compiler) -> Library:
    return compiler.library()


def pack(*values: float) -> bytes:
    """By-value arguments of four bytes each, in the order of the kernel's parameters."""
    return b"".join(np.array([v], np.float32 if isinstance(v, float) else np.int32).tobytes() for v in values)


def run_cast(library: Library, kernel: str, x: Array, dtype: Any, mode: int, switches: int = 0) -> Array:
    y = np.zeros(x.size, dtype)
    result = library.run(kernel, put(x), out(y), tiling=pack(x.size, mode), switches=switches)
    assert result.names == set()
    return y


def neighbours(x: Array, table: Array) -> tuple[Array, Array]:
    """Places in `table` (ascending magnitudes, then 2^k for infinity) of the values around |x|."""
    above = np.searchsorted(table, np.abs(x), side="left")
    exact = table[np.minimum(above, table.size - 1)] == np.abs(x)
    below = np.where(exact, above, above - 1)
    return below, above


def round_by_table(x: Array, table: Array, mode: int) -> Array:
    """Bit patterns of the rounded |x| with sign bit 15: which neighbour wins is decided value by value."""
    below, above = neighbours(x, table)
    negative = np.signbit(x)
    low, high, size = table[below], table[np.minimum(above, table.size - 1)], np.abs(x)
    up_distance, down_distance = high - size, size - low
    inexact = below != above
    if mode in (NONE, RINT):
        up = (up_distance < down_distance) | ((up_distance == down_distance) & (below % 2 == 1))
    elif mode == ROUND:
        up = up_distance <= down_distance
    elif mode == FLOOR:
        up = negative
    elif mode == CEIL:
        up = ~negative
    elif mode == ODD:
        up = below % 2 == 0
    else:
        up = np.zeros(x.shape, bool)
    places = np.where(inexact & up, above, below)
    return (places + np.where(negative, 0x8000, 0)).astype(np.uint16)


def magnitudes(infinity: int, dtype: Any) -> Array:
    """All magnitudes of a 16-bit format in order, the place of infinity taken by the next power of two."""
    values = np.arange(infinity, dtype=np.uint16).view(dtype).astype(np.float64)
    return np.append(values, 2 * values[-1] - values[-2])


HALF = magnitudes(0x7C00, np.float16)
BFLOAT16 = magnitudes(0x7F80, ml_dtypes.bfloat16)


def interesting(table: Array) -> Array:
    """Every finite value, every midpoint, their float32 neighbours, and what lies beyond the largest value."""
    with np.errstate(over="ignore"):
        values = np.concatenate([table, (table[:-1] + table[1:]) / 2]).astype(np.float32)
        values = values[np.isfinite(values)]
        values = np.concatenate([values, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(0))])
    values = values[np.isfinite(values)]
    random = np.random.default_rng(5).integers(0, 2**32, 20000, np.uint32).view(np.float32)
    values = np.concatenate([values, random[np.isfinite(random)]])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("mode", MODES)
def test_float_to_half_is_bit_exact_in_every_mode(numerics: Library, mode: str) -> None:
    x = interesting(HALF)
    y = run_cast(numerics, "cast_f16_f32", x, np.uint16, MODES[mode])
    wide = np.minimum(np.abs(x.astype(np.float64)), HALF[-1]) * np.where(np.signbit(x), -1.0, 1.0)
    finite_ceiling = {FLOOR, CEIL, TRUNC, ODD}
    expected = round_by_table(wide, HALF, MODES[mode])
    beyond = np.abs(x.astype(np.float64)) > HALF[-2]
    if MODES[mode] in finite_ceiling:  # these may stop at the largest number
        inside = ~beyond
        np.testing.assert_array_equal(y[inside], expected[inside])
        towards_zero = beyond & ((MODES[mode] in (TRUNC, ODD)) | ((MODES[mode] == FLOOR) != np.signbit(x)))
        assert set(y[towards_zero] & 0x7FFF) == {0x7BFF}
        assert set(y[beyond & ~towards_zero] & 0x7FFF) <= {0x7C00}
    else:
        np.testing.assert_array_equal(y, expected)
    if mode in ("none", "rint"):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y, x.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("mode", ["rint", "floor", "ceil", "round", "trunc"])
def test_float_to_bfloat16_is_bit_exact_in_every_mode(numerics: Library, mode: str) -> None:
    x = interesting(BFLOAT16)
    y = run_cast(numerics, "cast_bf16_f32", x, np.uint16, MODES[mode])
    expected = round_by_table(x.astype(np.float64), BFLOAT16, MODES[mode])
    inside = np.abs(x.astype(np.float64)) <= BFLOAT16[-2]
    np.testing.assert_array_equal(y[inside], expected[inside])
    if mode == "rint":
        np.testing.assert_array_equal(y, x.astype(ml_dtypes.bfloat16).view(np.uint16))


@pytest.mark.parametrize(("kernel", "dtype"), [("cast_f32_f16", np.float16), ("cast_f32_bf16", ml_dtypes.bfloat16)])
def test_widening_is_exact_for_all_65536_values(numerics: Library, kernel: str, dtype: Any) -> None:
    x = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(dtype)
    y = run_cast(numerics, kernel, x, np.float32, NONE)
    expected = x.astype(np.float32)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(y[number].view(np.uint32), expected[number].view(np.uint32))
    assert np.isnan(y[~number]).all()


def test_narrowing_returns_every_value_that_was_widened(numerics: Library) -> None:
    for kernel, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        x = np.arange(65536, dtype=np.uint32).astype(np.uint16)
        x = x[~np.isnan(x.view(dtype).astype(np.float32))]
        wide = run_cast(numerics, f"cast_f32_{kernel}", x.view(dtype), np.float32, NONE)
        np.testing.assert_array_equal(run_cast(numerics, f"cast_{kernel}_f32", wide, np.uint16, RINT), x)


@pytest.mark.parametrize("kernel", ["cast_f16_f32", "cast_bf16_f32"])
def test_saturation_and_its_opposite(numerics: Library, kernel: str) -> None:
    dtype = np.float16 if kernel == "cast_f16_f32" else ml_dtypes.bfloat16
    x = np.array([np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1.5], np.float32)
    kept = run_cast(numerics, kernel, x, dtype, RINT).astype(np.float32)
    assert np.isnan(kept[2])
    assert np.isinf(kept[[0, 1, 3, 4]]).all()
    clamped = run_cast(numerics, kernel, x, dtype, RINT, SATURATE).astype(np.float64)
    top = (HALF if dtype is np.float16 else BFLOAT16)[-2]
    np.testing.assert_array_equal(clamped, [top, -top, 0, top, -top, 1.5])


INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "trunc": np.trunc,
}


@pytest.mark.parametrize("mode", INTEGRAL)
def test_rounding_to_integers(numerics: Library, mode: str) -> None:
    x = np.concatenate([np.arange(-40, 41) / 4, [1e9 + 64, -1e9, 2.5e9, -2.5e9, np.inf, -np.inf, 0.49999997]])
    x = x.astype(np.float32)
    rounded = INTEGRAL[mode](x.astype(np.float64))
    np.testing.assert_array_equal(run_cast(numerics, "cast_f32_f32", x, np.float32, MODES[mode]), rounded)
    clipped = np.clip(rounded, -(2.0**31), 2.0**31 - 1).astype(np.int64)
    np.testing.assert_array_equal(run_cast(numerics, "cast_i32_f32", x, np.int32, MODES[mode]), clipped)
    small = x[np.abs(x) <= 10].astype(np.float16)
    expected = INTEGRAL[mode](small.astype(np.float64))
    np.testing.assert_array_equal(run_cast(numerics, "cast_i32_f16", small, np.int32, MODES[mode]), expected)


def test_integers_to_float_round_above_two_to_the_24(numerics: Library) -> None:
    x = np.array([0, 1, -1, 2**24 + 1, 2**24 + 3, 2**31 - 1, -(2**31), 123456789], np.int32)
    np.testing.assert_array_equal(run_cast(numerics, "cast_f32_i32", x, np.float32, NONE), x.astype(np.float32))
    down = run_cast(numerics, "cast_f32_i32", x, np.float32, TRUNC).astype(np.float64)
    assert (np.abs(down) <= np.abs(x.astype(np.float64))).all()
    assert (down == [0, 1, -1, 2**24, 2**24 + 2, 2**31 - 128, -(2**31), 123456784]).all()


def test_cast_at_repeat_level_follows_the_wider_type(numerics: Library) -> None:
    x = np.arange(640).astype(np.float16)
    y = np.zeros(640, np.float32)
    assert numerics.run("cast_repeat", put(x), out(y), tiling=pack(640)).names == set()
    np.testing.assert_array_equal(y, x)


BINARY = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_arithmetic_rounds_once(numerics: Library, dtype: Any) -> None:
    random = np.random.default_rng(3)
    n = 9001
    a, b = (random.standard_normal(n).astype(dtype) * dtype(50) for _ in range(2))
    b[b == 0] = 1
    kernel = "arithmetic_f32" if dtype is np.float32 else "arithmetic_f16"
    scalar = dtype(-1.25)
    positive = np.abs(a) + dtype(0.5)
    expected: list[tuple[int, Array, Array]] = [(i, a, f(a, b)) for i, f in enumerate(BINARY)]
    expected += [(6, a, a + scalar), (7, a, a * scalar), (8, a, np.maximum(a, scalar)), (9, a, np.minimum(a, scalar))]
    expected += [(10, a, np.abs(a)), (11, a, np.maximum(a, dtype(0))), (12, positive, np.sqrt(positive))]
    expected += [(13, positive, dtype(1) / positive)]
    for op, x, right in expected:
        y = np.zeros(n, dtype)
        assert numerics.run(kernel, put(x), put(b), out(y), tiling=pack(n, op, -1.25)).names == set()
        np.testing.assert_array_equal(y, right)
    for op, x, right in [(14, a / 50, np.exp(a / 50)), (15, positive, np.log(positive))]:
        y = np.zeros(n, dtype)
        assert numerics.run(kernel, put(x), put(b), out(y), tiling=pack(n, op, -1.25)).names == set()
        np.testing.assert_allclose(y, right, rtol=2e-3 if dtype is np.float16 else 1e-6, atol=1e-3)


def test_half_arithmetic_overflows_as_the_switch_says(numerics: Library) -> None:
    x = np.array([60000, -60000, 1], np.float16)
    for switches, right in ((0, [np.inf, -np.inf, 2]), (SATURATE, [65504, -65504, 2])):
        y = np.zeros(3, np.float16)
        numerics.run("arithmetic_f16", put(x), put(x), out(y), tiling=pack(3, 0, 0.0), switches=switches)
        np.testing.assert_array_equal(y, right)


def test_multiply_add_with_one_or_two_roundings(numerics: Library) -> None:
    random = np.random.default_rng(4)
    n = 500
    a, b, c = (random.standard_normal(n).astype(np.float32) for _ in range(3))
    s = np.float32(1.1)
    wide = [v.astype(np.float64) for v in (a, b, c)]
    cases = [
        (0, s * a + c, np.float64(s) * wide[0] + wide[2]),
        (1, a * b + c, wide[0] * wide[1] + wide[2]),
        (2, a * c + b, wide[0] * wide[2] + wide[1]),
    ]
    for op, two, one in cases:
        for switches, right in ((0, two), (FUSED_MAC, one.astype(np.float32))):
            y = np.zeros(n, np.float32)
            arguments = (put(a), put(b), put(c), out(y))
            result = numerics.run("multiply_add", *arguments, tiling=pack(n, op, float(s)), switches=switches)
            assert result.names == set()
            np.testing.assert_array_equal(y, right)


def test_compare_and_select(numerics: Library) -> None:
    random = np.random.default_rng(6)
    a, b = (random.integers(-5, 5, 640).astype(np.float32) for _ in range(2))
    y = np.zeros(640, np.float32)
    result = numerics.run("compare_select", put(a), put(b), out(y), tiling=pack(640, 7.5))
    assert result.names == set()
    np.testing.assert_array_equal(y, np.where(a > b, a, np.float32(7.5)))


@pytest.mark.parametrize("mask", [1, 7, 64])
@pytest.mark.parametrize(("block", "step"), [((1, 1, 1), (8, 8, 8)), ((2, 1, 0), (16, 8, 0)), ((1, 2, 1), (8, 16, 4))])
def test_strides_of_a_binary_repeat(
    numerics: Library, mask: int, block: tuple[int, int, int], step: tuple[int, int, int]
) -> None:
    n, repeat = 1024, 5
    a, b = (np.random.default_rng(i).standard_normal(n).astype(np.float32) for i in range(2))
    y = np.zeros(n, np.float32)
    tiling = pack(n, mask, repeat, *block, *step)
    assert numerics.run("strided_add", put(a), put(b), out(y), tiling=tiling).names == set()
    expected = np.full(n, -1, np.float32)
    for r in range(repeat):
        for lane in range(mask):
            to, x0, x1 = (8 * (step[i] * r + block[i] * (lane // 8)) + lane % 8 for i in range(3))
            expected[to] = a[x0] + b[x1]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("kernel", "dtype", "lanes"), [("bit_mask_f32", np.float32, 64), ("bit_mask_f16", np.float16, 128)]
)
def test_mask_in_bits(numerics: Library, kernel: str, dtype: Any, lanes: int) -> None:
    low, high = 0x8000000000000005, 0x9 if lanes == 128 else 0
    x = np.arange(256).astype(dtype)
    y = np.zeros(256, dtype)
    tiling = pack(256, 0) + np.array([low, high], np.uint64).tobytes()
    assert numerics.run(kernel, put(x), out(y), tiling=tiling).names == set()
    bits = (low >> 0) | (high << 64)
    active = np.array([bits >> (i % lanes) & 1 for i in range(256)], bool)
    np.testing.assert_array_equal(y, np.where(active, x + dtype(1), dtype(-1)))


def test_copy_brcb_and_gather(numerics: Library) -> None:
    x = np.arange(256, dtype=np.float32)
    at = np.random.default_rng(1).integers(0, 256, 256).astype(np.uint32)
    copied = np.zeros(256, np.float32)
    for r in range(2):
        for block in range(8):
            source = 8 * (16 * r + 2 * block)
            copied[64 * r + 8 * block :][:8] = x[source:][:8] if source < 256 else 0
    for op, right in ((0, copied), (1, np.repeat(x[:32], 8)), (2, x[at])):
        y = np.zeros(256, np.float32)
        result = numerics.run("rearrange", put(x), put(at * 4), out(y), tiling=pack(op))
        assert result.names == set()
        np.testing.assert_array_equal(y, right)
    bad = np.full(256, 1024, np.uint32)
    y = np.zeros(256, np.float32)
    assert "gather-out-of-bounds" in numerics.run("rearrange", put(x), put(bad), out(y), tiling=pack(2)).names


# ---- reductions ----

BLOCK, PAIR, WHOLE, SUM, SUM_MASK, MAX, WHOLE_MAX, REPEAT_OLD, NEW_BLOCK, NEW_REPEAT, NEW_PAIR = range(11)


def tree(values: list[Any]) -> Any:
    """((1+2)+(3+4))+... with an odd last value carried up."""
    while len(values) > 1:
        paired = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
        values = paired + values[len(values) - len(values) % 2 :]
    return values[0]


def reduce(library: Library, kernel: str, x: Array, kind: int, mask: int, results: int) -> Array:
    y = np.zeros(results, x.dtype)
    result = library.run(kernel, put(x), out(y), tiling=pack(x.size, kind, mask, results))
    assert result.names == set()
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_reductions_of_one_repeat_follow_the_tree(reductions: Library, dtype: Any) -> None:
    kernel, lanes, block = ("reduce_f32", 64, 8) if dtype is np.float32 else ("reduce_f16", 128, 16)
    x = np.random.default_rng(8).standard_normal(4 * lanes).astype(dtype)
    rows = x.reshape(4, lanes)
    whole = [tree(list(row)) for row in rows]
    blocks = [tree(list(b)) for b in x.reshape(-1, block)]
    pairs = list(x[0::2] + x[1::2])
    for kind in (WHOLE, REPEAT_OLD, NEW_REPEAT):
        np.testing.assert_array_equal(reduce(reductions, kernel, x, kind, lanes, 4), whole)
    for kind in (BLOCK, NEW_BLOCK):
        np.testing.assert_array_equal(reduce(reductions, kernel, x, kind, lanes, len(blocks)), blocks)
    for kind in (PAIR, NEW_PAIR):
        np.testing.assert_array_equal(reduce(reductions, kernel, x, kind, lanes, len(pairs)), pairs)
    part = [tree(list(row[:13])) for row in rows]
    np.testing.assert_array_equal(reduce(reductions, kernel, x, WHOLE, 13, 4), part)
    maxima = reduce(reductions, kernel, x, WHOLE_MAX, lanes, 8)
    np.testing.assert_array_equal(maxima[0::2], rows.max(1))
    index = maxima.view(np.uint32 if dtype is np.float32 else np.uint16)[1::2]
    np.testing.assert_array_equal(index, rows.argmax(1))


def chip_sums(compiler: Compiler, chip: str, x: Array) -> tuple[Array, Array]:
    library = compiler.library(chip)
    return reduce(library, "reduce_f32", x, SUM, 0, 1), reduce(library, "reduce_f32", x, SUM_MASK, 64, 1)


def test_sum_over_repeats_differs_with_the_chip(compiler: Compiler) -> None:
    x = np.random.default_rng(9).standard_normal(64 * 21).astype(np.float32)
    parts = [tree(list(row)) for row in x.reshape(-1, 64)]
    sequential = parts[0]
    for part in parts[1:]:
        sequential = sequential + part
    assert sequential != tree(parts)
    count_form, mask_form = chip_sums(compiler, "ascend910b", x)
    assert (count_form[0], mask_form[0]) == (sequential, tree(parts))
    count_form, mask_form = chip_sums(compiler, "ascend950", x)
    assert (count_form[0], mask_form[0]) == (tree(parts), tree(parts))
    few = x[:200]
    folded = few[:64].copy()
    folded += few[64:128]
    folded += few[128:192]
    folded[:8] += few[192:]
    library = compiler.library("ascend950")
    assert reduce(library, "reduce_f32", few, SUM, 0, 1)[0] == tree(list(folded))


def test_masked_off_blocks_are_left_alone_or_zeroed(compiler: Compiler) -> None:
    x = np.ones(64, np.float32)
    assert list(reduce(compiler.library(), "reduce_f32", x, BLOCK, 12, 8)) == [8, 4, *[-1] * 6]
    library = compiler.library("ascend950")
    assert list(reduce(library, "reduce_f32", x, BLOCK, 12, 8)) == [8, 4, *[0] * 6]


def test_largest_with_its_index_and_the_sum_register(reductions: Library) -> None:
    x = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    value, index = reduce(reductions, "reduce_f32", x, MAX, 0, 2)
    assert value == x.max()
    assert np.array([index], np.float32).view(np.uint32)[0] == x.argmax()
    y = np.zeros(1, np.float32)
    result = reductions.run("sum_register", put(x), out(y), tiling=pack(1000))
    assert result.names == set()
    np.testing.assert_allclose(y[0], x.sum(), rtol=1e-4)
