"""Slot level: text forms, and one negative test for each rule of each verifier."""

from __future__ import annotations

import pytest

from moegrad.codegen.dialect.slot import SLOT_OPS

from .bodies import refusal, round_trip

BUFFER = "%b: memref<?x?xf32>, %i: memref<?xi32>, %w: memref<?x?xf32>"

LOOPS = [
    'moe.for_tokens %t in "R" {',
    "%row = moe.load_row %b[%t] : memref<?x?xf32> -> tensor<?xf32>",
    'moe.for_slots %k in "K" {',
    '%slot = moe.slot %t, %k of "K"',
    "%at = moe.load_index %i[%slot] : memref<?xi32>",
    '%active = moe.in_range %at of "M"',
    "%guarded = moe.load_row %b[%at] if %active : memref<?x?xf32> -> tensor<?xf32>",
    "moe.store_row %guarded, %b[%at] if %active : tensor<?xf32>, memref<?x?xf32>",
    "moe.if %active {",
    "%weight = moe.load_scalar %w[%slot] : memref<?x?xf32> -> f32",
    "moe.store_scalar %weight, %w[%slot] : f32, memref<?x?xf32>",
    "} else {",
    "%none = moe.zero : tensor<?xf32>",
    "moe.store_row %none, %b[%at] : tensor<?xf32>, memref<?x?xf32>",
    "}",
    "%dot = moe.row_loop {",
    "%sum = moe.row_dot %row, %row lanes 32 : (tensor<?xf32>, tensor<?xf32>) -> f32",
    "moe.yield %sum : f32",
    "} : f32",
    "moe.pair_slots %k alone %a {",
    '%single = moe.slot %t, %a of "K"',
    "} both %c, %d {",
    '%one = moe.slot %t, %c of "K"',
    '%two = moe.slot %t, %d of "K"',
    "}",
    "moe.row_loop {",
    "moe.store_row %row, %b[%t] : tensor<?xf32>, memref<?x?xf32>",
    "moe.yield",
    "}",
    "}",
    "}",
]


def test_text_round_trips() -> None:
    round_trip(BUFFER, ["moe.zero_unnamed_rows %b, %i : memref<?x?xf32>, memref<?xi32>", *LOOPS])


def test_an_if_without_another_body_round_trips() -> None:
    round_trip("%c: i1", ["moe.if %c {", "%none = moe.zero : f32", "}"])


def test_every_operation_has_a_text_form_under_test() -> None:
    written = " ".join(["moe.zero_unnamed_rows ", *LOOPS, ""])
    assert [op.name for op in SLOT_OPS if op.name not in written] == []


BAD = {
    "load-index-rank": (
        "%i: memref<?x?x?xi32>, %t: index",
        "%r = moe.load_index %i[%t] : memref<?x?x?xi32>",
        "moe.load_index: 'buffer' (%i) must be a memref of rank 1 or 2, got memref<?x?x?xi32>",
    ),
    "load-index-tensor": (
        "%i: tensor<?xi32>, %t: index",
        "%r = moe.load_index %i[%t] : tensor<?xi32>",
        "moe.load_index: 'buffer' (%i) must be a memref of rank 1 or 2, got tensor<?xi32>",
    ),
    "load-index-type": (
        "%i: memref<?xi64>, %t: index",
        "%r = moe.load_index %i[%t] : memref<?xi64>",
        "moe.load_index: 'buffer' (%i) must be of element type i32, got memref<?xi64>",
    ),
    "load-row-rank": (
        "%b: memref<?xf32>, %t: index",
        "%r = moe.load_row %b[%t] : memref<?xf32> -> tensor<?xf32>",
        "moe.load_row: 'buffer' (%b) must be a memref of rank 2, got memref<?xf32>",
    ),
    "load-row-type": (
        "%b: memref<?x?xi32>, %t: index",
        "%r = moe.load_row %b[%t] : memref<?x?xi32> -> tensor<?xi32>",
        "moe.load_row: 'buffer' (%b) must be of element type f16, bf16, f32 or !moe.dtype, got memref<?x?xi32>",
    ),
    "load-row-result-rank": (
        "%b: memref<?x?xf32>, %t: index",
        "%r = moe.load_row %b[%t] : memref<?x?xf32> -> f32",
        "moe.load_row: 'result' (%r) must be a tensor of rank 1, got f32",
    ),
    "load-row-result-size": (
        "%b: memref<?x8xf32>, %t: index",
        "%r = moe.load_row %b[%t] : memref<?x8xf32> -> tensor<9xf32>",
        "moe.load_row: 'result' (%r) must be one row of 'buffer', memref<?x8xf32>, got tensor<9xf32>",
    ),
    "load-row-result-type": (
        "%b: memref<?x?xf32>, %t: index",
        "%r = moe.load_row %b[%t] : memref<?x?xf32> -> tensor<?xf16>",
        "moe.load_row: 'result' (%r) must be one row of 'buffer', memref<?x?xf32>, got tensor<?xf16>",
    ),
    "store-row-rank": (
        "%b: memref<?xf32>, %x: tensor<?xf32>, %t: index",
        "moe.store_row %x, %b[%t] : tensor<?xf32>, memref<?xf32>",
        "moe.store_row: 'buffer' (%b) must be a memref of rank 2, got memref<?xf32>",
    ),
    "store-row-type": (
        "%b: memref<?x?xf16>, %x: tensor<?xf32>, %t: index",
        "moe.store_row %x, %b[%t] : tensor<?xf32>, memref<?x?xf16>",
        "moe.store_row: 'row' (%x) must be one row of 'buffer', memref<?x?xf16>, got tensor<?xf32>",
    ),
    "load-scalar-rank": (
        "%b: memref<f32>, %t: index",
        "%r = moe.load_scalar %b[%t] : memref<f32> -> f32",
        "moe.load_scalar: 'buffer' (%b) must be a memref of rank 1 or 2, got memref<f32>",
    ),
    "load-scalar-type": (
        "%b: memref<?xf16>, %t: index",
        "%r = moe.load_scalar %b[%t] : memref<?xf16> -> f32",
        "moe.load_scalar: 'result' (%r) must be one element of 'buffer', memref<?xf16>, got f32",
    ),
    "load-scalar-index": (
        "%b: memref<?xi32>, %t: index",
        "%r = moe.load_scalar %b[%t] : memref<?xi32> -> i32",
        "moe.load_scalar: 'result' (%r) must be one element of 'buffer', memref<?xi32>, got i32",
    ),
    "store-scalar-rank": (
        "%b: memref<?x?x?xf32>, %x: f32, %t: index",
        "moe.store_scalar %x, %b[%t] : f32, memref<?x?x?xf32>",
        "moe.store_scalar: 'buffer' (%b) must be a memref of rank 1 or 2, got memref<?x?x?xf32>",
    ),
    "store-scalar-type": (
        "%b: memref<?xf16>, %x: f32, %t: index",
        "moe.store_scalar %x, %b[%t] : f32, memref<?xf16>",
        "moe.store_scalar: 'value' (%x) must be one element of 'buffer', memref<?xf16>, got f32",
    ),
    "zero-type": (
        "",
        "%r = moe.zero : tensor<?xi32>",
        "moe.zero: 'result' (%r) must be of element type f16, bf16, f32 or !moe.dtype, got tensor<?xi32>",
    ),
    "zero-rows-buffer": (
        "%b: memref<?xf32>, %i: memref<?xi32>",
        "moe.zero_unnamed_rows %b, %i : memref<?xf32>, memref<?xi32>",
        "moe.zero_unnamed_rows: 'buffer' (%b) must be a memref of rank 2, got memref<?xf32>",
    ),
    "zero-rows-index-rank": (
        "%b: memref<?x?xf32>, %i: memref<i32>",
        "moe.zero_unnamed_rows %b, %i : memref<?x?xf32>, memref<i32>",
        "moe.zero_unnamed_rows: 'index' (%i) must be a memref of rank 1 or 2, got memref<i32>",
    ),
    "zero-rows-index-type": (
        "%b: memref<?x?xf32>, %i: memref<?xi64>",
        "moe.zero_unnamed_rows %b, %i : memref<?x?xf32>, memref<?xi64>",
        "moe.zero_unnamed_rows: 'index' (%i) must be of element type i32, got memref<?xi64>",
    ),
    "row-loop-open": (
        "",
        "moe.row_loop { %none = moe.zero : f32 }",
        "Operation moe.zero terminates block in single-block region but is not a terminator",
    ),
    "row-loop-sums": (
        "%x: f32",
        "%r = moe.row_loop { moe.yield %x : f32 } : f16",
        "moe.row_loop: 'sums' must be of the types of moe.yield, f32, got f16",
    ),
    "row-loop-no-sums": (
        "%x: f32",
        "moe.row_loop { moe.yield %x : f32 }",
        "moe.row_loop: 'sums' must be of the types of moe.yield, f32, got none",
    ),
    "pair-alone": (
        "%k: index",
        '"moe.pair_slots"(%k) ({ ^bb0: }, { ^bb1(%a : index, %b : index): }) : (index) -> ()',
        "moe.pair_slots: 'alone' must be a block with 1 argument of type index, got none",
    ),
    "pair-both": (
        "%k: index",
        '"moe.pair_slots"(%k) ({ ^bb0(%a : index): }, { ^bb1(%b : index, %c : i32): }) : (index) -> ()',
        "moe.pair_slots: 'both' must be a block with 2 arguments of type index, got index, i32",
    ),
    "loop-without-index": (
        "",
        '"moe.for_tokens"() <{extent = "R"}> ({ ^bb0: }) : () -> ()',
        "moe.for_tokens: 'body' must be a block with one argument of type index, got none",
    ),
    "loop-index-type": (
        "",
        '"moe.for_slots"() <{extent = "K"}> ({ ^bb0(%k : i32): }) : () -> ()',
        "moe.for_slots: 'body' must be a block with one argument of type index, got i32",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_broken_rule_names_operation_value_and_expectation(case: str) -> None:
    arguments, line, message = BAD[case]
    assert refusal(arguments, line) == message
