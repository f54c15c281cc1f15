"""legalize-precision: arithmetic in fp32 only, one rounding where a result is narrower."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import Float32Type, ModuleOp

from moegrad.codegen.dialect.tensor import CastOp, RowwiseOp, SelectSlotsOp
from moegrad.codegen.dialect.types import element, is_predicate
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec

from ..helpers import MODE_IDS, MODES, PROGRAMS, Program, names, ops, stage


def check(module: ModuleOp) -> None:
    """The promise of the pass."""
    for op in ops(module, RowwiseOp):
        if isinstance(op, SelectSlotsOp):
            continue
        if isinstance(op, CastOp):
            kinds = (element(op.value.type), element(op.result.type))
            assert sum(isinstance(kind, Float32Type) for kind in kinds) == 1, "widens or rounds, nothing else"
            continue
        for value in (*op.operands, *op.results):
            assert isinstance(element(value.type), Float32Type) or is_predicate(value.type), str(op)


@pytest.mark.parametrize(("data", "weight"), [("bf16", "f16"), ("f16", "f32"), ("f32", "bf16"), ("f32", "f32")])
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_all_arithmetic_is_fp32(name: str, mode: str, data: str, weight: str) -> None:
    spec = make_spec(name, mode, data, weight if mode not in ("plain", "padded") else "")
    module = stage(program_of(spec), spec, "legalize-precision")
    check(module)
    if data == weight == "f32":
        assert ops(module, CastOp) == []


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_all_arithmetic_of_other_programs_is_fp32(program: Program) -> None:
    check(stage(program.parsed(), program.spec("bf16", "f16"), "legalize-precision"))


def test_a_value_is_widened_once() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32")
    module = stage(program_of(spec), spec, "legalize-precision")
    widened = [op.operands[0] for op in ops(module, CastOp) if isinstance(element(op.results[0].type), Float32Type)]
    assert len(widened) == len(set(widened)) == 2


def test_a_copy_is_not_rounded() -> None:
    spec = make_spec("token_unpermute_grad", "padded", "bf16")
    assert ops(stage(program_of(spec), spec, "legalize-precision"), CastOp) == []
