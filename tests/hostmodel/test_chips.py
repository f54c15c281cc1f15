"""What the chip decides: compile-time refusals, budgets, V to V order, zero counts, work tensors."""

from __future__ import annotations

import subprocess

import ml_dtypes
import numpy as np
import pytest

from .driver import INCLUDE, NO_AUTO_SYNC, SATURATE, Compiler, Library, out, put


@pytest.fixture(scope="module", params=["ascend910b", "ascend950"])
def chip(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def chips(compiler: Compiler, chip: str) -> Library:
    return compiler.library(chip)


def test_a_library_describes_its_chip(chips: Library, chip: str) -> None:
    described = chips.describe()
    assert described["abi"] == 1
    assert described["chip"] == chip
    expected = (3510, 253952, 64) if chip == "ascend950" else (2201, 196352, 48)
    assert (described["arch"], described["ub_bytes"], described["vector_cores"]) == expected


def test_vector_instructions_in_order_without_automatic_sync(chips: Library, chip: str) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    assert chips.run("two_steps", put(x), out(y)).names == set()
    np.testing.assert_array_equal(y, (x + 1) * 2)
    result = chips.run("two_steps", put(x), out(y), switches=NO_AUTO_SYNC)
    assert result.names == (set() if chip == "ascend950" else {"missing-barrier-v"})


def test_zero_counts(chips: Library, chip: str) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    result = chips.run("zero_count", put(x), out(y), tiling=np.int32(0).tobytes())
    assert result.names == ({"zero-count-3510"} if chip == "ascend950" else set())
    np.testing.assert_array_equal(y, x)
    assert "count-out-of-range" in chips.run("zero_count", put(x), out(y), tiling=np.int32(-1).tobytes()).names


def test_work_tensor_of_a_sum(chips: Library, chip: str) -> None:
    x = np.ones(1024, np.float32)
    y = np.zeros(1, np.float32)
    result = chips.run("small_work", put(x), out(y), tiling=np.int32(1024).tobytes())
    assert result.names == ({"reduce-tmp-too-small"} if chip == "ascend950" else set())
    assert y[0] == 1024


def test_a_sum_brings_its_own_flags(compiler: Compiler) -> None:
    """The count form on 2201 ends with a scalar store, which V and MTE3 wait for without automatic sync."""
    y = np.zeros(1, np.float32)
    arguments = (put(np.ones(1024, np.float32)), out(y))
    result = compiler.library().run("small_work", *arguments, tiling=np.int32(1024).tobytes(), switches=NO_AUTO_SYNC)
    assert result.names == set()
    assert y[0] == 1024


def test_half_sums_saturate_step_by_step(chips: Library) -> None:
    x = np.zeros(128, np.float16)
    x[:4] = [60000, 60000, -60000, -30000]  # exactly 30000; in range at the end, not on the way
    for switches, right in ((0, np.inf), (SATURATE, 65504.0 - 65504.0)):
        y = np.zeros(1, np.float16)
        result = chips.run("half_sum", put(x), out(y), switches=switches)
        assert result.names == set()
        assert y[0] == right or (np.isnan(y[0]) and switches == 0)


def test_what_only_a_950_has(compiler: Compiler) -> None:
    library = compiler.library("ascend950")
    x = np.linspace(-4, 4, 16, dtype=np.float16)
    y = np.zeros(16, ml_dtypes.bfloat16)
    assert library.run("only_950", put(x), out(y)).names == set()
    np.testing.assert_array_equal(y, x.astype(np.float32).astype(ml_dtypes.bfloat16))


# ---- row 19 and what else the compiler refuses, by a readable name ----

REFUSED = {
    "bf16 Add": ("void k(LocalTensor<bfloat16_t> a) { Add(a, a, a, 16); }", "unsupported-dtype"),
    "bf16 Muls": ("void k(LocalTensor<bfloat16_t> a) { Muls(a, a, bfloat16_t(2), 16); }", "unsupported-dtype"),
    "bf16 Axpy": ("void k(LocalTensor<bfloat16_t> a) { Axpy(a, a, bfloat16_t(2), 16); }", "unsupported-dtype"),
    "bf16 WholeReduceSum": (
        "void k(LocalTensor<bfloat16_t> a) { WholeReduceSum(a, a, 64, 1, 1, 1, 8); }",
        "unsupported-dtype",
    ),
    "int32 ReduceSum": ("void k(LocalTensor<int32_t> a) { ReduceSum(a, a, a, 64); }", "unsupported-dtype"),
    "half to bf16": (
        "void k(LocalTensor<bfloat16_t> a, LocalTensor<half> b) { Cast(a, b, RoundMode::CAST_RINT, 16); }",
        "unsupported-dtype",
    ),
    "int64 Duplicate": ("void k(LocalTensor<int64_t> a) { Duplicate(a, int64_t(1), 16); }", "unsupported-dtype"),
    "bf16 Fill": ("void k(GlobalTensor<bfloat16_t> a) { Fill(a, 16, bfloat16_t(0)); }", "unsupported-dtype"),
    "double scalar": ("void k(LocalTensor<float> a) { Muls(a, a, 2.0, 16); }", "conflicting types"),
    "int scalar": ("void k(LocalTensor<float> a) { Muls(a, a, 2, 16); }", "conflicting types"),
    "cube event": ("void k() { SetFlag<HardEvent::M_V>(0); }", "unsupported-event"),
    "barrier of S": ("void k() { PipeBarrier<PIPE_S>(); }", "does not take PIPE_S"),
    "mixed types": ("void k(LocalTensor<float> a, LocalTensor<half> b) { Add(a, a, b, 16); }", "no matching"),
    "narrowing": ("void k(uint32_t n) { DataCopyParams p{1, n, 0, 0}; (void)p; }", "narrowing"),
    "bf16 as float": ("float k(bfloat16_t a) { return static_cast<float>(a); }", "invalid"),
}


@pytest.fixture(scope="module")
def refusals(compiler: Compiler) -> list[str]:
    """The compiler's messages about all refused lines at once; line 3 of the source is the first."""
    source = "".join(f"namespace n{i} {{ {REFUSED[case][0]} }}\n" for i, case in enumerate(REFUSED))
    return compiler.refusal(source).splitlines()


@pytest.mark.parametrize("case", REFUSED)
def test_refused_at_compile_time(refusals: list[str], case: str) -> None:
    line = 3 + list(REFUSED).index(case)
    about = [i for i, text in enumerate(refusals) if f"<stdin>:{line}:" in text]
    assert any(REFUSED[case][1] in text for i in about for text in refusals[i : i + 12])


ACCEPTED_ON_950 = ["bf16 Add", "bf16 Muls", "bf16 Axpy", "half to bf16", "int64 Duplicate", "bf16 Fill"]


def test_accepted_on_950(compiler: Compiler) -> None:
    source = "".join(f"namespace n{i} {{ {REFUSED[case][0]} }}\n" for i, case in enumerate(ACCEPTED_ON_950))
    assert compiler.refusal(source, "ascend950") == ""


ACCEPTED = """
template <typename T> void k(LocalTensor<T> a, GlobalTensor<T> g, int64_t n, uint32_t m, half h)
{
    Duplicate(a, static_cast<T>(0), n);
    Muls(a, a, static_cast<T>(m), m);
    DataCopyPad(a, g[n], {static_cast<uint16_t>(m), static_cast<uint32_t>(m * sizeof(T)), 0, 0, 0}, {false, 0, 0, 0});
    DataCopyPad(g[m], a[m], DataCopyParams{1, 2, 0, 0});
    auto event = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
    SetFlag<HardEvent::MTE2_V>(event);
    if (h > half(1.0f) && float(h) < 2 && h != 0) { a.SetValue(0, a.GetValue(1)); }
    a(3);
    BlockReduceSum<T, false>(a, a, 1, MASK_PLACEHOLDER, 1, 1, 8);
    SetVectorMask<T>(0, 255);
    const uint32_t half_of = AlignUp(m, 8) / Std::min(m, 2u);
    a.template ReinterpretCast<int32_t>().SetSize(half_of);
}
template void k<float>(LocalTensor<float>, GlobalTensor<float>, int64_t, uint32_t, half);
template void k<half>(LocalTensor<half>, GlobalTensor<half>, int64_t, uint32_t, half);
struct T1 { int32_t a; int32_t b; };
extern "C" __global__ __aicore__ void entry(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(T1);
    REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 2", T1);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    KERNEL_TASK_TYPE(2, KERNEL_TYPE_MIX_AIV_1_0);
    GET_TILING_DATA(data, tiling);
    if (TILING_KEY_IS(1)) { (void)x; } else if (TILING_KEY_IS(2)) { (void)y; }
    (void)workspace;
    (void)data;
}
BEGIN_TILING_DATA_DEF(Old)
TILING_DATA_FIELD_DEF(int64_t, rows);
TILING_DATA_FIELD_DEF_ARR(int32_t, 4, parts);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AnOp, Old)
"""


def test_spellings_that_kernels_use_compile(compiler: Compiler, chip: str) -> None:
    assert compiler.refusal(ACCEPTED, chip) == ""


def test_unknown_chip_is_refused_with_the_known_ones() -> None:
    header = INCLUDE / "moegrad_hostmodel" / "chip.h"
    command = ["g++", "-E", "-DMOEGRAD_CHIP=ascend310p", "-x", "c++", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "unknown MOEGRAD_CHIP; known: ascend910b" in done.stderr
