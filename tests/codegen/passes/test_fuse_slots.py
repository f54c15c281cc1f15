"""fuse-slots: one loop over tokens, one over slots; what a token shares is loaded once, nothing is materialised."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import MemRefType, TensorType

from moegrad.codegen.dialect.slot import ForSlotsOp, ForTokensOp, LoadRowOp, StoreRowOp
from moegrad.codegen.dialect.tensor import GatherRowsOp, RepeatRowsOp, ScatterRowsOp
from moegrad.codegen.dialect.types import shape
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.pipeline import lower
from moegrad.codegen.signature import signature
from moegrad.codegen.spec import KernelSpec

from ..helpers import MODE_IDS, MODES, PROGRAMS, SLOT_CHAIN, TOKEN_ROWS, Program, names, ops, stage


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_no_tensor_of_all_slots_is_left(name: str, mode: str) -> None:
    spec = make_spec(name, mode, "bf16", hidden=96)
    module = stage(program_of(spec), spec, "fuse-slots")
    tensors = [value.type for op in module.walk() for value in op.results if isinstance(value.type, TensorType)]
    assert {shape(type_) for type_ in tensors} == {(96,)}
    assert all(isinstance(argument.type, MemRefType) for argument in function(module).args)
    assert ops(module, RepeatRowsOp, GatherRowsOp, ScatterRowsOp) == []


@pytest.mark.parametrize("mode", ["plain", "scales", "scales_bias"])
def test_the_gradient_row_is_loaded_once_for_all_slots(mode: str) -> None:
    spec = make_spec("finalize_routing_v2_grad", mode, "bf16")
    func = function(stage(program_of(spec), spec, "fuse-slots"))
    tensors = dict(zip([t.name for t in signature(func)], func.args, strict=True))
    loads = [op for op in func.walk() if isinstance(op, LoadRowOp) and op.buffer is tensors["grad_y"]]
    assert len(loads) == 1
    assert isinstance(loads[0].parent_op(), ForTokensOp)
    assert loads[0].guard is None


@pytest.mark.parametrize("mode", ["padded", "padded_probs"])
def test_a_map_from_rows_to_tokens_needs_no_loop_over_slots(mode: str) -> None:
    spec = make_spec("token_unpermute_grad", mode, "bf16")
    module = stage(program_of(spec), spec, "fuse-slots")
    assert ops(module, ForSlotsOp) == []
    assert [op.extent.data for op in ops(module, ForTokensOp) if isinstance(op, ForTokensOp)] == ["M"]


def test_rows_of_tokens_alone_need_no_loop_over_slots() -> None:
    module = stage(TOKEN_ROWS.parsed(), TOKEN_ROWS.spec(), "fuse-slots")
    assert ops(module, ForSlotsOp) == []


def test_what_depends_on_the_token_alone_is_computed_outside_the_loop_over_slots() -> None:
    text = TOKEN_ROWS.text.replace(
        "  func.return %out",
        "  %doubled = moe.add_rows %out, %out : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!D>\n"
        "  func.return %doubled",
    )
    module = stage(parse_program(text, "t"), TOKEN_ROWS.spec("bf16"), "fuse-slots")
    assert all(isinstance(op.parent_op(), ForTokensOp) for op in ops(module, LoadRowOp, StoreRowOp))


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_each_argument_is_loaded_once(program: Program) -> None:
    module = stage(program.parsed(), program.spec(), "fuse-slots")
    buffers = [op.buffer for op in ops(module, LoadRowOp) if isinstance(op, LoadRowOp)]
    assert len(buffers) == len(set(buffers))


def test_outputs_become_marked_arguments() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "f16")
    func = function(stage(program_of(spec), spec, "fuse-slots"))
    assert [t.name for t in signature(func) if t.output] == ["grad_expanded_x", "grad_scales"]
    assert not func.function_type.outputs.data


HEAD = """func.func @f(%x: tensor<?x?xf32> {moe.dims = ["R", "H"]}, %t: tensor<?x?xf32> {moe.dims = ["M", "H"]},
            %idx: tensor<?xi32> {moe.dims = ["N"]}, %pick: tensor<?xi32> {moe.dims = ["R"]},
            %w: tensor<?xf32> {moe.dims = ["R"]})
    -> (tensor<?x?xf32> {moe.dims = ["DIMS", "H"], moe.name = "out"}) {
"""
ROWS = "tensor<?x?xf32>"
GATHER = f"  %g = moe.gather_rows %t at %idx : ({ROWS}, tensor<?xi32>) -> {ROWS}\n"

REFUSED = {
    "scatter-not-returned": (
        "M",
        f'  %s = moe.scatter_rows %g to %idx rows "M" : ({ROWS}, tensor<?xi32>) -> {ROWS}\n'
        f"  %o = moe.add_rows %s, %s : ({ROWS}, {ROWS}) -> {ROWS}\n",
        "f.mlir:6:3: fuse-slots: the result of moe.scatter_rows must be returned, once",
    ),
    "scatter-extent": (
        "M",
        f'  %o = moe.scatter_rows %g to %idx rows "R" : ({ROWS}, tensor<?xi32>) -> {ROWS}\n',
        "f.mlir:6:3: fuse-slots: out has M rows, scattered to R",
    ),
    "scatter-by-token": (
        "M",
        f'  %o = moe.scatter_rows %g to %pick rows "M" : ({ROWS}, tensor<?xi32>) -> {ROWS}\n',
        "f.mlir:6:3: fuse-slots: moe.scatter_rows: one operand has an element a token, another an element a slot; "
        "moe.repeat_rows gives each slot the row of its token",
    ),
    "token-and-slot": (
        "N",
        f"  %o = moe.add_rows %g, %x : ({ROWS}, {ROWS}) -> {ROWS}\n",
        "f.mlir:6:3: fuse-slots: moe.add_rows: one operand has an element a token, another an element a slot; "
        "moe.repeat_rows gives each slot the row of its token",
    ),
    "slot-by-token-weight": (
        "N",
        f"  %o = moe.scale_rows %g by %w : ({ROWS}, tensor<?xf32>) -> {ROWS}\n",
        "f.mlir:6:3: fuse-slots: moe.scale_rows: one operand has an element a token, another an element a slot; "
        "moe.repeat_rows gives each slot the row of its token",
    ),
    "table-computed": (
        "N",
        f"  %y = moe.add_rows %x, %x : ({ROWS}, {ROWS}) -> {ROWS}\n"
        f"  %o = moe.gather_rows %y at %idx : ({ROWS}, tensor<?xi32>) -> {ROWS}\n",
        "f.mlir:7:3: fuse-slots: moe.gather_rows: the table must be an argument of the program",
    ),
    "rows-of-a-table": (
        "N",
        f"  %o = moe.add_rows %t, %g : ({ROWS}, {ROWS}) -> {ROWS}\n",
        "f.mlir:6:3: fuse-slots: t of dimensions (M, H) has no row for a token or a slot; gather its rows by an index",
    ),
    "slots-returned-as-tokens": (
        "R",
        f"  %o = moe.add_rows %g, %g : ({ROWS}, {ROWS}) -> {ROWS}\n",
        "f.mlir:7:3: fuse-slots: out does not have one element for each value returned",
    ),
    "tokens-returned-as-rows": (
        "M",
        f"  %o = moe.add_rows %x, %x : ({ROWS}, {ROWS}) -> {ROWS}\n",
        "f.mlir:7:3: fuse-slots: out of dimensions (M, H) has no row for a token or a slot; "
        "gather its rows by an index",
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_cannot_be_fused_is_refused_with_its_place(case: str) -> None:
    dims, lines, message = REFUSED[case]
    text = f"{HEAD.replace('DIMS', dims)}{GATHER}{lines}  func.return %o : {ROWS}\n}}\n"
    program = parse_program(text, "f.mlir")
    with pytest.raises(LoweringError) as error:
        lower(program, KernelSpec("f", "f32"), "cython")
    assert str(error.value) == message


def test_a_program_of_the_slot_level_is_refused() -> None:
    program = stage(SLOT_CHAIN.parsed(), SLOT_CHAIN.spec(), "fuse-slots")
    with pytest.raises(LoweringError, match="fuse-slots: no rule for moe"):
        lower(program, SLOT_CHAIN.spec(), "cython")
