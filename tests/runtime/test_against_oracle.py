"""The public functions against the oracle: operator x mode x D x P over layouts, drops and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import moegrad
from moegrad import threads
from moegrad.tools.cases import DTYPES, Case, enumerate_cases
from moegrad.tools.compare import explain

CASES = list(enumerate_cases(cases_per_combination=16, seed=4))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    rows, weights = getattr(moegrad, case.operator)(**case.arguments())
    assert explain(rows, weights, case.expected()) is None


SPECIALISED = [(1, 5120), (2, 4096), (4, 2880), (6, 2048), (8, 7168)]


@pytest.mark.parametrize(("topk", "hidden"), [*SPECIALISED, (8, 7167), (3, 4096)])
@pytest.mark.parametrize("data", DTYPES)
def test_sizes_of_models_and_their_neighbours(data: str, topk: int, hidden: int) -> None:
    for mode in ("plain", "scales", "scales_bias"):
        case = Case(
            "finalize_routing_v2_grad",
            mode,
            data,
            None if mode == "plain" else "f32",
            tokens=5,
            topk=topk,
            hidden=hidden,
            experts=8,
            capacity=topk,
            drop_pad_mode=1,
            drop="some",
        )
        rows, weights = moegrad.finalize_routing_v2_grad(**case.arguments())
        assert explain(rows, weights, case.expected()) is None


@pytest.mark.parametrize("count", [2, 3])
def test_thread_counts_change_no_bit(count: int) -> None:
    call: dict[str, Any] = Case(
        "finalize_routing_v2_grad", "scales_bias", "bf16", "f32", tokens=37, topk=3, hidden=257, experts=4
    ).arguments()
    results = []
    for used in (1, count):
        with threads.forced(used):
            results.append([array.tobytes() for array in moegrad.finalize_routing_v2_grad(**call)])
    assert results[0] == results[1]


def test_two_calls_give_the_same_bits() -> None:
    call = Case("token_unpermute_grad", "probs", "f16", "bf16", tokens=64, topk=4, hidden=1024).arguments()
    first, second = (moegrad.token_unpermute_grad(**call) for _ in range(2))
    assert all(np.array_equal(a.view(np.uint16), b.view(np.uint16)) for a, b in zip(first, second, strict=True))
