"""plan-cpu: row operations run in as few passes over the hidden dimension as their sums allow."""

from __future__ import annotations

from collections import Counter

import pytest
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr

from moegrad.codegen.dialect.slot import ForSlotsOp, LoadRowOp, PairSlotsOp, RowLoopOp, StoreRowOp, YieldOp
from moegrad.codegen.dialect.tensor import RowDotOp, RowwiseOp
from moegrad.codegen.dialect.types import shape
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.passes.plan_cpu import PLAN, PREFETCH, PlanCpuPass
from moegrad.codegen.spec import KernelSpec

from ..helpers import DOT_THEN_SCALE, MODE_IDS, MODES, PROGRAMS, Program, names, ops, stage


def operator_stage(name: str, mode: str) -> ModuleOp:
    """An operator's program after the pass."""
    spec = make_spec(name, mode, "bf16", "f32" if mode not in ("plain", "padded") else "")
    return stage(program_of(spec), spec, "plan-cpu")


def check(module: ModuleOp) -> None:
    """The promise of the pass."""
    for op in ops(module, RowwiseOp, StoreRowOp):
        if isinstance(op, StoreRowOp | RowDotOp) or shape(op.results[0].type):
            assert isinstance(op.parent_op(), RowLoopOp), f"outside of a row loop: {op}"
    for loop in ops(module, RowLoopOp):
        assert isinstance(loop, RowLoopOp)
        assert not any(isinstance(op, LoadRowOp) for op in loop.body.block.ops), "loaded rows stay in memory"
        dots = [op for op in loop.body.block.ops if isinstance(op, RowDotOp)]
        last = loop.body.block.last_op
        assert isinstance(last, YieldOp)
        assert list(last.arguments) == [dot.result for dot in dots]
        assert all(dot.lanes is not None and dot.lanes.value.data == 32 for dot in dots)


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_every_row_operation_is_in_a_row_loop(name: str, mode: str) -> None:
    check(operator_stage(name, mode))


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_every_row_operation_of_other_programs_is_in_a_row_loop(program: Program) -> None:
    check(stage(program.parsed(), program.spec("bf16", "f16"), "plan-cpu"))


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_every_mode_makes_one_pass_over_the_hidden_dimension(name: str, mode: str) -> None:
    blocks = Counter(loop.parent for loop in ops(operator_stage(name, mode), RowLoopOp))
    assert set(blocks.values()) == {1}


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_a_row_that_needs_a_finished_sum_waits_for_another_pass(program: Program) -> None:
    module = stage(program.parsed(), program.spec(), "plan-cpu")
    blocks = Counter(loop.parent for loop in ops(module, RowLoopOp))
    assert max(blocks.values()) == program.row_loops


def test_the_second_pass_reads_the_sum_of_the_first() -> None:
    module = stage(DOT_THEN_SCALE.parsed(), DOT_THEN_SCALE.spec(), "plan-cpu")
    first, second = ops(module, RowLoopOp)
    assert isinstance(second, RowLoopOp)
    assert [op.name for op in second.body.block.ops] == ["moe.scale_rows", "moe.store_row", "moe.yield"]
    (total,) = first.results
    assert [use.operation for use in total.uses] == [second.body.block.first_op]


def plan_of(module: ModuleOp) -> dict[str, str | int]:
    """The plan that the pass wrote."""
    plan = function(module).attributes[PLAN]
    assert isinstance(plan, DictionaryAttr)
    return {
        name: value.data if isinstance(value, StringAttr) else value.value.data
        for name, value in plan.data.items()
        if isinstance(value, StringAttr | IntegerAttr)
    }


def test_the_plan_is_written_to_the_function() -> None:
    plan = plan_of(operator_stage("finalize_routing_v2_grad", "scales"))
    written = {"lanes": PlanCpuPass().lanes, "slots": 2, "store": "auto", "stream_above": "cache/4"}
    assert plan == written | {"order": "pairs", "vector_bits": 512, "parallel": "tokens"}


@pytest.mark.parametrize(("data", "order"), [("f32", "plain"), ("f16", "plain"), ("bf16", "pairs")])
def test_lanes_are_in_pairs_where_all_rows_are_bf16(data: str, order: str) -> None:
    assert plan_of(stage(DOT_THEN_SCALE.parsed(), DOT_THEN_SCALE.spec(data, "f16"), "plan-cpu"))["order"] == order


MIXED = """
func.func @mixed(%x: tensor<?x?xbf16> {moe.dims = ["R", "H"]}, %y: tensor<?x?xf32> {moe.dims = ["R", "H"]})
    -> (tensor<?x?xbf16> {moe.dims = ["R", "H"], moe.name = "out"}) {
  %out = moe.mul_rows %x, %y : (tensor<?x?xbf16>, tensor<?x?xf32>) -> tensor<?x?xbf16>
  func.return %out : tensor<?x?xbf16>
}
"""


def test_lanes_are_in_plain_order_where_rows_of_two_dtypes_meet() -> None:
    assert (
        plan_of(stage(parse_program(MIXED, "mixed.mlir"), KernelSpec("mixed", "bf16"), "plan-cpu"))["order"] == "plain"
    )


def prefetched(module: ModuleOp) -> set[str]:
    """Names of the rows whose successors are asked for ahead."""
    return {str(op.results[0].name_hint) for op in ops(module, LoadRowOp) if PREFETCH in op.attributes}


def test_the_rows_asked_for_ahead_are_gathered_ones_and_the_token_s_own() -> None:
    assert prefetched(operator_stage("finalize_routing_v2_grad", "scales")) == {"expanded_x_row", "grad_y_row"}
    assert prefetched(operator_stage("token_unpermute_grad", "padded_probs")) == {"unpermuted_tokens_grad_row"}


def paired(module: ModuleOp) -> list[PairSlotsOp]:
    """Where two slots run at once."""
    return [op for op in ops(module, PairSlotsOp) if isinstance(op, PairSlotsOp)]


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_two_slots_run_at_once_where_a_token_has_several(name: str, mode: str) -> None:
    module = operator_stage(name, mode)
    slots = any(isinstance(op, ForSlotsOp) for op in module.walk())
    assert len(paired(module)) == slots
    assert plan_of(module)["slots"] == 1 + slots


def test_one_slot_a_token_is_not_paired() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", topk=1)
    module = stage(program_of(spec), spec, "plan-cpu")
    assert paired(module) == []
    assert plan_of(module)["slots"] == 1


def test_two_slots_share_one_loop_and_the_token_s_row() -> None:
    (pair,) = paired(operator_stage("finalize_routing_v2_grad", "scales"))
    (loop,) = [op for op in pair.both.block.ops if isinstance(op, RowLoopOp)]
    kinds = Counter(op.name for op in loop.body.block.ops)
    assert (kinds["moe.row_dot"], kinds["moe.store_row"], kinds["moe.scale_rows"]) == (2, 2, 2)
    assert kinds["moe.cast"] == 5, "the gradient row is widened once, x and the scaled row for each slot"
    ahead = [op.attributes[PREFETCH] for op in pair.both.block.ops if PREFETCH in op.attributes]
    assert [row.value.data for row in ahead if isinstance(row, IntegerAttr)] == [1, 2]
