"""Every pass keeps the meaning of every program: each stage is run by the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.dialects.builtin import ModuleOp

from moegrad.codegen.generate import program_of
from moegrad.codegen.interpreter import run_program
from moegrad.codegen.pipeline import pass_names, stages
from moegrad.codegen.spec import KernelSpec
from moegrad.tools.cases import Case, enumerate_cases
from moegrad.tools.compare import explain
from moegrad.tools.program_cases import program_inputs, public_outputs, spec_of

from ...strategies import cases
from ..helpers import MODE_IDS, MODES, NUMPY, PROGRAMS, Program, assert_same, names

SEED = 20240


@cache
def lowered(spec: KernelSpec) -> list[tuple[str, ModuleOp]]:
    """Copies of an operator's program after each pass."""
    return [(name, module.clone()) for name, module in stages(program_of(spec), spec, "cython")]


def wrong_stages(case: Case, specialised: bool) -> Iterator[str]:
    """What the oracle has against each stage."""
    spec = spec_of(case, specialised=specialised)
    inputs, sizes = program_inputs(case)
    expected = case.expected()
    for name, module in lowered(spec):
        message = explain(*public_outputs(case, run_program(module, inputs, sizes)), expected)
        if message:
            yield f"after {name}: {message}"


def few(operator: str, mode: str, count: int) -> list[Case]:
    """Cases of every D and P of a mode, small enough for an interpreter."""
    return list(
        enumerate_cases(
            operator, mode, topks=(1, 2, 5), hiddens=(1, 7, 33, 70), tokens=(0, 1, 3, 5), cases_per_combination=count
        )
    )


@pytest.mark.parametrize("specialised", [False, True], ids=["generic", "specialised"])
@pytest.mark.parametrize(("operator", "mode"), MODES, ids=MODE_IDS)
def test_every_stage_agrees_with_the_oracle(operator: str, mode: str, specialised: bool) -> None:
    chosen = few(operator, mode, 3 if mode in ("plain", "padded") else 1)
    assert {case.data_dtype for case in chosen} == set(NUMPY)
    found = {case.id: list(wrong_stages(case, specialised and case.topk > 0)) for case in chosen}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "mode"), MODES, ids=MODE_IDS)
def test_every_stage_agrees_with_the_oracle_on_many_cases(operator: str, mode: str) -> None:
    found = {case.id: list(wrong_stages(case, False)) for case in few(operator, mode, 12)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(max_hidden=40))
def test_every_stage_agrees_with_the_oracle_on_any_case(case: Case) -> None:
    assert list(wrong_stages(case, False)) == []


@pytest.mark.parametrize("data", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_every_stage_of_other_programs_agrees_with_numpy(program: Program, data: str) -> None:
    spec = program.spec(data, "f16")
    inputs = program.inputs(np.random.default_rng(SEED), NUMPY[data], NUMPY["f16"])
    expected = program.expected(inputs, NUMPY[data], NUMPY["f16"])
    run = 0
    for _, module in stages(program.parsed(), spec, "cython"):
        assert_same(run_program(module, inputs, program.sizes), expected)
        run += 1
    assert run == len(pass_names("cython"))
