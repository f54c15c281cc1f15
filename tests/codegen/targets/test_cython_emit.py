"""The Cython target: a thin template, 64-bit offsets, copies without arithmetic, names that compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.build import build_modules
from moegrad.codegen.targets.cython.emit import TEMPLATE, emit_module
from moegrad.codegen.targets.cython.lanes import DECLARATIONS
from moegrad.codegen.targets.cython.printer import KernelPrinter

from ..helpers import DOT_THEN_SCALE, MODE_IDS, MODES, PROGRAMS, Program, names, stage

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "templates" / TEMPLATE).read_text(encoding="utf-8").splitlines()


def text_of(name: str, mode: str, data: str = "bf16", hidden: int = 0) -> str:
    """The module of one mode."""
    spec = make_spec(name, mode, data, "", 0 if "padded" not in mode else 1, hidden)
    return emit_module(program_of(spec), [spec], "c", python=True)


def test_the_template_is_layout_with_little_control() -> None:
    control = [line for line in LINES if line.lstrip().startswith("{%")]
    assert len(control) < 0.12 * len(LINES)


def test_the_template_decides_nothing() -> None:
    control = [line.strip() for line in LINES if "{%" in line and "{% raw %}" not in line]
    kinds = {match[1] for line in control if (match := re.match(r"{%-? *(\w+)", line))}
    assert kinds <= {"for", "endfor", "if", "endif"}
    assert [line for line in control if line.startswith("{% if") and " module.entry " not in line] == []
    words = " ".join(LINES)
    assert not re.search(r"\b(bf16|f16|f32|gather|scatter|bias|scales|probs|padded)\b", words)


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_offsets_are_64_bit_from_the_first_multiplication(name: str, mode: str) -> None:
    text = text_of(name, mode)
    token = text[text.index("cdef void token") : text.index("cdef int kernel")]
    wide = set(re.findall(r"(?m)^    (?:cdef )?int64_t (\w+)", token))
    factors = {factor for pair in re.findall(r"(\w+) \* (\w+)", token) for factor in pair}
    assert {factor for factor in factors if not factor.isdigit()} <= wide
    assert {"t", "row", "H"} <= wide


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_each_thread_fences_once_after_its_last_token(name: str, mode: str) -> None:
    """A fence waits for the stores before it: one a token made two slots a token take up to a fifth longer."""
    text = text_of(name, mode)
    token, kernel = text[: text.index("cdef int kernel")], text[text.index("cdef int kernel") :]
    assert "stream_fence()" not in token.replace("void stream_fence()", "")
    loop = kernel.index("\n        for t in prange(")
    assert (
        kernel.index("\n    with parallel(")
        < loop
        < kernel.index("\n        if stream_")
        < kernel.index("\n    return 0")
    )
    assert len(re.findall(r"(?m)^            stream_fence\(\)$", kernel)) == 1


@pytest.mark.parametrize(("name", "mode"), [(n, m) for n, m in MODES if m in ("plain", "padded")])
def test_a_mode_without_weights_copies_bits(name: str, mode: str) -> None:
    text = text_of(name, mode)
    assert "row_put_ahead(" in text
    assert "lanes_load" not in text


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_only_functions_in_use_are_declared(name: str, mode: str) -> None:
    text = text_of(name, mode)
    head, body = text.split("KERNELS = {}", 1)
    declared = {function for function in DECLARATIONS if re.search(rf"\b{function}\(", head)}
    used = {function for function in DECLARATIONS if re.search(rf"\b{function}\(", body)}
    assert declared == used


def test_parts_of_a_block_are_printed_where_a_row_or_its_alignment_may_leave_one() -> None:
    assert "_part(" in text_of("finalize_routing_v2_grad", "scales")
    assert "_part(" in text_of("finalize_routing_v2_grad", "scales", hidden=100)
    known = text_of("finalize_routing_v2_grad", "scales_bias", hidden=96)
    assert known.count("for j in range(0, H, 32):") == 2, "the two loops that store no row have whole blocks only"
    assert "_part(" in known, "outputs of other libraries are aligned to 16 bytes"


def test_a_slot_waits_for_one_other() -> None:
    """It must not stay: later slots would run it again, with the same results."""
    lines = [line.strip() for line in text_of("finalize_routing_v2_grad", "scales").splitlines()]
    assert [line for line in lines if line.startswith("waiting =")] == ["waiting = -1", "waiting = k", "waiting = -1"]


@pytest.mark.parametrize("data", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("mode", ["scales", "scales_bias"])
def test_rows_are_loaded_before_any_is_stored(mode: str, data: str) -> None:
    """A load between streaming stores costs up to half of the rate."""
    loops = re.findall(r"(?m)^( +)for j in range.*\n((?:\1 +.*\n)+)", text_of("finalize_routing_v2_grad", mode, data))
    assert loops
    for _, body in loops:
        calls = re.findall(r"lanes_(load|put)_", body)
        assert calls == sorted(calls)


@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_every_variable_is_declared_once_and_used(program: Program) -> None:
    text = emit_module(program.parsed(), [program.spec("bf16", "f16")], "c", python=True)
    token = text[text.index("cdef void token") : text.index("cdef int kernel")]
    declared = re.findall(r"(?m)^    cdef .+[ *](\w+)$", token)
    assert len(set(declared)) == len(declared)
    parameters = re.findall(r"(?m)^    .+[ *](\w+),$", token)
    assert set(declared) & set(parameters) == set()
    body = token[token.index('"""All slots of token t."""') :]
    assert [name for name in declared if len(re.findall(rf"\b{name}\b", body)) < 2] == []


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("specialize", "cython: the program has no plan; plan-cpu must run before it is printed"),
        ("split-inactive", "cython: the program has no plan; plan-cpu must run before it is printed"),
    ],
)
def test_the_printer_refuses_what_a_pass_should_have_done(after: str, message: str) -> None:
    module = stage(DOT_THEN_SCALE.parsed(), DOT_THEN_SCALE.spec(), after)
    with pytest.raises(LoweringError) as error:
        KernelPrinter(function(module)).source("key", "shape")
    assert str(error.value) == message


HOSTILE = """
func.func @hostile(%{0}: tensor<?x?xbf16> {{moe.dims = ["R", "H"]}}, %{1}: tensor<?xi32> {{moe.dims = ["N"]}})
    -> (tensor<?x?xbf16> {{moe.dims = ["M", "H"], moe.name = "{2}"}}) {{
  %rows = moe.repeat_rows %{0} : (tensor<?x?xbf16>) -> tensor<?x?xbf16>
  %{3} = moe.add_rows %rows, %rows : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xf32>
  %{4} = moe.mul_rows %{3}, %{3} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xbf16>
  %out = moe.scatter_rows %{4} to %{1} rows "M" : (tensor<?x?xbf16>, tensor<?xi32>) -> tensor<?x?xbf16>
  func.return %out : tensor<?x?xbf16>
}}
"""
NAMES = {
    "loops": ("k", "j", "body", "slot", "row"),
    "parameters": ("t", "num_threads", "out", "stream_out", "lead_out"),
    "functions": ("lanes", "lanes_add", "stream_fence", "lanes_mul", "lanes_zero"),
    "types": ("int32_t", "uint16_t", "prange", "int64_t", "PyCapsule_New"),
    "module": ("tensors", "sizes", "KERNELS", "TENSORS", "run"),
    "symbols": ("a", "b", "c", "K", "R"),
    "keywords": ("a", "b", "c", "for", "int"),
    "punctuation": ("a", "b", "c", "x.y", "x$-z"),
}


@pytest.mark.slow
def test_values_may_have_any_name(tmp_path: Path) -> None:
    sources = []
    for case, words in NAMES.items():
        program = parse_program(HOSTILE.format(*words), f"{case}.mlir")
        sources.append(tmp_path / f"{case}.pyx")
        sources[-1].write_text(emit_module(program, [KernelSpec("hostile", "bf16")], "c", python=True))
    build_modules(sources, tmp_path)
