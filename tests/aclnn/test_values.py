"""Both operators through their two phases, held against the oracle: every mode, every D, strided inputs."""

from __future__ import annotations

import numpy as np
import pytest

from moegrad.aclnn import Session
from moegrad.tools.aclnn_runs import run_through_aclnn
from moegrad.tools.cases import MODES, Case, enumerate_cases
from moegrad.tools.compare import explain
from moegrad.tools.verify import verify

MODES_OF_ALL = [(operator, mode) for operator, modes in MODES.items() for mode in modes]


def chosen(operator: str, mode: str, count: int, seed: int = 0) -> list[Case]:
    cases = enumerate_cases(operator, mode, topks=(1, 2, 8), cases_per_combination=count, seed=seed)
    return [case for case in cases if case.weight_dtype in (None, "f32")]


def wrong(cases: list[Case], session: Session) -> dict[str, str]:
    found = {}
    for case in cases:
        message = explain(*run_through_aclnn(case, session), case.expected())
        if message is not None:
            found[case.id] = message
    return found


@pytest.mark.parametrize(("operator", "mode"), MODES_OF_ALL)
def test_every_mode_and_dtype_on_a2(operator: str, mode: str, session: Session) -> None:
    cases = chosen(operator, mode, 5)
    assert len({case.data_dtype for case in cases}) == 3
    assert wrong(cases, session) == {}


@pytest.mark.parametrize(("operator", "mode"), MODES_OF_ALL)
def test_every_mode_on_950(operator: str, mode: str, session_950: Session) -> None:
    """Where token_unpermute_grad runs as finalize_routing_v2_grad, but for its padded modes."""
    cases = [case for case in chosen(operator, mode, 5, seed=1) if case.data_dtype == "bf16"]
    assert wrong(cases, session_950) == {}


@pytest.mark.parametrize("hidden", [96, 97])
def test_a_kernel_of_the_shape_and_one_of_any_shape_give_the_same(hidden: int, session: Session) -> None:
    """The library has kernels of its own for topK 2 and hidden size 96."""
    for mode in MODES["finalize_routing_v2_grad"]:
        weight = None if mode == "plain" else "f32"
        case = Case("finalize_routing_v2_grad", mode, "bf16", weight, 7, 2, hidden, experts=4)
        assert wrong([case], session) == {}


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["ascend910b", "ascend910_93", "ascend950"])
def test_every_combination_at_length(chip: str) -> None:
    report = verify(targets=(f"aclnn:{chip}",), cases_per_combination=6, seed=3)
    assert report.passed, report


def test_strided_inputs_need_a_workspace_and_give_the_same(session: Session) -> None:
    case = Case("finalize_routing_v2_grad", "scales", "f32", "f32", 5, 2, 33)
    given = case.arguments()
    wide = np.full((5, 80), np.nan, np.float32)
    wide[:, 3:36] = given["grad_y"]
    rows = np.asfortranarray(given["expanded_x"])
    index = np.repeat(given["expanded_row_idx"], 3)[::3]
    results = []
    for inputs in (
        (given["grad_y"], given["expanded_row_idx"], given["expanded_x"], given["scales"]),
        (wide[:, 3:36], index, rows, given["scales"]),
    ):
        out, weights = np.full((10, 33), np.nan, np.float32), np.full((5, 2), np.nan, np.float32)
        arguments = (*inputs, None, None, 0, 0, 0, 0, out, weights)
        size, executor = session.aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(*arguments)
        results.append((size, out, weights))
        session.aclnnMoeFinalizeRoutingV2Grad(session.malloc(size), size, executor)
    (none, *dense), (some, *strided) = results
    assert none == 0
    assert some >= sum(array.nbytes for array in (wide[:, 3:36], index, rows))
    assert explain(dense[0], dense[1], case.expected()) is None
    for one, other in zip(dense, strided, strict=True):
        assert one.tobytes() == other.tobytes()
