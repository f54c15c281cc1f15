"""Calls that are refused: code and message, with size and executor untouched; and findings of the host model."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from .package import NCHW, Script, array_of, faults


@dataclass(frozen=True)
class Bad:
    """A call of ScaledAdd or another operator, and what comes of it."""

    name: str
    status: int
    message: str
    operator: str = "ScaledAdd"
    inputs: str = "x,-,-"
    attrs: str = "i1,b0,l-"
    outputs: str = "z,-"


CALLS = (
    Bad("null_input", 161001, "ScaledAdd: x: expected a tensor, got null", inputs="-,-,-"),
    Bad("null_output", 161001, "ScaledAdd: z: expected a tensor, got null", outputs="-,-"),
    Bad("dtype", 161002, "ScaledAdd: x: expected dtype float32 or float16 or bfloat16, got int32", inputs="i,-,-"),
    Bad("dtypes_apart", 161002, "ScaledAdd: y: expected dtype float32, got float16", inputs="x,h,-"),
    Bad("dtype_of_output", 161002, "ScaledAdd: z: expected dtype float32, got float16", outputs="h,-"),
    Bad("dtype_of_optional", 161002, "ScaledAdd: mask: expected dtype int32, got float32", inputs="x,-,x"),
    Bad("dtype_without_size", 161002, "ScaledAdd: mask: expected dtype int32, got type 29", inputs="x,-,int4"),
    Bad("format", 161002, "ScaledAdd: x: expected format ND, got NCHW", inputs="image,-,-"),
    Bad("format_of_output", 161002, "ScaledAdd: z: expected format ND, got NCHW", outputs="image,-"),
    Bad("strided_output", 161002, "ScaledAdd: z: expected a contiguous output, got strides", outputs="t,-"),
    Bad(
        "strided_input",
        561000,
        "ScaledAdd: mask: got strides, and the definition lacks AutoContiguous",
        inputs="x,-,strided_mask",
    ),
    Bad(
        "dead_tensor",
        161002,
        "ScaledAdd: input 0: expected a tensor that was created and not destroyed",
        inputs="dead,-,-",
    ),
    Bad(
        "dead_list",
        161002,
        "ScaledAdd: shifts: expected a list that was created and not destroyed",
        attrs="i1,b0,ldeadlist",
    ),
    Bad("few_inputs", 561104, "ScaledAdd: inputs: expected 3 tensors, got 1", inputs="x"),
    Bad("many_outputs", 561104, "ScaledAdd: outputs: expected 2 tensors, got 3", outputs="z,-,-"),
    Bad("few_attributes", 561104, "ScaledAdd: expected 3 attributes, got 2", attrs="i1,b0"),
    Bad("other_attribute", 561104, "ScaledAdd: negate: expected a bool, got an int64_t", attrs="i1,i0,l-"),
    Bad("list_for_int", 561104, "ScaledAdd: scale: expected an int64_t, got a list of int64_t", attrs="l-,b0,l-"),
    Bad(
        "uncompiled",
        561003,
        "ScaledAdd: no kernel was compiled for x bfloat16, z bfloat16, combination 2 of the definition; "
        "compiled are 0, 1",
        inputs="b,-,-",
        outputs="b,-",
    ),
    Bad("tiling", 561002, "ScaledAdd: the tiling function failed", outputs="other,-"),
    Bad(
        "unknown",
        561003,
        "ScaledSub: no such operator; known: Careless, Defaultless, Foreign, Formatless, Lopsided, Misfit, ScaledAdd, "
        "Shapeless, Tilingless, Twice, Typeless, Untyped",
        operator="ScaledSub",
    ),
    Bad("twice", 561003, "Twice: two definitions have this name", "Twice", "x", ".", "z"),
    Bad(
        "lopsided",
        561003,
        "Lopsided: definition of 'z': DataType has 2 entries, expected 1, as other tensors have",
        "Lopsided",
        "x",
        ".",
        "z",
    ),
    Bad(
        "defaultless",
        561003,
        "Defaultless: definition of 'k': an optional attribute needs a default",
        "Defaultless",
        "x",
        "i1",
        "z",
    ),
    Bad(
        "formatless",
        561003,
        "Formatless: definition of 'x': Format has 0 entries, expected 1, as other tensors have",
        "Formatless",
        "x",
        ".",
        "z",
    ),
    Bad("tilingless", 561002, "Tilingless: the definition has no tiling function", "Tilingless", "x", ".", "z"),
    Bad(
        "foreign",
        561003,
        "Foreign: no configuration for ascend910b; the definition has ascend310p",
        "Foreign",
        "x",
        ".",
        "z",
    ),
)


def tensors(script: Script) -> None:
    """One of each kind that the calls name."""
    square, whole = np.ones((3, 3), "f4"), np.ones((3, 3), "i4")
    for name in ("x", "z"):
        script.tensor(name, square)
    script.tensor("other", np.ones((3, 4), "f4"))
    script.tensor("i", whole)
    script.tensor("h", np.ones((3, 3), "f2"))
    script.tensor("b", np.ones((3, 3), "u2"), dtype=27)
    script.tensor("t", square, square.T)
    script.tensor("strided_mask", whole, whole.T)
    script.tensor("image", square, form=NCHW)
    script.tensor("int4", whole, dtype=29)
    script.tensor("dead", square)
    script.drop("dead")
    script.int_list("deadlist", [1])
    script.drop("deadlist")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_refused(script: Script, call: Bad) -> None:
    tensors(script)
    script.prepare(call.operator, call.inputs, call.attrs, call.outputs)
    (answer,) = script.results()
    assert (answer.status, answer.text) == (call.status, call.message)


@pytest.mark.parametrize("which", ["workspaceSize", "executor"])
def test_no_address_for_a_result(script: Script, which: str) -> None:
    script.prepare_null("ScaledAdd", which)
    (answer,) = script.results()
    assert (answer.status, answer.text) == (161001, f"ScaledAdd: {which}: expected an address, got null")


FAULTS = {
    "UNSET_FIELD": "Careless: tiling data: byte 8 of 16 was never assigned",
    "UNSET_BYTE": "Careless: tiling data: byte 12 of 16 was never assigned",
    "DEPENDENT_FIELD": "Careless: tiling data: byte 8 of 16 depends on what was never assigned",
    "NO_KEY": "Careless: the tiling key was never set",
    "NO_BLOCKS": "Careless: block dim: expected 1 to 65535, got 0",
    "TOO_MANY_BLOCKS": "Careless: block dim: expected 1 to 65535, got 65536",
    "UNSET_WORKSPACE": "Careless: the size of the workspace was never set",
    "TWO_WORKSPACES": "Careless: tiling function: 2 workspaces were asked for, a kernel gets one",
    "TWO_STRUCTS": "Careless: tiling function: GetTilingData was called for a struct of 16 bytes, then for one of 32",
    "HUGE_STRUCT": "Careless: the tiling function failed: tiling data of 20000 bytes do not fit in 16384",
    "RAW_TOO_LARGE": "Careless: tiling data: 20000 bytes do not fit in 16384",
    "WRONG_ATTR": "Careless: the tiling function failed: attribute 9 was asked for, the operator has 1",
    "WRONG_ATTR_TYPE": "Careless: tiling function: attribute 0 was read as another type than its own",
    "WRONG_INPUT": "Careless: tiling function: input 5 was asked for, the operator has 3",
    "WRONG_OUTPUT": "Careless: tiling function: output 1 was asked for, the operator has 1",
    "PLACE_AFTER_ABSENT": (
        "Careless: tiling function: input 2 was asked for by its place among those present; 'last' has that place in "
        "the definition, the call gets nothing, because an optional one before it is absent"
    ),
    "SILENT": "Careless: the tiling function failed",
    "SPEAKING": "fault: expected less",
    "THROWING": "Careless: the tiling function threw: out of cores",
}


def careless(script: Script, fault: str, inputs: str = "x,-,-") -> None:
    script.tensor("x", np.arange(4, dtype="f4"))
    script.tensor("z", np.full(4, 9, "f4"))
    script.prepare("Careless", inputs, f"i{faults()[fault]}", "z")


@pytest.mark.parametrize("fault", FAULTS)
def test_tiling_function(script: Script, fault: str) -> None:
    careless(script, fault, "x,-,x" if fault == "PLACE_AFTER_ABSENT" else "x,-,-")
    (answer,) = script.results()
    assert (answer.status, answer.text) == (561002, FAULTS[fault])


def test_every_fault_has_a_test() -> None:
    assert set(faults()) == {*FAULTS, "NONE", "STORE_PAST_END", "LEAVE_UNWRITTEN", "HANG"}


def test_careless_without_a_fault(script: Script) -> None:
    careless(script, "NONE", "x,x,x")
    script.run("Careless")
    script.read("z")
    _, ran, read = script.results()
    assert ran.status == 0, ran.text
    np.testing.assert_array_equal(array_of(read, np.empty(4, "f4")), np.arange(4))


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        (
            "STORE_PAST_END",
            [
                r"Careless: kernel careless on ascend910b, 1 block, 2 findings",
                r"  .*/op_kernel/careless.cpp:\d+: error \[gm-out-of-range\] DataCopyPad: .*",
                r"  .*: error \[output-unwritten\] kernel end: .*",
            ],
        ),
        (
            "HANG",
            [
                r"Careless: kernel careless on ascend910b, 1 block, 2 findings",
                r"  .*/op_kernel/careless.cpp:\d+: error \[queue-alloc-hang\] AllocTensor: .*",
                r"  .*: error \[output-unwritten\] kernel end: .*",
            ],
        ),
        (
            "LEAVE_UNWRITTEN",
            [
                r"Careless: kernel careless on ascend910b, 1 block, 1 finding",
                r"  careless:0: error \[output-unwritten\] kernel end: 4 of 16 bytes of 'z' were never written, .*",
            ],
        ),
    ],
)
def test_findings_of_the_host_model(script: Script, fault: str, lines: list[str]) -> None:
    careless(script, fault)
    script.run("Careless")
    script.read("z")
    _, ran, read = script.results()
    assert ran.status == 361001
    found = ran.text.split("\n")
    assert len(found) == len(lines), ran.text
    for text, pattern in zip(found, lines, strict=True):
        assert re.fullmatch(pattern, text), text
    np.testing.assert_array_equal(array_of(read, np.empty(4, "f4")), np.full(4, 9))


def test_kernel_with_other_parameters(script: Script) -> None:
    script.tensor("x", np.zeros(4, "f4"))
    script.tensor("z", np.zeros(4, "f4"))
    script.prepare("Misfit", "x", ".", "z")
    script.run("Misfit")
    _, ran = script.results()
    assert (ran.status, ran.text) == (
        361001,
        "Misfit: kernel careless has 6 parameters; the definition has 2 tensors, which with workspace and tiling data "
        "make 4",
    )


@pytest.mark.parametrize(
    ("operator", "inputs", "message"),
    [
        ("Foreign", "x", "Foreign: the definition has no InferShape function"),
        ("Misfit", "x", "Misfit: the InferShape function failed: input 1 was asked for, the operator has 1"),
        ("Shapeless", "x", "Shapeless: dimension 1 of 'z' was never assigned"),
        ("Untyped", "x", "Untyped: the definition has no InferDataType function"),
        ("Typeless", "x", "Typeless: the type of 'z' was never assigned"),
    ],
)
def test_inference(script: Script, operator: str, inputs: str, message: str) -> None:
    script.shape("x", "float32", (3, 3))
    script.infer(operator, inputs, ".")
    (answer,) = script.results()
    assert (answer.status, answer.text) == (561001, message)


def test_inference_needs_its_inputs(script: Script) -> None:
    script.infer("ScaledAdd", "-,-,-", "i1,b0,l-")
    (answer,) = script.results()
    assert (answer.status, answer.text) == (161001, "ScaledAdd: x: expected a tensor, got null")
