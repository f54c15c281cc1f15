"""Tensor level: text forms, and one negative test for each rule of each verifier."""

from __future__ import annotations

import pytest

from moegrad.codegen.dialect.tensor import TENSOR_OPS

from .bodies import refusal, round_trip

D = '!moe.dtype<"D">'
FLOAT = "must be of element type f16, bf16, f32 or !moe.dtype, got"

GOOD = {
    "repeat": ("%x: tensor<?x?xf32>", "%r = moe.repeat_rows %x : (tensor<?x?xf32>) -> tensor<?x?xf32>"),
    "repeat-topk": ("%x: tensor<3x?xf16>", "%r = moe.repeat_rows %x topk 2 : (tensor<3x?xf16>) -> tensor<6x?xf16>"),
    "gather": (
        f"%x: tensor<?x?x{D}>, %i: tensor<?xi32>",
        f"%r = moe.gather_rows %x at %i : (tensor<?x?x{D}>, tensor<?xi32>) -> tensor<?x?x{D}>",
    ),
    "gather-by-token-and-choice": (
        "%x: tensor<?x8xbf16>, %i: tensor<3x2xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?x8xbf16>, tensor<3x2xi32>) -> tensor<6x8xbf16>",
    ),
    "scatter": (
        "%x: tensor<?x?xf32>, %i: tensor<?xi32>",
        '%r = moe.scatter_rows %x to %i rows "M" : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf32>',
    ),
    "active": ("%i: tensor<?xi32>", '%r = moe.active_slots %i in "M" : (tensor<?xi32>) -> tensor<?xi1>'),
    "cast": ("%x: tensor<?x?xf32>", "%r = moe.cast %x : (tensor<?x?xf32>) -> tensor<?x?xbf16>"),
    "cast-scalar": ("%x: f32", "%r = moe.cast %x : (f32) -> f16"),
    "scale": (
        "%x: tensor<?x?xf32>, %s: tensor<?x?xbf16>",
        "%r = moe.scale_rows %x by %s : (tensor<?x?xf32>, tensor<?x?xbf16>) -> tensor<?x?xf16>",
    ),
    "scale-row": ("%x: tensor<?xf32>, %s: f32", "%r = moe.scale_rows %x by %s : (tensor<?xf32>, f32) -> tensor<?xf32>"),
    "add": (
        "%x: tensor<?x?xf32>, %y: tensor<?x?xf16>",
        "%r = moe.add_rows %x, %y : (tensor<?x?xf32>, tensor<?x?xf16>) -> tensor<?x?xf32>",
    ),
    "sub": (
        "%x: tensor<?xf32>, %y: tensor<?xf32>",
        "%r = moe.sub_rows %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>",
    ),
    "mul": (
        "%x: tensor<?xf32>, %y: tensor<?xf32>",
        "%r = moe.mul_rows %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>",
    ),
    "dot": (
        "%x: tensor<?x?xf32>, %y: tensor<?x?xf32>",
        "%r = moe.row_dot %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
    ),
    "dot-lanes": (
        "%x: tensor<?xf32>, %y: tensor<?xf32>",
        "%r = moe.row_dot %x, %y lanes 32 : (tensor<?xf32>, tensor<?xf32>) -> f32",
    ),
    "select-rows": (
        "%x: tensor<?x?xf32>, %a: tensor<?xi1>",
        "%r = moe.select_slots %x where %a : (tensor<?x?xf32>, tensor<?xi1>) -> tensor<?x?xf32>",
    ),
    "select-one": (
        "%x: tensor<?xf32>, %a: i1",
        "%r = moe.select_slots %x where %a : (tensor<?xf32>, i1) -> tensor<?xf32>",
    ),
}


@pytest.mark.parametrize("case", sorted(GOOD))
def test_text_round_trips(case: str) -> None:
    arguments, line = GOOD[case]
    round_trip(arguments, [line])


def test_every_operation_has_a_text_form_under_test() -> None:
    written = " ".join(line for _, line in GOOD.values())
    assert [op.name for op in TENSOR_OPS if f"{op.name} " not in written] == []


BAD = {
    "repeat-rank": (
        "%x: tensor<?xf32>",
        "%r = moe.repeat_rows %x : (tensor<?xf32>) -> tensor<?x?xf32>",
        "moe.repeat_rows: 'rows' (%x) must be a tensor of rank 2, got tensor<?xf32>",
    ),
    "repeat-buffer": (
        "%x: memref<?x?xf32>",
        "%r = moe.repeat_rows %x : (memref<?x?xf32>) -> tensor<?x?xf32>",
        "moe.repeat_rows: 'rows' (%x) must be a tensor of rank 2, got memref<?x?xf32>",
    ),
    "repeat-dtype": (
        "%x: tensor<?x?xf64>",
        "%r = moe.repeat_rows %x : (tensor<?x?xf64>) -> tensor<?x?xf64>",
        f"moe.repeat_rows: 'rows' (%x) {FLOAT} tensor<?x?xf64>",
    ),
    "repeat-result-rank": (
        "%x: tensor<?x?xf32>",
        "%r = moe.repeat_rows %x : (tensor<?x?xf32>) -> tensor<?xf32>",
        "moe.repeat_rows: 'result' (%r) must be a tensor of rank 2, got tensor<?xf32>",
    ),
    "repeat-topk-zero": (
        "%x: tensor<?x?xf32>",
        "%r = moe.repeat_rows %x topk 0 : (tensor<?x?xf32>) -> tensor<?x?xf32>",
        "moe.repeat_rows: 'topk' must be at least 1, got 0 : i64",
    ),
    "repeat-topk-divides": (
        "%x: tensor<4x?xf32>",
        "%r = moe.repeat_rows %x : (tensor<4x?xf32>) -> tensor<9x?xf32>",
        "moe.repeat_rows: 'result' (%r) must be of a number of slots that 4 tokens divide, got tensor<9x?xf32>",
    ),
    "repeat-no-tokens": (
        "%x: tensor<0x?xf32>",
        "%r = moe.repeat_rows %x : (tensor<0x?xf32>) -> tensor<9x?xf32>",
        "moe.repeat_rows: 'result' (%r) must be of a number of slots that 0 tokens divide, got tensor<9x?xf32>",
    ),
    "repeat-slots": (
        "%x: tensor<4x?xf32>",
        "%r = moe.repeat_rows %x topk 3 : (tensor<4x?xf32>) -> tensor<8x?xf32>",
        "moe.repeat_rows: 'result' (%r) must be of shape 12x?, got tensor<8x?xf32>",
    ),
    "repeat-hidden": (
        "%x: tensor<?x8xf32>",
        "%r = moe.repeat_rows %x : (tensor<?x8xf32>) -> tensor<?x9xf32>",
        "moe.repeat_rows: 'result' (%r) must be of shape ?x8, got tensor<?x9xf32>",
    ),
    "gather-table-rank": (
        "%x: tensor<?xf32>, %i: tensor<?xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>",
        "moe.gather_rows: 'table' (%x) must be a tensor of rank 2, got tensor<?xf32>",
    ),
    "gather-index-rank": (
        "%x: tensor<?x?xf32>, %i: tensor<?x?x?xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?x?xf32>, tensor<?x?x?xi32>) -> tensor<?x?xf32>",
        "moe.gather_rows: 'index' (%i) must be a tensor of rank 1 or 2, got tensor<?x?x?xi32>",
    ),
    "gather-index-type": (
        "%x: tensor<?x?xf32>, %i: tensor<?xi64>",
        "%r = moe.gather_rows %x at %i : (tensor<?x?xf32>, tensor<?xi64>) -> tensor<?x?xf32>",
        "moe.gather_rows: 'index' (%i) must be of element type i32, got tensor<?xi64>",
    ),
    "gather-result": (
        "%x: tensor<?x8xf32>, %i: tensor<3x2xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?x8xf32>, tensor<3x2xi32>) -> tensor<5x8xf32>",
        "moe.gather_rows: 'result' (%r) must be of shape 6x8, got tensor<5x8xf32>",
    ),
    "gather-result-type": (
        "%x: tensor<?x?xf32>, %i: tensor<?xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xi32>",
        f"moe.gather_rows: 'result' (%r) {FLOAT} tensor<?x?xi32>",
    ),
    "gather-converts": (
        "%x: tensor<?x?xf32>, %i: tensor<?xi32>",
        "%r = moe.gather_rows %x at %i : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf16>",
        "moe.gather_rows: 'result' (%r) must be of the element type of 'table', tensor<?x?xf32>, got tensor<?x?xf16>",
    ),
    "repeat-converts": (
        "%x: tensor<?x?xf32>",
        "%r = moe.repeat_rows %x : (tensor<?x?xf32>) -> tensor<?x?xf16>",
        "moe.repeat_rows: 'result' (%r) must be of the element type of 'rows', tensor<?x?xf32>, got tensor<?x?xf16>",
    ),
    "scatter-converts": (
        "%x: tensor<?x?xf32>, %i: tensor<?xi32>",
        '%r = moe.scatter_rows %x to %i rows "M" : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf16>',
        "moe.scatter_rows: 'result' (%r) must be of the element type of 'rows', tensor<?x?xf32>, got tensor<?x?xf16>",
    ),
    "scatter-count": (
        "%x: tensor<6x?xf32>, %i: tensor<5xi32>",
        '%r = moe.scatter_rows %x to %i rows "M" : (tensor<6x?xf32>, tensor<5xi32>) -> tensor<?x?xf32>',
        "moe.scatter_rows: 'index' (%i) must be of 6 elements, one for each row of 'rows', got tensor<5xi32>",
    ),
    "scatter-hidden": (
        "%x: tensor<6x8xf32>, %i: tensor<6xi32>",
        '%r = moe.scatter_rows %x to %i rows "M" : (tensor<6x8xf32>, tensor<6xi32>) -> tensor<?x9xf32>',
        "moe.scatter_rows: 'result' (%r) must be of shape ?x8, got tensor<?x9xf32>",
    ),
    "active-shape": (
        "%i: tensor<6xi32>",
        '%r = moe.active_slots %i in "M" : (tensor<6xi32>) -> tensor<5xi1>',
        "moe.active_slots: 'result' (%r) must be of the shape of 'index', tensor<6xi32>, got tensor<5xi1>",
    ),
    "active-type": (
        "%i: tensor<?xi32>",
        '%r = moe.active_slots %i in "M" : (tensor<?xi32>) -> tensor<?xi32>',
        "moe.active_slots: 'result' (%r) must be of element type i1, got tensor<?xi32>",
    ),
    "active-index": (
        "%i: tensor<?xf32>",
        '%r = moe.active_slots %i in "M" : (tensor<?xf32>) -> tensor<?xi1>',
        "moe.active_slots: 'index' (%i) must be of element type i32, got tensor<?xf32>",
    ),
    "cast-from": (
        "%x: tensor<?xi32>",
        "%r = moe.cast %x : (tensor<?xi32>) -> tensor<?xf32>",
        f"moe.cast: 'value' (%x) {FLOAT} tensor<?xi32>",
    ),
    "cast-to": (
        "%x: tensor<?xf32>",
        "%r = moe.cast %x : (tensor<?xf32>) -> tensor<?xi32>",
        f"moe.cast: 'result' (%r) {FLOAT} tensor<?xi32>",
    ),
    "cast-shape": (
        "%x: tensor<?xf32>",
        "%r = moe.cast %x : (tensor<?xf32>) -> f16",
        "moe.cast: 'result' (%r) must be of shape ?, got f16",
    ),
    "scale-type": (
        "%x: tensor<?x?xf32>, %s: tensor<?xi32>",
        "%r = moe.scale_rows %x by %s : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf32>",
        f"moe.scale_rows: 'scales' (%s) {FLOAT} tensor<?xi32>",
    ),
    "scale-row-by-many": (
        "%x: tensor<?xf32>, %s: tensor<?xf32>",
        "%r = moe.scale_rows %x by %s : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>",
        "moe.scale_rows: 'scales' (%s) must be a scalar for a single row, a tensor for many, got tensor<?xf32>",
    ),
    "scale-many-by-one": (
        "%x: tensor<?x?xf32>, %s: f32",
        "%r = moe.scale_rows %x by %s : (tensor<?x?xf32>, f32) -> tensor<?x?xf32>",
        "moe.scale_rows: 'scales' (%s) must be a scalar for a single row, a tensor for many, got f32",
    ),
    "scale-rank": (
        "%x: tensor<?x?xf32>, %s: tensor<?x?x?xf32>",
        "%r = moe.scale_rows %x by %s : (tensor<?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?xf32>",
        "moe.scale_rows: 'scales' (%s) must be a tensor of rank 1 or 2, got tensor<?x?x?xf32>",
    ),
    "scale-count": (
        "%x: tensor<6x?xf32>, %s: tensor<3x3xf32>",
        "%r = moe.scale_rows %x by %s : (tensor<6x?xf32>, tensor<3x3xf32>) -> tensor<6x?xf32>",
        "moe.scale_rows: 'scales' (%s) must be of 6 elements, one for each row of 'rows', got tensor<3x3xf32>",
    ),
    "scale-result": (
        "%x: tensor<6x?xf32>, %s: tensor<6xf32>",
        "%r = moe.scale_rows %x by %s : (tensor<6x?xf32>, tensor<6xf32>) -> tensor<7x?xf32>",
        "moe.scale_rows: 'result' (%r) must be of shape 6x?, got tensor<7x?xf32>",
    ),
    "add-rank": (
        "%x: tensor<?x?x?xf32>",
        "%r = moe.add_rows %x, %x : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>",
        "moe.add_rows: 'lhs' (%x) must be a tensor of rank 1 or 2, got tensor<?x?x?xf32>",
    ),
    "add-scalar": (
        "%x: f32",
        "%r = moe.add_rows %x, %x : (f32, f32) -> f32",
        "moe.add_rows: 'lhs' (%x) must be a tensor of rank 1 or 2, got f32",
    ),
    "add-shape": (
        "%x: tensor<?x8xf32>, %y: tensor<?x9xf32>",
        "%r = moe.add_rows %x, %y : (tensor<?x8xf32>, tensor<?x9xf32>) -> tensor<?x8xf32>",
        "moe.add_rows: 'rhs' (%y) must be of the shape of 'lhs', tensor<?x8xf32>, got tensor<?x9xf32>",
    ),
    "sub-rank": (
        "%x: tensor<?x?xf32>, %y: tensor<?xf32>",
        "%r = moe.sub_rows %x, %y : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>",
        "moe.sub_rows: 'rhs' (%y) must be of the shape of 'lhs', tensor<?x?xf32>, got tensor<?xf32>",
    ),
    "mul-type": (
        "%x: tensor<?x?xf32>, %y: tensor<?x?xi32>",
        "%r = moe.mul_rows %x, %y : (tensor<?x?xf32>, tensor<?x?xi32>) -> tensor<?x?xf32>",
        f"moe.mul_rows: 'rhs' (%y) {FLOAT} tensor<?x?xi32>",
    ),
    "mul-result": (
        "%x: tensor<?x8xf32>",
        "%r = moe.mul_rows %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<8xf32>",
        "moe.mul_rows: 'result' (%r) must be of shape ?x8, got tensor<8xf32>",
    ),
    "dot-shape": (
        "%x: tensor<4x?xf32>, %y: tensor<5x?xf32>",
        "%r = moe.row_dot %x, %y : (tensor<4x?xf32>, tensor<5x?xf32>) -> tensor<4xf32>",
        "moe.row_dot: 'rhs' (%y) must be of the shape of 'lhs', tensor<4x?xf32>, got tensor<5x?xf32>",
    ),
    "dot-result-rank": (
        "%x: tensor<?x?xf32>",
        "%r = moe.row_dot %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> f32",
        "moe.row_dot: 'result' (%r) must be a tensor of rank 1 or 2, got f32",
    ),
    "dot-result-count": (
        "%x: tensor<6x?xf32>",
        "%r = moe.row_dot %x, %x : (tensor<6x?xf32>, tensor<6x?xf32>) -> tensor<2x2xf32>",
        "moe.row_dot: 'result' (%r) must be of 6 elements, one for each row of 'lhs', got tensor<2x2xf32>",
    ),
    "dot-row-result": (
        "%x: tensor<?xf32>",
        "%r = moe.row_dot %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>",
        "moe.row_dot: 'result' (%r) must be of shape scalar, got tensor<?xf32>",
    ),
    "dot-result-type": (
        "%x: tensor<?xf32>",
        "%r = moe.row_dot %x, %x : (tensor<?xf32>, tensor<?xf32>) -> i32",
        f"moe.row_dot: 'result' (%r) {FLOAT} i32",
    ),
    "dot-lanes": (
        "%x: tensor<?xf32>",
        "%r = moe.row_dot %x, %x lanes 12 : (tensor<?xf32>, tensor<?xf32>) -> f32",
        "moe.row_dot: 'lanes' must be a power of two, got 12 : i64",
    ),
    "dot-no-lanes": (
        "%x: tensor<?xf32>",
        "%r = moe.row_dot %x, %x lanes 0 : (tensor<?xf32>, tensor<?xf32>) -> f32",
        "moe.row_dot: 'lanes' must be a power of two, got 0 : i64",
    ),
    "select-predicate": (
        "%x: tensor<?x?xf32>, %a: tensor<?xi32>",
        "%r = moe.select_slots %x where %a : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf32>",
        "moe.select_slots: 'active' (%a) must be of element type i1, got tensor<?xi32>",
    ),
    "select-type": (
        "%x: tensor<?xi32>, %a: tensor<?xi1>",
        "%r = moe.select_slots %x where %a : (tensor<?xi32>, tensor<?xi1>) -> tensor<?xi32>",
        f"moe.select_slots: 'value' (%x) {FLOAT} tensor<?xi32>",
    ),
    "select-count": (
        "%x: tensor<6xf32>, %a: tensor<5xi1>",
        "%r = moe.select_slots %x where %a : (tensor<6xf32>, tensor<5xi1>) -> tensor<6xf32>",
        "moe.select_slots: 'active' (%a) must be of 6 elements, one for each row of 'value', got tensor<5xi1>",
    ),
    "select-converts": (
        "%x: tensor<?xf32>, %a: tensor<?xi1>",
        "%r = moe.select_slots %x where %a : (tensor<?xf32>, tensor<?xi1>) -> tensor<?xf16>",
        "moe.select_slots: 'result' (%r) must be of the element type of 'value', tensor<?xf32>, got tensor<?xf16>",
    ),
    "select-shape": (
        "%x: tensor<6xf32>, %a: tensor<6xi1>",
        "%r = moe.select_slots %x where %a : (tensor<6xf32>, tensor<6xi1>) -> tensor<7xf32>",
        "moe.select_slots: 'result' (%r) must be of shape 6, got tensor<7xf32>",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_broken_rule_names_operation_value_and_expectation(case: str) -> None:
    arguments, line, message = BAD[case]
    assert refusal(arguments, line) == message
