"""Programs that are neither operator: the same passes, printers and templates serve them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, i32

from moegrad.codegen.dialect.types import element
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import ascend_program
from moegrad.codegen.interpreter import run_program
from moegrad.codegen.parsing import parse_program, read_program
from moegrad.codegen.pipeline import lower
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.ascendc.emit import AscendKernel
from moegrad.codegen.targets.ascendc.hostbuild import build_kernels
from moegrad.codegen.targets.ascendc.hostrun import NO_AUTO_SYNC, HostKernel

from ..codegen.helpers import DOT_THEN_SCALE, NUMPY, SLOT_CHAIN, TOKEN_GATHER, TOKEN_ROWS, TWO_SCATTERS, assert_same

Array = np.ndarray[Any, np.dtype[Any]]
EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = '!D = !moe.dtype<"D">\n!P = !moe.dtype<"P">\n'

STORED_AND_USED = """
func.func @stored_and_used(%x: tensor<?x?x!D> {moe.dims = ["M", "H"]}, %idx: tensor<?xi32> {moe.dims = ["N"]},
                           %g: tensor<?x?x!D> {moe.dims = ["R", "H"]})
    -> (tensor<?x?x!D> {moe.dims = ["N", "H"], moe.name = "copy"},
        tensor<?x?x!P> {moe.dims = ["R", "K"], moe.name = "dots"}) {
  %rows = moe.gather_rows %x at %idx : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %grad = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %dots = moe.row_dot %rows, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!P>
  func.return %rows, %dots : tensor<?x?x!D>, tensor<?x?x!P>
}
"""
TOKEN_SCALE = """
func.func @token_scale(%g: tensor<?x?x!D> {moe.dims = ["R", "H"]}, %w: tensor<?x!P> {moe.dims = ["R"]},
                       %idx: tensor<?xi32> {moe.dims = ["N"]})
    -> (tensor<?x?x!D> {moe.dims = ["R", "H"], moe.name = "own"},
        tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "spread"}) {
  %scaled = moe.scale_rows %g by %w : (tensor<?x?x!D>, tensor<?x!P>) -> tensor<?x?x!D>
  %rows = moe.repeat_rows %scaled : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %spread = moe.scatter_rows %rows to %idx rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %scaled, %spread : tensor<?x?x!D>, tensor<?x?x!D>
}
"""
TEXTS = {"stored_and_used": STORED_AND_USED, "token_scale": TOKEN_SCALE}
R, K, M = 7, 3, 17
DTYPES = (("bf16", "f32"), ("f32", "f16"))
SHAPES = ((0, 0), (K, 70))


@cache
def program(name: str) -> ModuleOp:
    """One of the examples, of the programs of this file, or of those of the compiler's tests."""
    if name in TEXTS:
        return parse_program(HEAD + TEXTS[name], f"{name}.mlir")
    others = {p.name: p for p in (TOKEN_ROWS, TWO_SCATTERS, DOT_THEN_SCALE, SLOT_CHAIN)}
    return others[name].parsed() if name in others else read_program(EXAMPLES / f"{name}.mlir")


NAMES = (
    "gather_two_dots",
    "scale_squared",
    "stored_and_used",
    "token_scale",
    "token_rows",
    "two_scatters",
    "dot_then_scale",
    "slot_chain",
)
UNWEIGHTED = ("token_rows", "dot_then_scale", "slot_chain")


def specs(name: str) -> list[KernelSpec]:
    plain = [(data, "" if name in UNWEIGHTED else weight) for data, weight in DTYPES]
    return [KernelSpec(name, data, weight, topk, hidden) for data, weight in plain for topk, hidden in SHAPES]


@cache
def kernels() -> dict[str, HostKernel]:
    """Every program, dtype and shape in one library."""
    found: list[AscendKernel] = [
        ascend_program(program(name), f"{name}.mlir", spec) for name in NAMES for spec in specs(name)
    ]
    library = build_kernels(found)
    return {kernel.spec.key: HostKernel(library, kernel) for kernel in found}


def inputs_of(kernel: HostKernel, hidden: int, seed: int) -> dict[str, Array]:
    """Small integers, whose sums and products are exact; distinct indices, some outside."""
    rng = np.random.default_rng(seed)
    sizes = {"R": R, "K": K, "N": R * K, "M": M, "H": hidden, "L": 20}
    found = {}
    for tensor in kernel.tensors:
        shape = tuple(sizes[dim] for dim in tensor.dims)
        if tensor.output:
            continue
        if element(tensor.type) == i32:
            values = rng.permutation(25)[: R * K].reshape(shape)
            found[tensor.name] = np.where(values < M, values, -1).astype(np.int32)
        else:
            spec = kernel.kernel.spec
            weights = tensor.dims in (("R", "K"), ("N",), ("R",))
            found[tensor.name] = rng.integers(-2, 3, shape).astype(NUMPY[spec.weight if weights else spec.data])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_program_means_the_same_on_the_device(name: str) -> None:
    for number, spec in enumerate(specs(name)):
        kernel = kernels()[spec.key]
        hidden = spec.hidden or (33, 5000)[number % 2 and "chain" not in name]
        inputs = inputs_of(kernel, hidden, number)
        sizes = {"M": M, "L": 20, "K": K}
        run = kernel.run(inputs, sizes, seed=number, cores=(48, 2)[number % 2], switches=NO_AUTO_SYNC)
        assert run.clean, (spec.key, run.diagnostics[:2])
        for after in ("specialize", "plan-ascend"):
            lowered = lower(program(name), spec, "ascendc", after=after)
            assert_same(run.outputs, run_program(lowered, inputs, sizes))


def test_a_row_that_is_stored_and_used_is_copied_as_bits() -> None:
    spec = specs("stored_and_used")[0]
    kernel = kernels()[spec.key]
    inputs = inputs_of(kernel, 33, 0)
    payload = np.array([0x7FA1, 0xFF81], np.uint16).view(ml_dtypes.bfloat16)
    inputs["x"][:, :2] = payload
    run = kernel.run(inputs, {"K": K})
    rows = run.outputs["copy"][inputs["idx"] >= 0][:, :2].view(np.uint16)
    assert (rows == payload.view(np.uint16)).all()


def test_a_row_that_depends_on_a_sum_must_fit_whole() -> None:
    with pytest.raises(LoweringError, match="plan-ascend: a row that depends on a sum must fit in UB, got 50000"):
        ascend_program(program("slot_chain"), "x.mlir", KernelSpec("slot_chain", "f32", "", 2, 50000))
    kernel = kernels()[KernelSpec("slot_chain", "f32", "", 0, 0).key]
    sizes = {"M": 6, "R": 3, "K": 2, "N": 6, "H": 50000}
    with pytest.raises(LoweringError, match="hidden: rows that depend on a sum must fit in UB"):
        kernel.tiling(sizes)


def test_a_program_that_drops_tokens_with_several_slots_is_refused() -> None:
    with pytest.raises(LoweringError, match="plan-ascend: no form for a program that drops whole tokens"):
        ascend_program(TOKEN_GATHER.parsed(), "x.mlir", KernelSpec("token_gather", "f32", "f32", 0, 0))
