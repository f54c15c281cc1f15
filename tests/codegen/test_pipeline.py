"""The pipeline: names, order, where it stops, and who is blamed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from moegrad.codegen import pipeline
from moegrad.codegen.dialect.tensor import RepeatRowsOp
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.parsing import builtin_program
from moegrad.codegen.pipeline import PIPELINES, lower, pass_names, stages, steps
from moegrad.codegen.spec import KernelSpec

SPEC = KernelSpec("finalize_routing_v2_grad__scales", "bf16", "f32", 8, 7168)
COMMON = ["specialize", "legalize-precision", "fuse-slots", "split-inactive"]


@pytest.mark.parametrize(("target", "plan"), [("cython", "plan-cpu"), ("ascendc", "plan-ascend")])
def test_the_passes_of_a_target(target: str, plan: str) -> None:
    assert pass_names(target) == [*COMMON, plan]


@pytest.mark.parametrize("target", PIPELINES)
def test_a_pass_is_one_file_one_class_one_name(target: str) -> None:
    for step in steps(SPEC, target):
        kind = type(step)
        stem = step.name.replace("-", "_")
        assert kind.__module__ == f"moegrad.codegen.passes.{stem}"
        assert kind.__name__ == "".join(part.title() for part in step.name.split("-")) + "Pass"


@pytest.mark.parametrize("after", [*COMMON, "plan-cpu"])
def test_lower_stops_after_a_pass(after: str) -> None:
    program = builtin_program("scales")
    reached = [(name, str(module)) for name, module in stages(program, SPEC, "cython")]
    assert str(lower(program, SPEC, "cython", after)) == dict(reached)[after]
    assert [name for name, _ in reached] == pass_names("cython")


def test_lower_leaves_the_program_alone() -> None:
    program = builtin_program("scales")
    before = str(program)
    lower(program, SPEC, "cython")
    assert str(program) == before


def test_an_unknown_pass_is_refused() -> None:
    with pytest.raises(LoweringError) as error:
        lower(builtin_program("scales"), SPEC, "cython", "vectorize")
    known = ", ".join([*COMMON, "plan-cpu"])
    assert str(error.value) == f"pass: target cython has the passes {known}; got 'vectorize'"


@dataclass(frozen=True)
class BreakPass(ModulePass):
    """Leaves a program that does not verify."""

    name = "break-it"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, RepeatRowsOp):
                inner.topk = IntegerAttr(0, i64)


def test_a_pass_that_breaks_a_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = PIPELINES["cython"](SPEC)
    monkeypatch.setitem(pipeline.PIPELINES, "cython", lambda _: (passes[0], BreakPass(), *passes[1:]))
    with pytest.raises(LoweringError) as error:
        lower(builtin_program("scales"), SPEC, "cython")
    assert str(error.value) == (f"{SPEC.key}: after break-it: moe.repeat_rows: 'topk' must be at least 1, got 0 : i64")


def test_stages_are_verified_before_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = PIPELINES["cython"](SPEC)
    monkeypatch.setitem(pipeline.PIPELINES, "cython", lambda _: (BreakPass(), *passes))
    seen: list[str] = []
    with pytest.raises(LoweringError):
        seen.extend(name for name, _ in stages(builtin_program("scales"), SPEC, "cython"))
    assert seen == []


def test_a_program_that_does_not_verify_is_refused_before_the_first_pass() -> None:
    program = builtin_program("scales")
    BreakPass().apply(Context(), program)
    with pytest.raises(LoweringError) as error:
        lower(program, SPEC, "cython")
    assert str(error.value) == (
        f"{SPEC.key}: before specialize: moe.repeat_rows: 'topk' must be at least 1, got 0 : i64"
    )
