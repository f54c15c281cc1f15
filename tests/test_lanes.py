"""The C headers of cpu/, built for each instruction set this processor runs, against NumPy, bit for bit."""

import ctypes
import mmap
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

ROOT = Path(__file__).resolve().parents[1]
PROBE = Path(__file__).with_name("lanes_probe.c")
CFLAGS = ["-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", f"-I{ROOT / 'cpu'}"]
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", *AVX2]

LANES = 32
GUARD = 0xA5
PROT_NONE, MAP_NORESERVE = 0, 0x4000  # Linux; the mmap module has no names for them
DTYPES = ("f32", "bf16", "f16")

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Build:
    """One way to compile the probe."""

    name: str
    isa: int  # as probe_supports counts
    width: int | None  # floats per vector, where the flags decide it
    flags: tuple[str, ...]


BUILDS = (
    Build("baseline", 0, 4, ("-fopenmp",)),
    Build("serial", 0, 4, ()),
    Build("O2", 0, 4, ("-O2", "-fopenmp")),
    Build("avx2", 1, 8, ("-fopenmp", *AVX2)),
    Build("avx512", 2, 8, ("-fopenmp", *AVX512)),
    Build("avx512-wide", 2, 16, ("-fopenmp", "-DMOEGRAD_VECTOR_512", *AVX512)),
)


class Probe:
    """A compiled lanes_probe.c; probe("load_f16", a, b, 32) calls its probe_load_f16."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))

    def __call__(self, name: str, *arguments: Array | int | float | ctypes.c_int | ctypes.c_void_p) -> int:
        result: int = self.library[f"probe_{name}"](*map(as_c, arguments))
        return result


def as_c(argument: Array | int | float | ctypes.c_int | ctypes.c_void_p) -> object:
    """Arrays go as pointers, Python integers as int64_t, Python floats as float."""
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    if isinstance(argument, float):
        return ctypes.c_float(argument)
    return argument


def compile_probe(build: Build, folder: Path) -> Path:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no C compiler {compiler[0]!r}")
    library = folder / f"probe_{build.name}.so"
    command = [*compiler, *CFLAGS, *build.flags, "-shared", "-fPIC", str(PROBE), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return library


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Probe]:
    """Each build this processor can run."""
    folder = tmp_path_factory.mktemp("lanes")
    baseline = Probe(compile_probe(BUILDS[0], folder))
    runs = [build for build in BUILDS[1:] if baseline("supports", ctypes.c_int(build.isa))]
    return {BUILDS[0].name: baseline} | {build.name: Probe(compile_probe(build, folder)) for build in runs}


@pytest.fixture(params=BUILDS, ids=lambda build: build.name)
def probe(request: pytest.FixtureRequest, probes: dict[str, Probe]) -> Probe:
    if request.param.name not in probes:
        pytest.skip(f"this processor has no {request.param.name}")
    return probes[request.param.name]


# ---- references --------------------------------------------------------------------------------------------


def floats(bits: Array) -> Floats:
    return bits.astype(np.uint32).view(np.float32)


def bits_of(values: Array) -> Array:
    return values.view({2: np.uint16, 4: np.uint32}[values.itemsize])


def widened(dtype: str, halves: Halves) -> Array:
    """The fp32 bits of each half."""
    wide: Array = halves.astype(np.uint32)
    if dtype == "bf16":
        return np.left_shift(wide, 16)
    sign, exponent, mantissa = wide >> 15, wide >> 10 & 31, (wide & 1023).astype(np.float64)
    subnormal = mantissa * 2.0**-24
    normal = (1024 + mantissa) * 2.0 ** (exponent.astype(np.float64) - 25)
    finite = np.where(exponent == 0, subnormal, normal).astype(np.float32).view(np.uint32)
    special = np.where(mantissa == 0, 0x7F800000, 0x7FC00000 | (wide & 1023) << 13)
    bits: Array = np.where(exponent == 31, special, finite) | sign << 31
    return bits.astype(np.uint32)


def narrowed(dtype: str, values: Floats) -> Array:
    """The bits of each value as that dtype, rounded in exact arithmetic."""
    bits = values.view(np.uint32)
    digits, smallest, largest = {"bf16": (7, -126, 127), "f16": (10, -14, 15)}[dtype]
    with np.errstate(all="ignore"):
        exact = np.abs(values.astype(np.float64))
        exponent = np.maximum(np.frexp(exact)[1] - 1, smallest)
        quantum = np.ldexp(1.0, exponent - digits)
        rounded = np.where(np.isinf(exact), np.inf, np.rint(exact / quantum) * quantum)
        rounded = np.where(rounded >= 2.0 ** (largest + 1), np.inf, rounded)
        if dtype == "bf16":
            number = rounded.astype(np.float32).view(np.uint32) >> 16
            nan = bits >> 16 & 0x7FFF | 0x7FC0
        else:
            number = rounded.astype(np.float16).view(np.uint16).astype(np.uint32)
            nan = bits >> 13 & 0x03FF | 0x7E00
    halves: Array = np.where(np.isnan(values), nan, number) | bits >> 31 << 15
    return halves.astype(np.uint16)


def interesting(dtype: str) -> Floats:
    """Every half, every midpoint of two, their fp32 neighbours, NaNs, random bits: a multiple of 32."""
    halves = np.arange(0x8000, dtype=np.uint16)
    exact = widened(dtype, halves)
    if dtype == "bf16":
        middle = exact | 0x8000
    else:
        pairs = exact[:0x7C01].copy()
        pairs[-1] = 0x47800000  # 2^16 takes the place of infinity
        middle = bits_of((floats(pairs[:-1]) + floats(pairs[1:])) / np.float32(2))
    around = np.concatenate([exact, middle])
    nan = np.array([0x7F800001, 0x7F801FFF, 0x7F802000, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    edge = np.array([0, 1, 2, 0x007FFFFF, 0x00800000, 0x477FEFFF, 0x477FF000, 0x7F7FFFFF], np.uint32)
    positive = np.concatenate([around - 1, around, around + 1, nan, edge])
    random = np.random.default_rng(1).integers(0, 2**32, 1 << 20, np.uint32)
    every = np.concatenate([positive, positive | 0x80000000, random])
    return floats(np.resize(every, -(-every.size // LANES) * LANES))


def tree_sum(blocks: Floats) -> Floats:
    """The sum of each row of 32, as lanes_sum promises it."""
    for half in (16, 8, 4, 2, 1):
        blocks = blocks[:, :half] + blocks[:, half : 2 * half]
    return blocks[:, 0]


def at_offset(size: int, offset: int) -> npt.NDArray[np.uint8]:
    """Guard bytes; the first lies offset bytes after a multiple of 64."""
    raw = np.full(size + 128, GUARD, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + size]


def assert_guarded(memory: npt.NDArray[np.uint8], size: int) -> None:
    """Guard bytes stand before and after the size bytes at byte 16."""
    assert (np.delete(memory, np.s_[16 : 16 + size]) == GUARD).all()


def assert_same_numbers(got: Floats, want: Floats) -> None:
    """The same bits, but a NaN made by arithmetic may be any NaN."""
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(bits_of(got)[~nan], bits_of(want)[~nan])


def element(dtype: str) -> npt.DTypeLike:
    return np.float32 if dtype == "f32" else np.uint16


def pattern(dtype: str, count: int, seed: int = 0) -> tuple[Array, Floats]:
    """Normal deviates as that dtype, and as fp32."""
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    if dtype == "f32":
        return values, values
    narrow = narrowed(dtype, values)
    return narrow, floats(widened(dtype, narrow))


# ---- conversions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_flags_choose_the_vector(build: Build, probes: dict[str, Probe]) -> None:
    if build.name not in probes:
        pytest.skip(f"this processor has no {build.name}")
    assert probes[build.name]("width") == build.width


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("function", ["widen", "load"])
def test_widens_all_halves(probe: Probe, function: str, dtype: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    got = np.empty(halves.size, np.float32)
    probe(f"{function}_{dtype}", halves, got, halves.size)
    np.testing.assert_array_equal(bits_of(got), widened(dtype, halves))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("function", ["narrow", "store", "stream"])
def test_narrows_all_boundaries(probe: Probe, function: str, dtype: str) -> None:
    values = interesting(dtype)
    got = at_offset(2 * values.size, 16).view(np.uint16)
    probe(f"{function}_{dtype}", values, got, values.size)
    np.testing.assert_array_equal(got, narrowed(dtype, values))


@pytest.mark.parametrize("function", ["widen", "narrow", "load", "store", "stream"])
def test_f32_passes_all_bits(probe: Probe, function: str) -> None:
    values = interesting("f16")
    got = at_offset(4 * values.size, 16).view(np.float32)
    probe(f"{function}_f32", values, got, values.size)
    np.testing.assert_array_equal(bits_of(got), bits_of(values))


def test_references_agree_with_numpy() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        assert_same_numbers(floats(widened("f16", halves)), halves.view(np.float16).astype(np.float32))
        values = interesting("f16")
        number = ~np.isnan(values)
        want = values.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(narrowed("f16", values)[number], want[number])
    bf16 = narrowed("bf16", floats(widened("bf16", halves)))
    quiet = np.where(halves & 0x7FFF > 0x7F80, halves | 0x40, halves)
    np.testing.assert_array_equal(bf16, quiet)


# ---- arithmetic --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "operation"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply)],
    ids=["add", "sub", "mul"],
)
def test_arithmetic_is_ieee(probe: Probe, name: str, operation: Callable[[Floats, Floats], Floats]) -> None:
    a = interesting("f16")
    b = np.random.default_rng(2).permutation(a)
    got = np.empty_like(a)
    probe(name, a, b, got, a.size)
    with np.errstate(all="ignore"):
        assert_same_numbers(got, operation(a, b))


def test_splat_keeps_bits(probe: Probe) -> None:
    values = floats(np.array([0, 0x80000000, 1, 0x3F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF]))
    got = np.empty((values.size, LANES), np.float32)
    probe("splat", values, got, got.size)
    np.testing.assert_array_equal(bits_of(got), np.repeat(bits_of(values)[:, None], LANES, axis=1))


def test_sum_is_the_tree(probe: Probe) -> None:
    random = np.random.default_rng(3)
    magnitude = 10.0 ** random.integers(-8, 8, (4096, LANES))
    blocks = (random.standard_normal(magnitude.shape) * magnitude).astype(np.float32)
    blocks[:3] = [[-0.0] * LANES, [1e-45] * LANES, [3e38] * LANES]
    got = np.empty(len(blocks), np.float32)
    probe("sum", blocks, got, blocks.size)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits_of(got), bits_of(tree_sum(blocks)))


@pytest.mark.parametrize("dtype", [*DTYPES, "bf16_pairs"])
def test_scale_and_dot_round_each_step(probe: Probe, dtype: str) -> None:
    """The loop of a kernel; a fused multiply-add would change its bits, on any instruction set."""
    kind = dtype.removesuffix("_pairs")
    rows, size, scale = 128, 3 * LANES, np.float32(0.37)
    (x, x32), (g, g32) = pattern(kind, rows * size, 4), pattern(kind, rows * size, 5)
    out, dots = np.empty_like(g), np.empty(rows, np.float32)
    for row in range(rows):
        part = np.s_[row * size : (row + 1) * size]
        probe(f"scale_dot_{dtype}", x[part], g[part], out[part], dots[row:], float(scale), size)
    scaled = g32 * scale if dtype == "f32" else narrowed(kind, g32 * scale)
    np.testing.assert_array_equal(bits_of(out), bits_of(scaled))
    products = (x32 * g32).reshape(rows, 3, LANES)
    want = tree_sum(products[:, 0] + products[:, 1] + products[:, 2])
    np.testing.assert_array_equal(bits_of(dots), bits_of(want))


@pytest.mark.parametrize("dtype", DTYPES)
def test_builds_agree(probes: dict[str, Probe], dtype: str) -> None:
    """Subnormals and overflow to infinity included; NaN products are left to the processor."""
    values = interesting("f16")
    x, g = values[np.isfinite(values)][: 1 << 18], np.resize(values[np.abs(values) < 2], 1 << 18)
    if dtype != "f32":
        x, g = narrowed(dtype, x), narrowed(dtype, g)
    results = []
    for probe in probes.values():
        out, dot = np.empty_like(g), np.empty(1, np.float32)
        probe(f"scale_dot_{dtype}", x, g, out, dot, 1.0 / 3, x.size)
        results.append(out.tobytes() + (b"NaN" if np.isnan(dot[0]) else dot.tobytes()))
    assert len(set(results)) == 1


@pytest.mark.parametrize("scale", [1.0, -0.37, 2.0**-120])
def test_pairs_narrow_all_halves_like_single_ones(probe: Probe, scale: float) -> None:
    """Every NaN, subnormal and overflow among them, in every position of a block."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    for shift in (0, 1, 17):
        given = np.roll(halves, shift)
        wide = floats(widened("bf16", given))
        with np.errstate(all="ignore"):
            want = narrowed("bf16", wide * np.float32(scale))
        stored, streamed, dot = aligned(given.size), aligned(given.size), np.empty(1, np.float32)
        probe("scale_dot_bf16_pairs", given, given, stored, dot, scale, given.size)
        probe("scale_stream_bf16_pairs", given, streamed, scale, given.size)
        np.testing.assert_array_equal(stored, want)
        np.testing.assert_array_equal(streamed, want)


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 1), (0, 31), (1, 15), (16, 16), (8, 3), (31, 1)])
@pytest.mark.parametrize("stream", [0, 1])
def test_a_part_of_a_block_in_pairs(probe: Probe, first: int, count: int, stream: int) -> None:
    given = np.arange(0x3F80, 0x3F80 + LANES, dtype=np.uint16)
    out = np.full(LANES, GUARD, np.uint16)
    probe("scale_bf16_pairs_part", given, out, 1.0, first, count, ctypes.c_int(stream))
    np.testing.assert_array_equal(out[:count], given[:count])
    assert (out[count:] == GUARD).all()


def test_turned_lanes_have_the_same_sum(probe: Probe) -> None:
    """What lets a loop begin before its row, where the cache lines of the output begin."""
    lanes = np.random.default_rng(8).standard_normal(LANES).astype(np.float32)
    turned = np.concatenate([np.roll(lanes, n) for n in range(LANES)])
    sums = np.empty(LANES, np.float32)
    probe("sum", turned, sums, turned.size)
    assert len(set(sums.tolist())) == 1


def aligned(count: int) -> Halves:
    """Room for `count` halves at a multiple of 64 bytes."""
    room = np.empty(count + 32, np.uint16)
    start = -room.ctypes.data % 64 // 2
    return room[start : start + count]


# ---- lanes and memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_alignment(probe: Probe, dtype: str) -> None:
    narrow, wide = pattern(dtype, LANES)
    for offset in range(0, 64, narrow.itemsize):
        source = at_offset(narrow.nbytes, offset)
        source[:] = narrow.view(np.uint8)
        got = np.empty(LANES, np.float32)
        probe(f"load_{dtype}", source, got, LANES)
        np.testing.assert_array_equal(bits_of(got), bits_of(wide))
        for function in ("store", "stream")[: 1 if offset % 16 else 2]:
            target = at_offset(narrow.nbytes + 32, offset)
            probe(f"{function}_{dtype}", wide, target[16:], LANES)
            np.testing.assert_array_equal(target[16:-16], narrow.view(np.uint8))
            assert_guarded(target, LANES * narrow.itemsize)


PARTS = [(0, n) for n in range(LANES)] + [(LANES - n, n) for n in range(LANES)] + [(3, 7)]
"""First lane and number of lanes: the end of a row, the start of one, and both in one block."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stream", [0, 1])
def test_parts_of_a_block_write_their_lanes(probe: Probe, dtype: str, stream: int) -> None:
    narrow, wide = pattern(dtype, LANES)
    for first, count in PARTS:
        target = at_offset(narrow.nbytes + 32, narrow.itemsize)
        probe(f"put_{dtype}_part", wide, target[16:], first, count, ctypes.c_int(stream))
        size = count * narrow.itemsize
        np.testing.assert_array_equal(target[16 : 16 + size], narrow[first : first + count].view(np.uint8))
        assert_guarded(target, size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_a_block_read_their_elements(probe: Probe, dtype: str) -> None:
    """The row ends where readable memory ends: one element more would end the process."""
    narrow, wide = pattern(dtype, LANES)
    page = mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, 2 * page), np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(memory.ctypes.data + page), ctypes.c_size_t(page), PROT_NONE) == 0
    for first, count in PARTS:
        row = memory[page - count * narrow.itemsize : page]
        row[:] = narrow[:count].view(np.uint8)
        got = np.full(LANES, np.nan, np.float32)
        probe(f"load_{dtype}_part", ctypes.c_void_p(memory.ctypes.data + page - row.size), got, first, count)
        np.testing.assert_array_equal(bits_of(got)[first : first + count], bits_of(wide)[:count])
        assert (np.delete(bits_of(got), np.arange(first, first + count)) == 0).all()


# ---- rows --------------------------------------------------------------------------------------------------

SIZES = (0, 1, 15, 16, 17, 63, 64, 65, 200)


@pytest.mark.parametrize("function", ["row_copy", "row_stream"])
def test_rows_are_copied(probe: Probe, function: str) -> None:
    source = np.random.default_rng(6).integers(0, 256, 512, np.uint8)
    for size in SIZES:
        for offset in range(64):
            row = source[offset % 7 : offset % 7 + size]
            target = at_offset(size + 32, offset)
            probe(function, target[16:], row, size)
            np.testing.assert_array_equal(target[16 : 16 + size], row)
            assert_guarded(target, size)


@pytest.mark.parametrize("function", ["row_zero", "row_stream_zero"])
def test_rows_are_zeroed(probe: Probe, function: str) -> None:
    for size in SIZES:
        for offset in range(64):
            target = at_offset(size + 32, offset)
            probe(function, target[16:], size)
            assert not target[16 : 16 + size].any()
            assert_guarded(target, size)


def zero_unnamed_rows(probe: Probe, out: Array, index: Array, threads: int) -> int:
    index = index.astype(np.int32)
    rows, row_bytes = out.shape
    return probe("zero_unnamed_rows", out, rows, row_bytes, index, index.size, ctypes.c_int(threads))


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
@pytest.mark.parametrize(("rows", "row_bytes"), [(1, 4), (64, 6), (65, 33), (300, 4096)])
def test_unnamed_rows_are_zeroed(probe: Probe, rows: int, row_bytes: int, threads: int) -> None:
    random = np.random.default_rng(rows)
    everything = np.arange(rows)
    for index in (
        everything,
        everything[:0],
        everything[:1],
        everything[rows // 2 :],
        random.integers(0, rows, rows),
        random.integers(-2, rows + 3, rows),
        np.array([-1, rows, rows + 1, -(2**31), 2**31 - 1]),
    ):
        memory = at_offset(rows * row_bytes + 32, 2)
        out = memory[16:-16].reshape(rows, row_bytes)
        assert zero_unnamed_rows(probe, out, index, threads) == 0
        want = np.where(np.isin(everything, index), GUARD, 0)
        np.testing.assert_array_equal(out, np.repeat(want[:, None], row_bytes, axis=1))
        assert_guarded(memory, out.size)


def test_no_rows_no_writes(probe: Probe) -> None:
    nothing = ctypes.c_void_p(None)
    assert probe("zero_unnamed_rows", nothing, 0, 64, np.array([0, -1], np.int32), 2, ctypes.c_int(2)) == 0
    assert probe("zero_unnamed_rows", nothing, 0, 64, nothing, 0, ctypes.c_int(2)) == 0


def test_no_memory_no_writes(probe: Probe) -> None:
    out = np.full(64, GUARD, np.uint8)
    assert probe("zero_unnamed_rows", out, 2**62, 1, np.zeros(1, np.int32), 1, ctypes.c_int(1)) == -1
    assert (out == GUARD).all()


def test_row_offsets_are_64_bit(probe: Probe) -> None:
    """Row 2^20 of 4096 bytes begins at 2^32; of this memory only that page is ever touched."""
    rows, row_bytes = (1 << 20) + 1, 4096
    reserve = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    memory = np.frombuffer(mmap.mmap(-1, rows * row_bytes, flags=reserve), np.uint8)
    memory[-row_bytes:] = GUARD
    assert zero_unnamed_rows(probe, memory.reshape(rows, row_bytes), np.arange(rows - 1), 2) == 0
    assert not memory[-row_bytes:].any()


# ---- other processors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("-fopenmp",)], ids=["serial", "openmp"])
def test_compiles_for_aarch64(tmp_path: Path, flags: tuple[str, ...]) -> None:
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        pytest.skip("no cross compiler")
    command = [compiler, *CFLAGS, *flags, "-c", str(PROBE), "-o", str(tmp_path / "probe.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
