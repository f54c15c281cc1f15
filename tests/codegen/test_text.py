"""Printed programs: they parse back at every stage, here and in other MLIR tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest
from xdsl.dialects.builtin import ModuleOp

from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import parse_program
from moegrad.codegen.pipeline import PIPELINES, pass_names, stages
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.emit import emit_module
from moegrad.codegen.text import program_text

from .helpers import MODE_IDS, MODES

MLIR_OPT = next(filter(None, map(shutil.which, ("mlir-opt", "mlir-opt-19"))), "")
STAGES = [(target, name) for target in PIPELINES for name in ["program", *pass_names(target)]]
needs_mlir_opt = pytest.mark.skipif(not MLIR_OPT, reason="mlir-opt is not installed (Debian: mlir-19-tools)")


def spec_of_mode(name: str, mode: str) -> KernelSpec:
    """A specialised kernel of a mode."""
    topk = 1 if mode.startswith("padded") else 4
    return make_spec(name, mode, "bf16", "f32" if mode not in ("plain", "padded") else "", topk, 64)


@cache
def stages_of(name: str, mode: str, target: str) -> dict[str, ModuleOp]:
    """Every stage of a mode."""
    spec = spec_of_mode(name, mode)
    program = program_of(spec)
    return {"program": program} | {step: module.clone() for step, module in stages(program, spec, target)}


def mlir_opt(text: str) -> str:
    """What mlir-opt prints for a module; the test fails where it refuses it."""
    command = [MLIR_OPT, "--allow-unregistered-dialect", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("target", "step"), STAGES, ids=[f"{t}-{s}" for t, s in STAGES])
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_every_stage_parses_back(name: str, mode: str, target: str, step: str, generic: bool) -> None:
    module = stages_of(name, mode, target)[step]
    text = program_text(module, generic)
    again = parse_program(text, "again.mlir")
    assert again.is_structurally_equivalent(module)
    assert program_text(again, generic) == text


@needs_mlir_opt
@pytest.mark.parametrize(("target", "step"), STAGES, ids=[f"{t}-{s}" for t, s in STAGES])
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_mlir_opt_accepts_the_generic_form(name: str, mode: str, target: str, step: str) -> None:
    module = stages_of(name, mode, target)[step]
    printed = mlir_opt(program_text(module, generic=True))
    again = parse_program(printed, "mlir-opt.mlir")
    assert again.is_structurally_equivalent(module)


@needs_mlir_opt
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_a_program_lowers_to_the_same_kernel_after_mlir_opt(name: str, mode: str) -> None:
    spec = spec_of_mode(name, mode)
    program = program_of(spec)
    again = parse_program(mlir_opt(program_text(program, generic=True)), "mlir-opt.mlir")
    kernels = [emit_module(each, [spec], "c", python=True) for each in (again, anonymous(program))]
    assert without_digest(kernels[0]) == without_digest(kernels[1])


def without_digest(kernel: str) -> str:
    """mlir-opt sorts attributes by name, which changes the text of the program and so its digest."""
    return re.sub("(?m)^# inputs: .*$", "", kernel)


def anonymous(program: ModuleOp) -> ModuleOp:
    """A copy without the names of results, which mlir-opt does not keep; ``moe.name`` keeps those of arguments."""
    program = program.clone()
    for op in program.walk():
        for value in op.results:
            value.name_hint = None
    return program


def test_the_signature_has_one_tensor_a_line() -> None:
    text = program_text(program_of(spec_of_mode("finalize_routing_v2_grad", "scales")))
    assert text.startswith(
        'func.func @scales(\n    %grad_y: tensor<?x?x!moe.dtype<"D">> {moe.name = "grad_y", moe.dims = ["R", "H"]},\n'
        '    %expanded_row_idx: tensor<?xi32> {moe.name = "expanded_row_idx", moe.dims = ["N"]},\n'
    )
    assert (
        '\n  ) -> (\n    tensor<?x?x!moe.dtype<"D">> {moe.name = "grad_expanded_x", moe.dims = ["M", "H"]},\n' in text
    )
    assert '    tensor<?x?x!moe.dtype<"P">> {moe.name = "grad_scales", moe.dims = ["R", "K"]}\n  ) {\n' in text
    assert text.endswith("}\n")
