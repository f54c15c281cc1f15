"""The Unified Buffer plan: alignment, budget, rows in flight, its twin in the tiling function.

Field case 14 stands in docs/field-cases.md.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context

from moegrad.codegen.chips import chip
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import ascend_kernel, program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function
from moegrad.codegen.passes import ub_plan
from moegrad.codegen.passes.plan_ascend import AscendPlan, PlanAscendPass, plan_table, read_plan
from moegrad.codegen.pipeline import lower
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.ascendc.hostrun import HostKernel
from moegrad.tools.ascend import PROGRAMS, generic_kernels


def spec(mode: str, data: str, weight: str, topk: int, hidden: int) -> KernelSpec:
    return make_spec("finalize_routing_v2_grad", mode, data, weight, topk, hidden)


def plan(spec_: KernelSpec, name: str = "") -> AscendPlan:
    return read_plan(function(lower(program_of(spec_), spec_, "ascendc", chip=name)))


def places(found: AscendPlan, topk: int) -> list[ub_plan.Placed]:
    assert found.sizes is not None
    return ub_plan.place(found.buffers, found.sizes, topk)


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("hidden", [1, 7, 100, 126, 1024, 7168, 7936, 16384, 16385, 100001])
@pytest.mark.parametrize(("mode", "weight"), [("plain", ""), ("scales", "bf16"), ("scales_bias", "f32")])
@pytest.mark.parametrize("data", ["f16", "f32"])
def test_every_buffer_is_aligned_and_all_fit(name: str, hidden: int, mode: str, weight: str, data: str) -> None:
    found = plan(spec(mode, data, weight, 8, hidden), name)
    placed = places(found, 8)
    assert all(item.offset % 32 == 0 and item.bytes % 32 == 0 for item in placed)
    assert [item.offset for item in placed[1:]] == [item.end for item in placed[:-1]]
    assert placed[-1].end <= chip(name).plan_bytes
    assert found.sizes is not None
    assert found.sizes.pitch * 2 % 32 == 0
    assert found.sizes.tile * found.sizes.tiles >= hidden > found.sizes.tile * (found.sizes.tiles - 1)


def test_a_ragged_16_bit_row_starts_where_its_pitch_says() -> None:
    """Field case 14: rows of 200 bytes, the second starts at 224."""
    sizes = plan(spec("scales", "bf16", "bf16", 2, 100)).sizes
    assert sizes is not None
    assert sizes.pitch * 2 == 224


def test_six_long_rows_do_not_fit_so_the_row_is_cut() -> None:
    """Field case 14: six fp32 rows of 7936 are 190464 bytes, more than 184 KiB."""
    found = plan(spec("scales", "f32", "f32", 8, 7936))
    assert found.tiled
    assert found.sizes is not None
    assert found.sizes.tile < 7936
    assert places(found, 8)[-1].end <= 184 * 1024


@pytest.mark.parametrize("hidden", [64, 512, 1024, 4096])
def test_small_rows_fly_together(hidden: int) -> None:
    found = plan(spec("scales", "bf16", "f32", 8, hidden))
    assert found.sizes is not None
    rows = found.sizes.group_tokens * found.sizes.chunk_slots
    assert rows * hidden * 2 >= ub_plan.FLIGHT_BYTES or found.sizes.group_tokens == found.sizes.block_tokens


def test_a_plan_that_cannot_be_is_refused_with_its_table() -> None:
    spec_ = spec("scales", "bf16", "f32", 8, 7168)
    module = lower(program_of(spec_), spec_, "ascendc", after="split-inactive").clone()
    with pytest.raises(
        LoweringError, match=r"not even 256 elements a row fit in UB\noffset +bytes(.|\n)*of 9000 bytes"
    ):
        PlanAscendPass(ub_bytes=9000).apply(Context(), module)


def test_the_check_names_what_is_wrong_and_shows_the_plan() -> None:
    found = plan(spec("scales", "bf16", "f32", 8, 7168))
    assert found.sizes is not None
    with pytest.raises(LoweringError, match=r"kernel: plan-ascend: 153600 bytes in all, 1000 at most\noffset"):
        ub_plan.check(places(found, 8), found.sizes, 7168, 1000, "kernel")
    with pytest.raises(LoweringError, match="rows of 8589934592 bytes, a stride of 4294967295 at most"):
        ub_plan.check(places(found, 8), found.sizes, 2**31, 200000, "kernel")


def test_the_table_of_the_reference_kernel() -> None:
    spec_ = spec("scales", "bf16", "f32", 8, 7168)
    text = plan_table(lower(program_of(spec_), spec_, "ascendc"))
    assert text.splitlines()[0].split() == ["offset", "bytes", "count", "position", "type", "buffer", "holds"]
    assert " 32768  14336      2  VECIN     bf16  expandedXIn          rows of expanded_x" in text
    assert text.splitlines()[-1] == "153600 of 188160 bytes, 34560 free"


def test_the_table_of_a_kernel_of_any_shape_gives_the_rules() -> None:
    spec_ = spec("scales", "bf16", "f32", 0, 0)
    text = plan_table(lower(program_of(spec_), spec_, "ascendc"))
    assert "2 x groupTokens * chunkSlots * pitch * 2" in text


def generic(program: str) -> HostKernel:
    return next(iter(generic_kernels(program).values()))


SHAPES = st.tuples(st.integers(1, 512), st.one_of(st.integers(1, 400), st.integers(1, 200000)), st.integers(0, 300))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_tiling_function_solves_as_the_pass_does(program: str) -> None:
    kernel = generic(program)
    found = read_plan(function(kernel.kernel.module))

    @settings(max_examples=60, deadline=None)
    @given(SHAPES)
    def agrees(shape: tuple[int, int, int]) -> None:
        topk, hidden, tokens = shape
        topk = 1 if "padded" in program else topk
        sizes = {"R": tokens, "K": topk, "N": tokens * topk, "M": tokens * topk, "H": hidden, "E": 4}
        got = kernel.tiling(sizes)
        want = ub_plan.solve(found.need, topk, hidden, found.ub_bytes)
        assert want is not None
        assert (got["tile"], got["pitch"], got["blockTokens"], got["groupTokens"], got["chunkSlots"]) == (
            want.tile,
            want.pitch,
            want.block_tokens,
            want.group_tokens,
            want.chunk_slots,
        )

    agrees()


@pytest.mark.parametrize(
    ("sizes", "cores", "message"),
    [
        ({"K": 0}, 4, "topk: ascend910b takes 1 to 512 slots a token"),
        ({"K": 513}, 4, "topk: ascend910b takes 1 to 512 slots a token"),
        ({"H": 0}, 4, r"hidden: expected 1 to 2\*\*29"),
        ({"M": -1}, 4, "M: expected a size that is not negative"),
        ({"N": 7}, 4, r"N: expected R \* topk slots"),
        ({}, -1, "cores: expected at least 1"),
    ],
)
def test_the_tiling_function_refuses_bad_calls(sizes: dict[str, int], cores: int, message: str) -> None:
    good = {"R": 3, "K": 2, "N": 6, "M": 6, "H": 64, "E": 4}
    with pytest.raises(LoweringError, match=message):
        generic("finalize_routing_v2_grad__scales").tiling(good | sizes, cores=cores)


@pytest.mark.parametrize("tokens", [0, 1, 5, 47, 48, 49, 1000])
@pytest.mark.parametrize("cores", [1, 40, 48])
def test_tokens_are_spread_over_the_cores(tokens: int, cores: int) -> None:
    sizes = {"R": tokens, "K": 2, "N": tokens * 2, "M": tokens * 2, "H": 64, "E": 4}
    got = generic("finalize_routing_v2_grad__scales").tiling(sizes, every_row_named=True, cores=cores)
    assert got["blockCount"] == max(1, min(cores, tokens))
    assert got["tokensPerCore"] * got["blockCount"] + got["tokensLeft"] == tokens
    assert 0 <= got["tokensLeft"] < got["blockCount"]


def test_rows_to_fill_are_spread_too() -> None:
    sizes = {"R": 0, "K": 2, "N": 0, "M": 100, "H": 64, "E": 4}
    got = generic("finalize_routing_v2_grad__scales").tiling(sizes, cores=48)
    assert (got["blockCount"], got["rowsPerCoreOfM"], got["rowsLeftOfM"], got["zeroFill"]) == (48, 2, 4, 1)


def test_a_specialised_kernel_refuses_a_chip_with_less_buffer() -> None:
    spec_ = spec("scales", "bf16", "f32", 8, 7168)
    text = ascend_kernel(spec_).files[f"{spec_.key}_tiling.h"]
    assert "constexpr int64_t UB_BYTES = 153600;" in text
    assert "if (ubBytes < UB_BYTES) {" in text
