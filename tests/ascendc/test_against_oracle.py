"""Kernels of any shape on the host model, held against the oracle: every mode, D and P, on A2 and on 950."""

from __future__ import annotations

import pytest

from moegrad.codegen.targets.ascendc.hostrun import LAUNCH, NO_AUTO_SYNC, PACKAGE, SATURATE, STRICT_UB, HostRun
from moegrad.tools.ascend import PROGRAMS, kernel_for, problem, run_case
from moegrad.tools.cases import Case, enumerate_cases

SWITCHES = (0, NO_AUTO_SYNC, STRICT_UB, NO_AUTO_SYNC | STRICT_UB)


def chosen(program: str, count: int, seed: int = 0) -> list[Case]:
    operator, _, mode = program.partition("__")
    return list(enumerate_cases(operator, mode, topks=(1, 2, 8, 20), cases_per_combination=count, seed=seed))


def runs(case: Case, number: int, chip: str) -> list[HostRun]:
    """With the zero fill, and without where the contract allows it; both entries, every switch, in turn."""
    options = {"seed": number, "switches": SWITCHES[number % 4], "entry": (PACKAGE, LAUNCH)[number % 2]}
    kernel = kernel_for(case, chip)
    named = (False,) if case.has_capacity else (False, True)
    return [run_case(kernel, case, every_row_named=value, **options) for value in named]


def wrong(cases: list[Case], chip: str) -> dict[str, str]:
    found = {}
    for number, case in enumerate(cases):
        for run in runs(case, number, chip):
            message = problem(case, run)
            if message is None and run.traffic.ratio != 1.0:
                message = run.traffic.text()
            if message is not None:
                found[case.id] = message
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_of_any_shape_on_a2(program: str) -> None:
    assert wrong(chosen(program, 6), "ascend910b") == {}


@pytest.mark.parametrize("program", PROGRAMS[:1] + PROGRAMS[2:4])
def test_kernels_of_any_shape_on_950(program: str) -> None:
    assert wrong(chosen(program, 3, seed=1), "ascend950") == {}


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["ascend910b4", "ascend910_93", "ascend950"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_of_any_shape_at_length(program: str, chip: str) -> None:
    assert wrong(chosen(program, 40, seed=2), chip) == {}


@pytest.mark.parametrize("operator", ["token_unpermute_grad", "finalize_routing_v2_grad"])
def test_a_saturating_process_gets_finite_rows_right(operator: str) -> None:
    """Where nothing overflows and no NaN comes in, saturation changes no bit."""
    for case in enumerate_cases(operator, cases_per_combination=2, hiddens=(33,), topks=(2,), tokens=(3,)):
        if case.values != "special":
            run = run_case(kernel_for(case), case, switches=SATURATE)
            assert problem(case, run) is None, case.id
