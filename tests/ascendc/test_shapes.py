"""Shapes at the edges: long, ragged, many and dropped rows, no tokens, many cores.

Field cases 13, 15 and 21 stand in docs/field-cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moegrad.codegen.operators import make_spec
from moegrad.codegen.targets.ascendc.hostrun import Window
from moegrad.tools.ascend import built, generic_kernels, kernel_for, problem, run_case
from moegrad.tools.cases import Case
from moegrad.tools.program_cases import spec_of

FINALIZE, UNPERMUTE = "finalize_routing_v2_grad", "token_unpermute_grad"
PAD: dict[str, Any] = {"drop_pad_mode": 1, "experts": 4}


def assert_right(case: Case, **options: Any) -> None:
    run = run_case(kernel_for(case), case, **options)
    assert problem(case, run) is None, case.id
    assert run.traffic.ratio == 1.0, run.traffic.text()


@pytest.mark.parametrize("topk", [1, 2, 8, 511, 512])
@pytest.mark.parametrize("mode", ["plain", "scales"])
def test_slots_of_a_token(topk: int, mode: str) -> None:
    assert_right(Case(FINALIZE, mode, "bf16", "f32" if mode == "scales" else None, 3, topk, 33))
    dropped = Case(
        FINALIZE, mode, "bf16", "f32" if mode == "scales" else None, 3, topk, 9, capacity=topk, drop="some", **PAD
    )
    assert_right(dropped)


@pytest.mark.parametrize(
    ("data", "hidden"), [*(("f32", h) for h in (1, 7, 126)), *(("bf16", h) for h in (1, 9, 17, 33, 100))]
)
def test_rows_that_are_no_multiple_of_32_bytes(data: str, hidden: int) -> None:
    """Field case 13: the first elements of every next row are right, in every mode."""
    assert_right(Case(FINALIZE, "plain", data, None, 3, 2, hidden))
    assert_right(Case(FINALIZE, "scales", data, data, 3, 2, hidden))
    assert_right(Case(FINALIZE, "scales_bias", data, data, 3, 2, hidden, experts=3))
    assert_right(Case(UNPERMUTE, "padded", data, None, 3, 2, hidden, experts=2, capacity=3, drop="some"))
    assert_right(Case(UNPERMUTE, "padded_probs", data, data, 3, 2, hidden, experts=2, capacity=3, drop="some"))


@pytest.mark.parametrize("hidden", [16384, 16385, 50001])
@pytest.mark.parametrize("mode", ["plain", "scales", "scales_bias"])
def test_rows_that_no_16_bit_length_holds(hidden: int, mode: str) -> None:
    """Field case 21, and rows that do not fit in UB: 65536 bytes and more."""
    weight = None if mode == "plain" else "f32"
    assert_right(Case(FINALIZE, mode, "f32", weight, 3, 2, hidden, experts=3, values="level"))


def test_more_rows_than_one_copy_takes() -> None:
    """Field case 21: more than 4095 rows of one element."""
    assert_right(Case(FINALIZE, "plain", "f32", None, 5000, 1, 1), cores=1)


@pytest.mark.parametrize("mode", ["plain", "scales", "scales_bias"])
def test_no_tokens(mode: str) -> None:
    weight = None if mode == "plain" else "bf16"
    assert_right(Case(FINALIZE, mode, "bf16", weight, 0, 2, 64, experts=4))
    assert_right(Case(FINALIZE, mode, "bf16", weight, 0, 2, 64, capacity=8, drop="all", **PAD))


@pytest.mark.parametrize("cores", [1, 2, 7, 48])
@pytest.mark.parametrize("tokens", [1, 5, 130])
def test_cores_and_tokens(cores: int, tokens: int) -> None:
    """More cores than tokens, and tokens that fill no whole number of groups and blocks."""
    assert_right(Case(FINALIZE, "scales", "bf16", "bf16", tokens, 3, 17, experts=4), cores=cores, seed=tokens)
    assert_right(Case(FINALIZE, "plain", "bf16", None, tokens, 3, 17, capacity=tokens, drop="some", **PAD), cores=cores)


@pytest.mark.parametrize("drop", ["all", "first", "last"])
@pytest.mark.parametrize("tokens", [1, 2, 3])
@pytest.mark.parametrize("mode", ["plain", "scales", "scales_bias"])
def test_dropped_slots_leave_events_balanced(drop: str, tokens: int, mode: str) -> None:
    """Field case 15: none, one and two iterations; a kernel whose flags do not balance is reported at its end."""
    weight = None if mode == "plain" else "f16"
    for topk, hidden in ((2, 33), (8, 7168)):
        assert_right(
            Case(FINALIZE, mode, "f16", weight, tokens, topk, hidden, capacity=tokens * topk, drop=drop, **PAD)
        )


@pytest.mark.parametrize("rows", [4095 * 3, 4097 * 3])
def test_a_core_with_more_rows_than_one_scan_marks(rows: int) -> None:
    case = Case(FINALIZE, "plain", "bf16", None, 5, 2, 3, drop_pad_mode=1, experts=1, capacity=rows, drop="some")
    assert_right(case, cores=3)


def test_specialised_kernels() -> None:
    cases = [
        Case(FINALIZE, "scales", "bf16", "f32", 3, 8, 7168, capacity=5, drop="some", drop_pad_mode=1, experts=4),
        Case(FINALIZE, "scales_bias", "bf16", "bf16", 5, 2, 100, experts=3),
        Case(FINALIZE, "scales", "f32", "f16", 9, 6, 2048, experts=3),
        Case(UNPERMUTE, "padded_probs", "f16", "f32", 9, 1, 126, experts=3, capacity=4, drop="some"),
        Case(UNPERMUTE, "plain", "bf16", None, 9, 6, 2880, rows=40, drop="some"),
    ]
    kernels = built(spec_of(case, specialised=True) for case in cases)
    for case, kernel in zip(cases, kernels.values(), strict=True):
        for named in (True, False) if not case.has_capacity else (False,):
            run = run_case(kernel, case, every_row_named=named)
            assert problem(case, run) is None, case.id
            assert run.traffic.ratio == 1.0


@pytest.mark.parametrize("chip", ["ascend910b", "ascend950"])
def test_kernels_with_one_size_bound(chip: str) -> None:
    case = Case(FINALIZE, "scales_bias", "bf16", "f16", 7, 3, 100, capacity=6, drop="some", **PAD)
    specs = [
        make_spec(FINALIZE, case.mode, "bf16", "f16", topk, hidden) for topk, hidden in ((3, 0), (0, 100), (3, 100))
    ]
    for kernel in built(specs, chip).values():
        run = run_case(kernel, case)
        assert problem(case, run) is None, kernel.kernel.spec.key
        assert run.traffic.ratio == 1.0


def test_runs_repeat_bit_for_bit_whatever_the_interleaving() -> None:
    case = Case(FINALIZE, "scales_bias", "bf16", "f32", 20, 3, 100, capacity=12, drop="some", **PAD)
    outputs = [run_case(kernel_for(case), case, seed=seed, cores=cores).outputs for seed, cores in ((0, 48), (7, 3))]
    for first, second in zip(outputs[0].values(), outputs[1].values(), strict=True):
        np.testing.assert_array_equal(first.view(np.uint8), second.view(np.uint8))


@pytest.mark.parametrize("mode", ["plain", "scales"])
def test_offsets_beyond_two_to_the_31_elements(mode: str) -> None:
    """Rows at the end of tensors of 2**32 elements, of which only those rows exist."""
    rows, hidden = 2**26, 64
    spec = make_spec(FINALIZE, mode, "f32", "" if mode == "plain" else "f32")
    kernel = generic_kernels(spec.program)[spec.key]
    rng = np.random.default_rng(5)
    grad, x = rng.integers(-3, 4, (2, 2, hidden)).astype(np.float32)
    inputs: dict[str, Any] = {"grad_y": grad, "expanded_row_idx": np.array([rows - 1, rows - 2], np.int32)}
    if mode == "scales":
        inputs |= {"expanded_x": Window(x, rows - 2, rows), "scales": np.array([[2], [0.5]], np.float32)}
    window = Window(np.zeros((2, hidden), np.float32), rows - 2, rows)
    run = kernel.run(inputs, {"M": rows, "K": 1}, every_row_named=True, windows={"grad_expanded_x": window})
    assert run.clean, run.diagnostics[:2]
    weights = np.array([[2], [0.5]]) if mode == "scales" else np.ones((2, 1))
    np.testing.assert_array_equal(run.outputs["grad_expanded_x"], (grad * weights)[::-1])
    if mode == "scales":
        np.testing.assert_array_equal(run.outputs["grad_scales"][:, 0], (grad * x[::-1]).sum(1))
