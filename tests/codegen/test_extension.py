"""What it takes to add an operation: here an elementwise ``moe.max_rows``, added from outside.

The places: the class and its entry in TENSOR_OPS, its meaning in the interpreter, its function on lanes in
ROW_OPS with the declaration in DECLARATIONS (and, to build, the function in ``cpu/moegrad_lanes.h``). No pass,
no template and no printer knows it by name.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.interpreter import Interpreter, PythonValues, impl, register_impls
from xdsl.irdl import irdl_op_definition

from moegrad.codegen import interpreter
from moegrad.codegen.dialect import Moe
from moegrad.codegen.dialect.tensor import _ElementwiseOp
from moegrad.codegen.errors import LoweringError, ProgramError
from moegrad.codegen.interpreter import MoeFunctions, run_program
from moegrad.codegen.parsing import parse_program
from moegrad.codegen.pipeline import stages
from moegrad.codegen.targets.cython.emit import emit_module
from moegrad.codegen.targets.cython.lanes import DECLARATIONS, ROW_OPS

from .helpers import TOKEN_ROWS, integers

TEXT = TOKEN_ROWS.text.replace("moe.sub_rows", "moe.max_rows")


@irdl_op_definition
class MaxRowsOp(_ElementwiseOp):
    """max(lhs, rhs)"""

    name = "moe.max_rows"


@register_impls
class MaxFunctions(MoeFunctions):
    """The meaning of the new operation beside that of the others."""

    @impl(MaxRowsOp)
    def max_rows(self, interpreter: Interpreter, op: MaxRowsOp, args: PythonValues) -> PythonValues:
        return (self._rounded(op, np.maximum(args[0].astype(np.float32), args[1].astype(np.float32))),)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dialect and the interpreter know the operation."""
    monkeypatch.setattr(Moe, "_operations", [*Moe.operations, MaxRowsOp])
    monkeypatch.setattr(interpreter, "MoeFunctions", MaxFunctions)


@pytest.fixture
def printable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Cython target knows it too."""
    monkeypatch.setitem(ROW_OPS, MaxRowsOp.name, "lanes_max")
    monkeypatch.setitem(DECLARATIONS, "lanes_max", "lanes lanes_max(lanes lhs, lanes rhs)")


def test_an_unknown_operation_is_refused_with_its_place() -> None:
    with pytest.raises(ProgramError, match=r"^t\.mlir:8:\d+: Operation moe\.max_rows is not registered"):
        parse_program(TEXT, "t.mlir")


@pytest.mark.usefixtures("known")
def test_every_pass_takes_it() -> None:
    rng, f32 = np.random.default_rng(0), np.dtype(np.float32)
    inputs = {name: integers(rng, (4, 45), f32) for name in "xyz"}
    expected = np.maximum(inputs["x"] * inputs["y"], inputs["z"])
    for _, module in stages(parse_program(TEXT, "t.mlir"), TOKEN_ROWS.spec(), "cython"):
        np.testing.assert_array_equal(run_program(module, inputs)["out"], expected)


@pytest.mark.usefixtures("known", "printable")
def test_the_target_prints_it() -> None:
    text = emit_module(parse_program(TEXT, "t.mlir"), [TOKEN_ROWS.spec("bf16")], "c", python=True)
    assert "    lanes lanes_max(lanes lhs, lanes rhs)\n" in text
    assert "lanes_put_bf16_pairs(out_row + j, lanes_max(product, z2), stream_out)" in text


@pytest.mark.usefixtures("known")
def test_a_target_that_does_not_know_it_says_what_to_add() -> None:
    with pytest.raises(LoweringError) as error:
        emit_module(parse_program(TEXT, "t.mlir"), [TOKEN_ROWS.spec()], "c", python=True)
    assert str(error.value) == "cython: no lanes for moe.max_rows; add it to ROW_OPS of the Cython target"
