"""split-inactive: guards and selects are gone, nothing is loaded or computed for a dropped slot."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from moegrad.codegen.dialect.slot import (
    ForSlotsOp,
    ForTokensOp,
    IfOp,
    InRangeOp,
    LoadRowOp,
    RowLoopOp,
    StoreRowOp,
    StoreScalarOp,
    ZeroOp,
)
from moegrad.codegen.dialect.tensor import AddRowsOp, RowDotOp, SelectSlotsOp
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import program_of
from moegrad.codegen.interpreter import run_program
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import parse_program
from moegrad.codegen.pipeline import lower, stages
from moegrad.codegen.spec import KernelSpec

from ..helpers import MODE_IDS, MODES, PROGRAMS, TOKEN_GATHER, Program, names, ops, stage


def operator_stage(name: str, mode: str) -> ModuleOp:
    """An operator's program after the pass."""
    spec = make_spec(name, mode, "bf16", "f32" if mode not in ("plain", "padded") else "")
    return stage(program_of(spec), spec, "split-inactive")


def check(module: ModuleOp) -> None:
    """The promise of the pass."""
    assert ops(module, SelectSlotsOp) == []
    for op in ops(module, LoadRowOp, StoreRowOp):
        assert isinstance(op, LoadRowOp | StoreRowOp)
        assert op.guard is None
    for op in ops(module, InRangeOp):
        assert {type(use.operation) for use in op.results[0].uses} == {IfOp}


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_no_guard_and_no_select_is_left(name: str, mode: str) -> None:
    check(operator_stage(name, mode))


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_no_guard_and_no_select_of_other_programs_is_left(program: Program) -> None:
    check(stage(program.parsed(), program.spec(), "split-inactive"))


def test_a_dropped_slot_of_plain_does_nothing() -> None:
    (branch,) = ops(operator_stage("finalize_routing_v2_grad", "plain"), IfOp)
    assert isinstance(branch, IfOp)
    assert branch.otherwise is None


def test_a_dropped_slot_of_scales_stores_zero_and_nothing_else() -> None:
    (branch,) = ops(operator_stage("finalize_routing_v2_grad", "scales"), IfOp)
    assert isinstance(branch, IfOp)
    assert branch.otherwise is not None
    assert [type(op) for op in branch.otherwise.block.ops] == [ZeroOp, StoreScalarOp]


def test_the_bias_of_a_dropped_slot_is_not_added_to_zero() -> None:
    module = operator_stage("finalize_routing_v2_grad", "scales_bias")
    rows, expert_active, expert_inactive = ops(module, IfOp)
    assert isinstance(rows, IfOp)
    assert rows.otherwise is not None
    assert all(isinstance(inner, IfOp) and inner.otherwise is not None for inner in (expert_active, expert_inactive))
    dropped = list(rows.otherwise.block.walk())
    assert not any(isinstance(op, AddRowsOp | StoreRowOp) for op in dropped)
    assert sum(isinstance(op, RowDotOp) for op in dropped) == 2


def test_an_empty_row_of_padded_stores_zeros() -> None:
    (branch,) = ops(operator_stage("token_unpermute_grad", "padded"), IfOp)
    assert isinstance(branch, IfOp)
    assert branch.otherwise is not None
    assert [type(op) for op in branch.otherwise.block.ops] == [ZeroOp, StoreRowOp]


def test_predicates_of_both_loops_are_split() -> None:
    module = stage(TOKEN_GATHER.parsed(), TOKEN_GATHER.spec(), "split-inactive")
    token, *slots = ops(module, IfOp)
    assert isinstance(token.parent_op(), ForTokensOp)
    assert len(slots) == 2
    assert all(isinstance(branch.parent_op(), ForSlotsOp) for branch in slots)
    assert ops(module, RowLoopOp) == []


def gathers(count: int) -> str:
    """A program that gathers by `count` indices and returns the sum."""
    rows = "tensor<?x?xf32>"
    arguments = [f'%i{n}: tensor<?xi32> {{moe.dims = ["N"]}}' for n in range(count)]
    lines = [f"%g{n} = moe.gather_rows %t at %i{n} : ({rows}, tensor<?xi32>) -> {rows}" for n in range(count)]
    lines += [
        f"%s{n} = moe.add_rows %{'s' if n > 1 else 'g'}{n - 1}, %g{n} : ({rows}, {rows}) -> {rows}"
        for n in range(1, count)
    ]
    text = "\n".join(lines)
    return f"""
func.func @f(%x: {rows} {{moe.dims = ["R", "H"]}}, %t: {rows} {{moe.dims = ["M", "H"]}}, {", ".join(arguments)})
    -> ({rows} {{moe.dims = ["N", "H"], moe.name = "out"}}) {{
{text}
func.return %s{count - 1} : {rows}
}}"""


def test_four_predicates_of_a_loop_are_split() -> None:
    module = stage(parse_program(gathers(4), "f"), KernelSpec("f", "f32"), "split-inactive")
    check(module)
    assert len(ops(module, IfOp)) == 15


def test_more_predicates_are_refused() -> None:
    with pytest.raises(LoweringError) as error:
        lower(parse_program(gathers(5), "f"), KernelSpec("f", "f32"), "cython")
    assert str(error.value) == "split-inactive: at most 4 predicates a loop, got 5"


def test_adding_a_dropped_row_keeps_the_sign_of_zero() -> None:
    """-0 + (+0) is +0: only where a sum reads the result may the addition go."""
    rows = "tensor<?x?xf32>"
    program = parse_program(
        f"""func.func @f(%x: {rows} {{moe.dims = ["R", "H"]}}, %t: {rows} {{moe.dims = ["M", "H"]}},
                         %i: tensor<?xi32> {{moe.dims = ["N"]}})
                -> ({rows} {{moe.dims = ["N", "H"], moe.name = "out"}}) {{
          %g = moe.gather_rows %t at %i : ({rows}, tensor<?xi32>) -> {rows}
          %r = moe.repeat_rows %x : ({rows}) -> {rows}
          %s = moe.add_rows %g, %r : ({rows}, {rows}) -> {rows}
          func.return %s : {rows}
        }}""",
        "f",
    )
    inputs = {
        "x": np.full((2, 3), -0.0, np.float32),
        "t": np.ones((1, 3), np.float32),
        "i": np.array([-1, 0, 0, -1], np.int32),
    }
    for name, module in stages(program, KernelSpec("f", "f32"), "cython"):
        out = run_program(module, inputs)["out"]
        assert out.tolist() == [[0.0] * 3, [1.0] * 3, [1.0] * 3, [0.0] * 3], name
        assert not np.signbit(out).any(), name
