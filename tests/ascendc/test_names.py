"""Every name that a program may use makes a kernel that compiles, and no two things in it share a name."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moegrad.codegen.generate import ascend_kernel, ascend_program
from moegrad.codegen.interpreter import run_program
from moegrad.codegen.naming import camel
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.passes.ascend_names import RESERVED, SUFFIXES, KernelNames
from moegrad.codegen.pipeline import lower
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.ascendc.emit import AscendKernel
from moegrad.codegen.targets.ascendc.hostbuild import build_kernels
from moegrad.codegen.targets.ascendc.hostrun import NO_AUTO_SYNC, HostKernel
from moegrad.tools.ascend import PROGRAMS

from ..codegen.helpers import assert_same

Array = np.ndarray[Any, np.dtype[Any]]

WEIGHTED = """!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @{name}(%x: tensor<?x?x!D> {{moe.dims = ["{M}", "H"], moe.name = "{x}"}},
                  %idx: tensor<?xi32> {{moe.dims = ["N"], moe.name = "{idx}"}},
                  %g: tensor<?x?x!D> {{moe.dims = ["{R}", "H"], moe.name = "{g}"}},
                  %w: tensor<?x?x!P> {{moe.dims = ["{R}", "K"], moe.name = "{w}"}})
    -> (tensor<?x?x!D> {{moe.dims = ["{M}", "H"], moe.name = "{out}"}},
        tensor<?x?x!P> {{moe.dims = ["{R}", "K"], moe.name = "{dots}"}}) attributes {{moe.tokens = "{R}"}} {{
  %{row} = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %scaled = moe.scale_rows %{row} by %w : (tensor<?x?x!D>, tensor<?x?x!P>) -> tensor<?x?x!D>
  %rows = moe.gather_rows %x at %idx : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %dots = moe.row_dot %rows, %{row} : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!P>
  %out = moe.scatter_rows %scaled to %idx rows "{M}" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %out, %dots : tensor<?x?x!D>, tensor<?x?x!P>
}}
"""
TWICE = """!D = !moe.dtype<"D">
func.func @twice(%x: tensor<?x?x!D> {moe.dims = ["M", "H"]}, %i: tensor<?xi32> {moe.dims = ["N"]},
                 %g: tensor<?x?x!D> {moe.dims = ["R", "H"]}, %j: tensor<?xi32> {moe.dims = ["N"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "a"},
        tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "b"},
        tensor<?x?x!D> {moe.dims = ["N", "H"], moe.name = "c"},
        tensor<?x?xf32> {moe.dims = ["R", "K"], moe.name = "d"}) {
  %grad = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %a = moe.scatter_rows %grad to %i rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %b = moe.scatter_rows %grad to %j rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %c = moe.gather_rows %x at %i : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %other = moe.gather_rows %x at %j : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %d = moe.row_dot %other, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?xf32>
  func.return %a, %b, %c, %d : tensor<?x?x!D>, tensor<?x?x!D>, tensor<?x?x!D>, tensor<?x?xf32>
}
"""
ROLES = ("x", "idx", "g", "w", "out", "dots", "M", "R", "row")
NAMINGS = {
    "parameters": ("tiling", "pipe", "workspace", "_", "grad_y", "gradY", "pitch", "R", "core"),
    "words": ("new", "int64_t", "private", "half", "AscendC", "GM_ADDR", "tile", "blockCount", "namespace"),
    "families": ("x", "xRows", "x_in", "work", "xIn2", "x_gm", "blockTokens", "tokens", "work"),
    "members": ("named_rows", "at", "k", "zeros_bf16", "columns", "Min", "zeroFill", "rowsLeftOfM", "slot"),
    "odd": ("_a1", "Kernel", "x__y", "X_Y", "rows_per_core_of_m__2", "rowsPerCoreOfM", "m__2", "_Size", "place"),
    "sums": ("dots", "row", "token", "kernel", "dots_sums", "row_active", "Sizes", "TilingData", "row_active"),
}
R, K, H, M = 5, 3, 33, 13


def text_of(name: str) -> str:
    if name == "twice":
        return TWICE
    return WEIGHTED.format(name=name, **dict(zip(ROLES, NAMINGS[name], strict=True)))


def specs(name: str) -> list[KernelSpec]:
    weight = "" if name == "twice" else "f16"
    return [KernelSpec(name, "bf16", weight, topk, hidden) for topk, hidden in ((0, 0), (K, H))]


@cache
def kernels() -> dict[str, HostKernel]:
    """Every naming, of any shape and specialised, in one library."""
    found: list[AscendKernel] = [
        ascend_program(parse_program(text_of(name), f"{name}.mlir"), f"{name}.mlir", spec)
        for name in (*NAMINGS, "twice")
        for spec in specs(name)
    ]
    library = build_kernels(found)
    return {kernel.spec.key: HostKernel(library, kernel) for kernel in found}


def inputs_of(kernel: HostKernel, extents: dict[str, int]) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    arrays: dict[str, Array] = {}
    for tensor in kernel.tensors:
        shape = tuple(extents[dim] for dim in tensor.dims)
        if tensor.output:
            continue
        if "i32" in str(tensor.type):
            order = rng.permutation(R * K)
            arrays[tensor.name] = np.where(order < M, order, -1).astype(np.int32)
        else:
            dtype = np.dtype(np.float16) if tensor.dims[1] == "K" else np.dtype("bfloat16")
            arrays[tensor.name] = rng.integers(-2, 3, shape).astype(dtype)
    return arrays


@pytest.mark.parametrize("name", [*NAMINGS, "twice"])
def test_any_name_makes_a_kernel_that_compiles_and_is_right(name: str) -> None:
    rows, tokens = NAMINGS[name][6:8] if name in NAMINGS else ("M", "R")
    extents = {"N": R * K, "K": K, "H": H, rows: M, tokens: R}
    for spec in specs(name):
        kernel = kernels()[spec.key]
        inputs = inputs_of(kernel, extents)
        run = kernel.run(inputs, {rows: M}, switches=NO_AUTO_SYNC, cores=3)
        assert run.clean, run.diagnostics[:2]
        program = lower(parse_program(text_of(name), name), spec, "ascendc", after="specialize")
        assert_same(run.outputs, run_program(program, inputs, {rows: M, "K": K}))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(0, 0), (8, 64), (8, 60000)])
def test_a_kernel_uses_no_word_that_is_not_reserved(program: str, shape: tuple[int, int]) -> None:
    """What is not reserved belongs to a tensor, a size or a value of the program: so no name can meet another."""
    operator, _, mode = program.partition("__")
    weight = "bf16" if mode in ("scales", "scales_bias", "probs", "padded_probs") else ""
    kernel = ascend_kernel(make_spec(operator, mode, "bf16", weight, 0 if "padded" in mode else shape[0], shape[1]))
    names = KernelNames.of(function(kernel.module))
    code = "\n".join(kernel.files.values())
    code = re.sub(r'//.*|#\w+ .*|"[^"\n]*"', "", code)
    own = {"row", "rowActive", "token", "tokenActive", "expert", "expertActive", "gradF32", "gradF32Buffer"}
    stems = [*names.tensors, *(stem[0].upper() + stem[1:] for stem in names.tensors)]
    found = set()
    for word in set(re.findall(r"\b[A-Za-z_]\w*", code)) - RESERVED - own - set(names.sizes.values()):
        family = any(re.fullmatch(rf"{stem}(?:(?:{'|'.join(SUFFIXES)})\d*)*", word) for stem in stems)
        method = re.fullmatch(rf"(?:ZeroUnnamedRowsOf|MarkNamedRowsOf|StoreUnnamedRowsOf)(?:{'|'.join(stems)})", word)
        field = re.fullmatch(r"(?:rowsPerCoreOf|rowsLeftOf)M", word)
        if not (family or method or field or kernel.source.symbol in word):
            found.add(word)
    assert {word for word in found if not word.startswith("__")} <= {"T"}


WORDS = st.sampled_from(
    ["x", "xGm", "x_rows", "xIn", "xIn2", "x2", "x_in_2", "tiling", "_", "__", "X", "xBlock", "xBlockBuffer", "f32"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, min_size=4, max_size=4, unique=True))
def test_no_two_families_meet(words: list[str]) -> None:
    fixed = {"out": "o", "dots": "s", "M": "M", "R": "R", "row": "r", "name": "any"}
    values = dict(zip(("x", "idx", "g", "w"), words, strict=True)) | fixed
    names = KernelNames.of(function(parse_program(WEIGHTED.format(**values), "any.mlir")))
    families = [{stem + s + n for s in ("", *SUFFIXES, "BlockBuffer") for n in ("", "2")} for stem in names.tensors]
    for number, family in enumerate(families):
        others = set[str]().union(*families[:number], *families[number + 1 :])
        assert {name for name in family if name[-1] != "2"} & others == set()
        assert not {name for name in family if name[-1] != "2"} & RESERVED


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("grad_y", "gradY"), ("_", "x"), ("_1", "x1"), ("1st", "x1st"), ("__a__b_", "aB"), ("GRAD", "gRAD")],
)
def test_camel(name: str, wanted: str) -> None:
    assert camel(name) == wanted
