"""`moegrad verify`: what it covers, and that it fails loudly for every way a kernel can be wrong."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from moegrad import kernels
from moegrad.codegen.errors import SpecError
from moegrad.codegen.models import shapes
from moegrad.tools import targets, verify
from moegrad.tools.cases import Case, enumerate_cases
from moegrad.tools.checking import Outcome, check
from moegrad.tools.isolation import Worker
from moegrad.tools.results import BINS, summarise
from moegrad.tools.targets import TARGETS, Combination, Outputs, Target, cpu_kernel, run_on_cpu

SCALES: dict[str, Any] = {"operator": "finalize_routing_v2_grad", "mode": "scales", "data": "f32", "weight": "f32"}
CASE = Case("finalize_routing_v2_grad", "scales", "f32", "f32", tokens=3, topk=2, hidden=40, seed=1)


def add(monkeypatch: pytest.MonkeyPatch, run: Any, **more: Any) -> None:
    monkeypatch.setitem(TARGETS, "broken", Target(run, **more))


def run_broken(**options: Any) -> verify.VerifyReport:
    return verify.verify(["broken"], 20, isolate=False, **{**SCALES, **options})


def shown(report: verify.VerifyReport, width: int = 80) -> str:
    stream = io.StringIO()
    verify.render(report, Console(file=stream, width=width))
    return stream.getvalue()


@pytest.fixture(scope="module")
def report() -> verify.VerifyReport:
    return verify.verify(cases_per_combination=2, model_shapes=False)


# --- coverage --------------------------------------------------------------------------------------------


def test_the_cpu_target_agrees_in_every_combination(report: verify.VerifyReport) -> None:
    assert report.passed, shown(report)
    assert [Combination(row.operator, row.mode, row.data, row.weight) for row in report.rows] == list(
        dict.fromkeys(Combination.of(case) for case in enumerate_cases())
    )
    assert len(report.rows) == 45
    assert all((row.cases, row.model_shapes) == (2, 0) for row in report.rows)
    assert all(row.rows_bitwise and row.variants_equal for row in report.rows)
    assert all((row.worst_error is None) == (row.weight is None) for row in report.rows)


def test_specialised_kernels_get_a_case_of_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Case] = []

    def record(case: Case) -> Outputs:
        seen.append(case)
        return run_on_cpu(case)

    add(monkeypatch, record, shapes=lambda _: ((4, 2880), (8, 7168)))
    assert run_broken().rows[0].model_shapes == 2
    assert [(case.topk, case.hidden) for case in seen[-2:]] == [(4, 2880), (8, 7168)]
    assert len({case.values for case in seen}) == 3
    (row,) = run_broken(operator="token_unpermute_grad", mode="padded_probs").rows
    assert row.model_shapes == 2
    assert all(case.is_padded for case in seen[-2:])


def test_shapes_are_those_of_the_models() -> None:
    assert targets.cpu_shapes(Combination(**SCALES)) == tuple(shapes())
    padded = targets.cpu_shapes(Combination("token_unpermute_grad", "padded", "f32", None))
    assert padded == tuple((1, hidden) for hidden in sorted({hidden for _, hidden in shapes()}))


def test_a_kernel_of_the_shape_is_chosen_where_the_build_has_one() -> None:
    built = targets._kernels(Combination(**SCALES)).specialised
    for topk, hidden in targets.cpu_shapes(Combination(**SCALES)):
        kernel = cpu_kernel(Combination(**SCALES), topk, hidden)
        assert kernel.specialised == ((topk, hidden) in built)
        assert kernel.name.endswith(f"__k{topk}__h{hidden}" if kernel.specialised else "__kany__hany")
        assert kernel.variant == kernels.usable()[0]


def test_shapes_of_the_models_are_among_the_cases() -> None:
    (row,) = verify.verify(cases_per_combination=1, **SCALES).rows
    assert row.passed, row.first_failure
    assert row.model_shapes == len(targets.cpu_shapes(Combination(**SCALES))) == row.cases - 1


@pytest.mark.slow
def test_everything_that_the_command_verifies_agrees() -> None:
    report = verify.verify(cases_per_combination=40)
    assert report.passed, shown(report)


def test_every_instruction_set_of_the_machine_is_compared(report: verify.VerifyReport) -> None:
    assert set(kernels.usable()) <= set(report.variants["cython"])
    assert "threads" in report.variants["cython"]
    used = kernels.usable()
    for variant in targets.cpu_variants().values():
        variant(CASE)
    assert kernels.usable() == used


def test_filters_and_seed_choose_the_cases() -> None:
    first = verify.verify(cases_per_combination=3, isolate=False, variants=False, seed=4, mode="scales", data="bf16")
    again = verify.verify(cases_per_combination=3, isolate=False, variants=False, seed=4, mode="scales", data="bf16")
    assert first.to_json() == again.to_json()
    assert {(row.mode, row.data) for row in first.rows} == {("scales", "bf16")}
    assert [row.weight for row in first.rows] == ["f16", "bf16", "f32"]
    assert {row.variants_equal for row in first.rows} == {None}
    assert first.variants == {"cython": ()}


def test_progress_counts_every_case() -> None:
    calls: list[tuple[int, int, str]] = []
    report = verify.verify(
        cases_per_combination=2, isolate=False, mode="plain", data="f32", progress=lambda *call: calls.append(call)
    )
    assert [done for done, _, _ in calls] == list(range(1, report.cases + 1))
    assert {total for _, total, _ in calls} == {report.cases}
    assert calls[-1][2] == "cython finalize_routing_v2_grad plain"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": ["gpu"]}, "target: expected one of cython, ascendc:.*; got 'gpu'"),
        ({"operator": "moe"}, "operator: expected one of .*, got 'moe'"),
        ({"mode": "plain", "weight": "f32"}, "nothing to verify: no mode has mode plain, P f32"),
        ({"targets": []}, "nothing to verify: no mode has a target"),
        ({"cases_per_combination": 0}, "expected at least 1 and 0, got 0 and 0"),
        ({"seed": -1}, "expected at least 1 and 0, got 8 and -1"),
    ],
)
def test_bad_choices_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        verify.verify(**arguments)


# --- it fails loudly -------------------------------------------------------------------------------------


def one_row_bit(case: Case) -> Outputs:
    row, weight = run_on_cpu(case)
    if row.size:
        row.reshape(-1).view(f"u{row.itemsize}")[row.size // 2] ^= 1
    return row, weight


def serial_sum(case: Case) -> Outputs:
    row, _ = run_on_cpu(case)
    given = case.arguments()
    x = given["expanded_x"].reshape(-1, case.hidden)
    index = given["expanded_row_idx"]
    active = (index >= 0) & (index < len(x))
    with np.errstate(all="ignore"):
        products = x[np.where(active, index, 0)] * np.repeat(given["grad_y"], case.topk, axis=0) if len(x) else 0
        sums = np.cumsum(products, axis=1, dtype=np.float32)[:, -1] if len(x) else np.zeros(case.slots, np.float32)
    return row, np.where(active, sums, np.float32(0)).reshape(given["scales"].shape)


def wrong_way_round(case: Case) -> Outputs:
    row, weight = run_on_cpu(case)
    return row[::-1], weight


def forgets_weights(case: Case) -> Outputs:
    return run_on_cpu(case)[0], None


def raises(case: Case) -> Outputs:
    raise FloatingPointError(f"no luck with {case.hidden}")


def returns_nothing(_case: Case) -> Outputs:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        (one_row_bit, {}, "row_grad: 1 of .* elements differ"),
        (serial_sum, {}, "weight_grad: .* elements differ, .* off by .* bounds"),
        (wrong_way_round, {"mode": "plain", "weight": None}, "row_grad: .* elements differ"),
        (forgets_weights, {}, "weight_grad: expected float32.*, got None"),
        (raises, {}, "FloatingPointError: no luck with "),
        (returns_nothing, {}, "TypeError: .*"),
    ],
)
def test_broken_targets_fail(monkeypatch: pytest.MonkeyPatch, run: Any, options: Any, message: str) -> None:
    shapes = ((4, 7168), (8, 7168), (2, 7168), (1, 7168), (6, 7168), (3, 7168))
    add(monkeypatch, run, shapes=lambda _: shapes)
    report = run_broken(**options)
    (row,) = report.rows
    assert not report.passed
    assert report.failures == row.failures > 0
    assert row.first_failure is not None
    text = shown(report, width=200)
    assert "FAILED" in text
    assert row.first_failure.case in text
    assert re.search(message, row.first_failure.message), row.first_failure
    decoded = json.loads(report.to_json())
    assert (decoded["passed"], decoded["failures"]) == (False, row.failures)


def test_one_flipped_bit_is_not_a_bitwise_row(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, one_row_bit)
    (row,) = run_broken().rows
    assert not row.rows_bitwise
    assert row.worst_error is not None
    assert row.worst_error < 1


def test_a_variant_with_other_bits_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, run_on_cpu, variants=lambda: {"same": run_on_cpu, "odd": one_row_bit, "ill": raises})
    report = run_broken()
    (row,) = report.rows
    assert report.variants == {"broken": ("same", "odd", "ill")}
    assert row.rows_bitwise
    assert row.variants_equal is False
    assert row.first_failure is not None
    lines = row.first_failure.message.splitlines()
    assert lines[0] == "odd: other bits in row_grad"
    assert lines[1].startswith("ill: FloatingPointError: no luck")


def test_a_kernel_broken_in_the_run_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def lazy(*_arguments: Any) -> None:
        """Stands for kernels that write nothing."""

    monkeypatch.setattr("moegrad._native.launch", lazy)
    report = verify.verify(cases_per_combination=20, isolate=False, **SCALES)
    assert not report.passed
    assert report.rows[0].variants_equal is False


def test_inputs_cannot_be_written() -> None:
    arrays = [value for value in targets._arguments(CASE).values() if isinstance(value, np.ndarray)]
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


def test_bytes_written_outside_an_output_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = targets._FUNCTIONS["finalize_routing_v2_grad"]

    def spills(**arguments: Any) -> Any:
        result = original(**arguments)
        row = arguments["out"][0]
        row.base.view(np.uint8)[-1] = 0
        return result

    monkeypatch.setitem(targets._FUNCTIONS, "finalize_routing_v2_grad", spills)
    with pytest.raises(RuntimeError, match="row_grad: bytes outside the output were written"):
        targets.run_guarded(CASE, kernels.usable()[0], 1)


# --- a process of its own --------------------------------------------------------------------------------

CRASHERS = """
import os, signal, sys, time
from moegrad.tools.targets import Target, run_on_cpu

def crash(case):
    if case.tokens == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return run_on_cpu(case)

def leave(case):
    print("printed by a kernel")
    print("out of patience", file=sys.stderr)
    os._exit(3)

def hang(case):
    time.sleep(60)
"""


@pytest.fixture
def crashers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "moegrad_crashers.py").write_text(CRASHERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("moegrad_crashers")
    del sys.modules["moegrad_crashers"]


def test_a_crash_is_the_failure_of_its_case(crashers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, crashers.crash)
    report = verify.verify(["broken"], 10, **SCALES)
    (row,) = report.rows
    assert 0 < row.failures < row.cases == 10
    assert row.first_failure is not None
    assert row.first_failure.message.startswith("crashed with SIGSEGV")
    assert "__t1__" in row.first_failure.case


def test_an_exit_and_a_hang_are_failures_too(crashers: Any) -> None:
    with Worker(seconds=15) as worker:
        left = worker.check(Target(crashers.leave), CASE, False)
        assert left.message == "ended with status 3: out of patience"
        start = time.monotonic()
        hung = worker.check(Target(crashers.hang), CASE, False)
        assert hung.message == "no answer within 15 s"
        assert time.monotonic() - start < 30
        assert worker.check(Target(run_on_cpu), CASE, False) == check(Target(run_on_cpu), CASE, False)


def test_the_child_ends_with_its_worker() -> None:
    with Worker() as worker:
        worker.check(Target(run_on_cpu), CASE, False)
        process = worker._process
        assert process is not None
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL


def test_a_script_without_a_main_guard_may_verify(tmp_path: Path) -> None:
    code = (
        "from moegrad.tools.verify import verify; report = verify(cases_per_combination=1, mode='plain', data='f32');"
        "print(report.passed, report.cases)"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith("True ")


# --- the report ------------------------------------------------------------------------------------------


def test_json_has_the_documented_shape(report: verify.VerifyReport) -> None:
    decoded = json.loads(report.to_json())
    assert list(decoded) == [
        "schema", "passed", "seed", "cases", "failures", "worst_error", "bins", "variants", "environment", "rows",
    ]  # fmt: skip
    assert decoded["schema"] == 1
    assert decoded["passed"] is True
    assert decoded["bins"] == list(BINS)
    assert decoded["cases"] == sum(row["cases"] for row in decoded["rows"])
    attributes = {field.name for field in dataclasses.fields(report.rows[0])} | {"passed"}
    assert all(set(row) == attributes for row in decoded["rows"])
    assert set(decoded["environment"]) == {"versions", "variant", "threads", "cache", "kernels"}
    machine = (os.uname().nodename, str(Path.home()), str(Path(sys.prefix)))
    assert not any(name in report.to_json() for name in machine)


def test_infinite_errors_are_valid_json() -> None:
    outcome = Outcome("case", True, float("inf"), True, "weight_grad: infinite")
    row = summarise("t", Combination("o", "m", "f32", "f32"), [outcome], 0, True)
    report = verify.VerifyReport(0, {"t": ()}, {}, (row,))
    assert row.histogram[-1] == 1
    assert json.loads(report.to_json())["rows"][0]["worst_error"] == "inf"
    assert "inf of its bound" in shown(report)


def test_histogram_counts_every_case_with_weights(report: verify.VerifyReport) -> None:
    for row in report.rows:
        assert sum(row.histogram) == (row.cases if row.weight else 0)
        assert row.histogram[-1] == 0
    outcomes = [Outcome(str(error), True, error, True, "") for error in (0.0, 0.01, 1 / 32, 0.04, 1.0, 1.01)]
    row = summarise("t", Combination("o", "m", "f32", "f32"), outcomes, 0, True)
    assert row.histogram == (1, 2, 1, 0, 0, 0, 1, 1)


def test_nothing_verified_is_not_passed() -> None:
    assert not verify.VerifyReport(0, {}, {}, ()).passed


def test_tables_fit_a_narrow_terminal(report: verify.VerifyReport) -> None:
    text = shown(report)
    assert max(map(len, text.splitlines()[:-1])) <= 80
    assert "cython: token_unpermute_grad" in text
    assert "all agree with the oracle" in text
    assert text.count(" ok ") == 45


def test_verify_on_shows_progress() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    assert verify.verify_on(console, cases_per_combination=1, mode="plain", isolate=False).passed
    assert "cython" in stream.getvalue()
