"""plan-ascend: every row, block and sum has a buffer, and what has no form is refused with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from moegrad.codegen.chips import CHIPS
from moegrad.codegen.dialect.slot import LoadIndexOp, LoadRowOp, LoadScalarOp, StoreRowOp, StoreScalarOp
from moegrad.codegen.dialect.tensor import RowDotOp
from moegrad.codegen.errors import LoweringError, SpecError
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.passes import ub_plan
from moegrad.codegen.passes.ascend_loops import computes_row, is_void_dot, read_loops
from moegrad.codegen.passes.ascend_rows import COPY, UB, place_of
from moegrad.codegen.passes.plan_ascend import SUM, AscendPlan, PlanAscendPass, read_plan
from moegrad.codegen.spec import KernelSpec

from ..helpers import DOT_THEN_SCALE, MODE_IDS, MODES, SLOT_CHAIN, TOKEN_GATHER, TOKEN_ROWS, TWO_SCATTERS, ops, stage

HEAD = '!D = !moe.dtype<"D">\n!P = !moe.dtype<"P">\n'
ROWS = 'tensor<?x?x!D> {moe.dims = ["R", "H"]}'
OTHERS = (DOT_THEN_SCALE, SLOT_CHAIN, TOKEN_ROWS, TWO_SCATTERS)


def planned(module: ModuleOp, spec: KernelSpec) -> ModuleOp:
    return stage(module, spec, "plan-ascend", "ascendc")


def plan_of(module: ModuleOp) -> AscendPlan:
    return read_plan(function(module))


def operator_stage(name: str, mode: str, topk: int = 0, hidden: int = 0) -> ModuleOp:
    spec = make_spec(name, mode, "bf16", "" if mode in ("plain", "padded") else "f32", topk, hidden)
    return planned(program_of(spec), spec)


def check(module: ModuleOp) -> None:
    """The promise of the pass: whatever a vector or move instruction touches has a buffer of the plan."""
    plan, loops = plan_of(module), read_loops(function(module))
    known = {buffer.name: buffer for buffer in plan.buffers}
    assert len(known) == len(plan.buffers), "two buffers have one name"
    for each in loops.stages:
        for op in each.ops:
            if isinstance(op, LoadRowOp | StoreRowOp) or (computes_row(op) and not is_void_dot(op)):
                assert place_of(op) in known
            if isinstance(op, LoadRowOp):
                assert known[place_of(op)].kind in (ub_plan.IN, ub_plan.THROUGH)
            if isinstance(op, StoreRowOp):
                assert known[place_of(op)].kind in (ub_plan.OUT, ub_plan.THROUGH, ub_plan.CONSTANT)
            if isinstance(op, RowDotOp) and not is_void_dot(op):
                assert SUM in op.attributes
    for op in loops.tokens.walk():
        if isinstance(op, LoadIndexOp | LoadScalarOp):
            assert known[place_of(op)].kind == ub_plan.BLOCK_IN
    for position in ("VECIN", "VECOUT"):
        live = sum(b.count for b in plan.buffers if b.is_queue and b.position == position)
        assert live <= ub_plan.MAX_LIVE


@pytest.mark.parametrize("shape", [(0, 0), (8, 7168), (8, 40000)])
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_everything_has_a_buffer(name: str, mode: str, shape: tuple[int, int]) -> None:
    topk, hidden = shape
    check(operator_stage(name, mode, 0 if "padded" in mode else topk, hidden))


@pytest.mark.parametrize("program", OTHERS, ids=[program.name for program in OTHERS])
def test_everything_of_other_programs_has_a_buffer(program: object) -> None:
    assert program in OTHERS
    for other in OTHERS:
        if other is program:
            check(planned(other.parsed(), other.spec("bf16", "f16")))


def test_a_row_that_is_only_moved_never_meets_the_vector_unit() -> None:
    module = operator_stage("finalize_routing_v2_grad", "plain")
    kinds = {buffer.kind for buffer in plan_of(module).buffers}
    assert ub_plan.THROUGH in kinds
    assert not kinds & {ub_plan.IN, ub_plan.OUT}
    assert not any(COPY in op.attributes for op in ops(module, StoreRowOp))


def test_a_gradient_row_is_widened_once_for_all_slots() -> None:
    plan = plan_of(operator_stage("finalize_routing_v2_grad", "scales", 8, 7168))
    by_name = {buffer.name: buffer for buffer in plan.buffers}
    assert (by_name["gradYIn"].extent, by_name["expandedXIn"].extent) == (ub_plan.TOKEN, ub_plan.SLOT)
    assert (by_name["gradF32"].extent, by_name["work"].extent) == (ub_plan.TOKEN, ub_plan.ROW)
    assert sum(buffer.kind == ub_plan.CALC and buffer.extent == ub_plan.ROW for buffer in plan.buffers) == 1


def test_narrow_weights_are_widened_and_narrow_sums_kept_wide() -> None:
    def names(weight: str) -> set[str]:
        spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", weight)
        return {buffer.name for buffer in plan_of(planned(program_of(spec), spec)).buffers}

    assert names("f16") - names("f32") == {"scalesF32", "gradScalesSums"}


def test_a_row_that_is_cut_has_sums_of_its_parts() -> None:
    whole, cut = (plan_of(operator_stage("finalize_routing_v2_grad", "scales", 8, h)) for h in (7168, 40000))
    assert (whole.tiled, cut.tiled) == (False, True)
    assert {b.name for b in cut.buffers} - {b.name for b in whole.buffers} == {"gradScalesPart"}


def test_a_second_run_changes_nothing() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales_bias", "bf16", "f32", 8, 7168)
    once = planned(program_of(spec), spec)
    assert plan_of(once) == plan_of(planned(program_of(spec), spec))


def tables(count: int) -> str:
    """A program that adds up the rows of `count` tables."""
    arguments = ", ".join(f"%t{n}: {ROWS}" for n in range(count))
    sums = ["%s0 = moe.add_rows %t0, %t1 : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!D>"]
    for n in range(2, count):
        operands = f"%s{n - 2}, %t{n}"
        sums.append(f"%s{n - 1} = moe.add_rows {operands} : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!D>")
    body = "\n  ".join([*sums, f"func.return %s{count - 2} : tensor<?x?x!D>"])
    return f'{HEAD}func.func @tables({arguments}) -> (tensor<?x?x!D> {{moe.dims = ["R", "H"]}}) {{\n  {body}\n}}\n'


def of_text(text: str, name: str, topk: int = 0, hidden: int = 0, weight: str = "") -> ModuleOp:
    return planned(parse_program(text, f"{name}.mlir"), KernelSpec(name, "f32", weight, topk, hidden))


@pytest.mark.parametrize(("count", "doubled"), [(4, 2), (5, 1), (8, 1)])
def test_queues_are_doubled_where_events_suffice(count: int, doubled: int) -> None:
    plan = plan_of(of_text(tables(count), "tables"))
    assert {b.count for b in plan.buffers if b.kind == ub_plan.IN} == {doubled}


def test_too_many_queues_are_refused() -> None:
    with pytest.raises(LoweringError, match="plan-ascend: VECIN has events for 8 queues, the program needs 9"):
        of_text(tables(9), "tables")


SLOTS = """
func.func @{name}(%x: tensor<?x?x!D> {{moe.dims = ["M", "H"]}}, %idx: tensor<?xi32> {{moe.dims = ["N"]}},
                  %g: tensor<?x?x!D> {{moe.dims = ["R", "H"]}})
    -> (tensor<?x?xf32> {{moe.dims = ["R", "K"], moe.name = "a"}}, {result}) {{
  %rows = moe.gather_rows %x at %idx : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %grad = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %dot = moe.row_dot %rows, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?xf32>
  {body}
}}
"""


def test_a_sum_that_is_stored_twice_is_refused() -> None:
    text = HEAD + SLOTS.format(
        name="twice",
        result='tensor<?x?xf32> {moe.dims = ["R", "K"], moe.name = "b"}',
        body="func.return %dot, %dot : tensor<?x?xf32>, tensor<?x?xf32>",
    )
    with pytest.raises(LoweringError, match=r"plan-ascend: moe\.row_dot: no form for a sum that is stored twice"):
        of_text(text, "twice")


@pytest.mark.parametrize("topk", [1, 512, 513])
def test_topk_beyond_the_page_of_the_chip_is_refused(topk: int) -> None:
    spec = make_spec("finalize_routing_v2_grad", "plain", "f32", "", topk, 64)
    module = stage(program_of(spec), spec, "split-inactive", "ascendc")
    for chip in ("ascend910b4", "ascend910_93", "ascend950"):
        limit = CHIPS[chip].topk_limit
        if limit is None or topk <= limit:
            PlanAscendPass(chip).apply(Context(), module.clone())
        else:
            with pytest.raises(LoweringError, match=f"topk: {chip} takes 1 to 512 slots a token, got 513"):
                PlanAscendPass(chip).apply(Context(), module.clone())


def test_a_row_that_does_not_fit_whole_is_refused() -> None:
    spec = replace(SLOT_CHAIN.spec("f32"), topk=2, hidden=50000)
    with pytest.raises(LoweringError, match=r"slot_chain.*a row that depends on a sum must fit in UB, got 50000"):
        planned(SLOT_CHAIN.parsed(), spec)


def test_a_buffer_that_holds_no_row_at_all_is_refused_with_the_plan() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 8, 7168)
    module = stage(program_of(spec), spec, "split-inactive", "ascendc")
    with pytest.raises(LoweringError, match=r"not even 256 elements a row fit in UB\noffset"):
        PlanAscendPass(ub_bytes=9000).apply(Context(), module)


def test_a_program_that_drops_tokens_and_has_slots_is_refused() -> None:
    with pytest.raises(LoweringError, match="no form for a program that drops whole tokens and has several slots"):
        planned(TOKEN_GATHER.parsed(), TOKEN_GATHER.spec())


def test_an_earlier_pass_that_did_not_run_is_named() -> None:
    spec = make_spec("finalize_routing_v2_grad", "plain", "f32", "")
    module = stage(program_of(spec), spec, "legalize-precision", "ascendc")
    with pytest.raises(LoweringError, match="plan-ascend: the program has no loop over tokens; fuse-slots must run"):
        PlanAscendPass().apply(Context(), module)
    with pytest.raises(LoweringError, match="ascendc: the program has no plan; plan-ascend must run before"):
        read_plan(function(module))


def test_an_unknown_chip_is_refused() -> None:
    spec = make_spec("finalize_routing_v2_grad", "plain", "f32", "")
    module = stage(program_of(spec), spec, "split-inactive", "ascendc")
    with pytest.raises(SpecError, match="chip: expected one of ascend910b, "):
        PlanAscendPass("ascend1").apply(Context(), module)


def test_the_names_of_buffers_are_those_of_the_attributes() -> None:
    module = operator_stage("finalize_routing_v2_grad", "scales_bias")
    used = {place_of(op) for op in module.walk() if UB in op.attributes}
    assert used <= {buffer.name for buffer in plan_of(module).buffers}
    assert len(ops(module, StoreScalarOp)) > 0
