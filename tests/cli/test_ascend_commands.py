"""The Ascend side of the command line: plans, files, host-model builds, verification and counters."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moegrad.codegen.errors import SpecError
from moegrad.tools import targets
from moegrad.tools.cases import Case
from moegrad.tools.cli import app
from moegrad.tools.oracle import Array
from moegrad.tools.targets import TARGETS, Outputs, Target, run_on_cpu

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ["finalize_routing_v2_grad", "--mode", "scales", "-d", "bf16", "-p", "f32", "-k", "8", "-H", "7168"]


def moegrad(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_plan_is_shown_with_its_byte_table() -> None:
    status, text = moegrad("ir", *KERNEL, "-t", "ascendc", "--after", "plan-ascend")
    assert status == 0
    assert text.startswith("// offset  bytes  count  position")
    assert "// 153600 of 188160 bytes, 34560 free" in text
    assert "moe.ascend_plan" in text


@pytest.mark.parametrize(("chip", "expected"), [("nope", "expected one of ascend910b"), ("ascend910", "DataCopyPad")])
@pytest.mark.parametrize("command", ["ir", "generate", "build"])
def test_a_chip_that_cannot_run_it_is_refused(command: str, chip: str, expected: str, tmp_path: Path) -> None:
    out = [] if command == "ir" else ["-o", str(tmp_path / "out")]
    with pytest.raises(SpecError, match=f"chip: .*{expected}"):
        moegrad(command, *KERNEL, "-t", "ascendc", "--chip", chip, *out)
    assert list(tmp_path.glob("out/*")) == []


def test_a_chip_without_the_ascend_target_is_refused() -> None:
    with pytest.raises(SpecError, match="--chip: the target cython has no chips, got 'ascend950'"):
        moegrad("ir", *KERNEL, "--chip", "ascend950")


def test_a_kernel_is_four_files(tmp_path: Path) -> None:
    status, text = moegrad("generate", *KERNEL, "-t", "ascendc", "--chip", "ascend950", "-o", str(tmp_path))
    assert status == 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".asc", ".cpp", ".h", ".h"]
    assert all("chip:     ascend950" in path.read_text() for path in tmp_path.iterdir())
    assert "4 files, 4 changed" in text


def test_a_program_file_builds_for_the_host_model(tmp_path: Path) -> None:
    source = str(ROOT / "examples" / "scale_squared.mlir")
    status, text = moegrad("build", source, "-d", "f32", "-k", "2", "-H", "40", "-t", "ascendc", "-o", str(tmp_path))
    assert status == 0
    assert f"built {tmp_path}" in text
    assert [path.suffix for path in tmp_path.iterdir()] == [".so"]


def test_the_flags_compile_a_kernel_of_ones_own(tmp_path: Path) -> None:
    status, flags = moegrad("hostmodel", "--cflags", "--chip", "ascend910_93")
    assert status == 0
    compiler = shutil.which("g++")
    assert compiler is not None
    binary = tmp_path / "add"
    source = ROOT / "examples" / "ascendc" / "vector_add_main.cpp"
    subprocess.run([compiler, *flags.split(), "-O0", str(source), "-o", str(binary)], check=True)
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "0 of 100003 elements differ" in done.stdout


def test_verify_holds_a_mode_against_the_oracle_and_prints_counters(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--cases", "1", "--operator", "token_unpermute_grad", "--mode", "padded", "--dtype", "f32"]
    status, text = moegrad("verify", "-t", "ascendc:ascend910b", *options, "--profile", "--json", str(report))
    assert status == 0, text
    assert "all agree with the oracle" in text
    assert "least row bytes" in text
    document = json.loads(report.read_text())
    assert document["passed"]
    assert document["rows"][0]["target"] == "ascendc:ascend910b"
    figures = {each["mode"]: each["figures"] for each in document["profiles"]["ascend910b"]}
    assert {mode: each["ratio"] for mode, each in figures.items()} == dict.fromkeys(figures, 1.0)
    assert set(figures) == {"plain", "scales", "scales_bias", "padded", "padded_probs"}


def flipped(case: Case) -> Outputs:
    row, weight = run_on_cpu(case)
    copy: Array = row.copy()
    if copy.size:
        copy.reshape(-1).view("u1")[0] ^= 1
    return copy, weight


def test_verify_fails_on_a_broken_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "ascendc:ascend910b", Target(flipped))
    status, text = moegrad("verify", "-t", "ascendc:ascend910b", "--cases", "2", "--mode", "plain", "--dtype", "f32")
    assert status == 1
    assert "FAILED" in text.upper()


def test_counters_are_for_the_ascend_target() -> None:
    with pytest.raises(SpecError, match="--profile: counters are for the target ascendc; got cython"):
        moegrad("verify", "--profile", "--cases", "1", "--mode", "plain", "--dtype", "f32")


def test_a_target_names_all_its_chips() -> None:
    assert targets.targets_named("ascendc") == ("ascendc:ascend910b", "ascendc:ascend910_93", "ascendc:ascend950")
    assert targets.targets_named("cython") == ("cython",)
    assert targets.targets_named("aclnn") == ("aclnn:ascend910b", "aclnn:ascend910_93", "aclnn:ascend950")
    kernels = [*targets.targets_named("cython"), *targets.targets_named("ascendc")]
    assert targets.targets_named("all") == tuple(kernels)
    assert set(TARGETS) == {*kernels, *targets.targets_named("aclnn")}
