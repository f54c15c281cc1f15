"""ops, ir, generate and build: what they print, and one clear line with exit status 2 for a user's mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from moegrad.codegen import __version__
from moegrad.codegen.generate import kernel_files, program_of
from moegrad.codegen.operators import OPERATORS, make_spec
from moegrad.codegen.parsing import parse_program
from moegrad.codegen.pipeline import PIPELINES, lower, pass_names
from moegrad.codegen.sets import model_set, reference_set
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.build import load_module, product_name
from moegrad.codegen.text import program_text
from moegrad.tools import cli

ROOT = Path(__file__).parents[2]
SQUARED = ROOT / "examples" / "scale_squared.mlir"
MODES = [(name, mode.name) for name, operator in OPERATORS.items() for mode in operator.modes]
IDS = [f"{name}-{mode}" for name, mode in MODES]
STAGES = [(target, after) for target in PIPELINES for after in ["program", *pass_names(target), ""]]
SCALES = ["finalize_routing_v2_grad", "--mode", "scales"]


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str


Moegrad = Callable[..., Result]


@pytest.fixture
def moegrad(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Moegrad:
    """Runs the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["moegrad", *map(str, arguments)])
        status = 0
        try:
            cli.main()
        except SystemExit as ending:
            status = int(ending.code or 0)
        printed = capsys.readouterr()
        return Result(status, printed.out, printed.err)

    return run


def refused(result: Result) -> str:
    """The message of a refusal, which is all that is printed."""
    assert result.status == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    assert result.err.startswith("error: ")
    return result.err.removeprefix("error: ").rstrip("\n")


def without_comments(text: str) -> str:
    """A program without the comments before it: the plan of an Ascend kernel comes with its table of buffers."""
    return "".join(line for line in text.splitlines(keepends=True) if line.strip() and not line.startswith("//"))


def listing(folder: Path) -> list[str]:
    """Names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_version(moegrad: Moegrad) -> None:
    assert moegrad("--version") == Result(0, f"{__version__}\n", "")


def test_ops_lists_what_exists(moegrad: Moegrad) -> None:
    result = moegrad("ops")
    assert result.status == 0
    for name, mode in MODES:
        assert name in result.out
        assert mode in result.out
    assert "target cython: passes specialize, legalize-precision, fuse-slots, split-inactive, plan-cpu" in result.out
    assert "token_unpermute_grad probs runs the kernel of finalize_routing_v2_grad scales" in result.out
    assert "gpt-oss-120b" in result.out


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("target", "after"), STAGES, ids=[f"{t}-{a or 'end'}" for t, a in STAGES])
@pytest.mark.parametrize(("name", "mode"), MODES, ids=IDS)
def test_ir_prints_every_mode_after_every_pass(
    moegrad: Moegrad, name: str, mode: str, target: str, after: str, generic: bool
) -> None:
    topk = 1 if mode.startswith("padded") else 4
    result = moegrad(
        *("ir", name, "--mode", mode, "--dtype", "bf16", "--topk", str(topk), "--hidden", "64"),
        *("--target", target),
        *(["--after", after] if after else []),
        *(["--generic"] if generic else []),
    )
    spec = make_spec(name, mode, "bf16", "", topk, 64)
    program = program_of(spec)
    expected = program if after == "program" else lower(program, spec, target, after)
    assert (result.status, result.err) == (0, "")
    assert without_comments(result.out) == program_text(expected, generic)
    parse_program(result.out, "ir.mlir")


def test_ir_of_a_file(moegrad: Moegrad) -> None:
    result = moegrad("ir", SQUARED, "--dtype", "f16", "-p", "f32", "--after", "specialize")
    assert result.status == 0
    assert "func.func @scale_squared__f16_f32__kany__hany(" in result.out


def test_dtypes_have_aliases(moegrad: Moegrad) -> None:
    short = moegrad("ir", *SCALES, "-d", "f16", "-p", "f32")
    assert moegrad("ir", *SCALES, "--dtype", "float16", "--weight-dtype", "fp32") == short
    assert short.status == 0


REFERENCE = ["--set", "reference", "--target", "cython", "-o", "out"]
OPERATORS_KNOWN = "token_unpermute_grad, finalize_routing_v2_grad"
REFUSED: dict[str, tuple[list[str | Path], str]] = {
    "operator": (["ir", "moe"], f"source: expected one of {OPERATORS_KNOWN}, or a .mlir file; got 'moe'"),
    "no-mode": (
        ["ir", "token_unpermute_grad"],
        "--mode: token_unpermute_grad needs one of plain, probs, padded, padded_probs",
    ),
    "mode": (
        ["ir", "finalize_routing_v2_grad", "-m", "probs"],
        "mode: finalize_routing_v2_grad has the modes plain, scales, scales_bias; got 'probs'",
    ),
    "dtype": (["ir", *SCALES, "-d", "f64"], "dtype: expected one of f16, bf16, f32, got 'f64'"),
    "weight-dtype": (["ir", *SCALES, "-p", "i8"], "dtype: expected one of f16, bf16, f32, got 'i8'"),
    "no-weights": (
        ["ir", "token_unpermute_grad", "-m", "plain", "-p", "f32"],
        "weight dtype: token_unpermute_grad plain has no weights, got 'f32'",
    ),
    "topk-of-padded": (
        ["ir", "token_unpermute_grad", "-m", "padded", "-k", "2"],
        "topk: token_unpermute_grad padded has one slot a row, got 2",
    ),
    "pass": (
        ["ir", *SCALES, "--after", "inline"],
        "pass: target cython has the passes specialize, legalize-precision, fuse-slots, split-inactive, plan-cpu; "
        "got 'inline'",
    ),
    "mode-of-a-file": (["ir", SQUARED, "-m", "plain"], "--mode: a program file has no modes, got 'plain'"),
    "set": (["generate", "--set", "all"], "--set: expected one of reference, default, models; got 'all'"),
    "two-requests": (
        ["generate", "--set", "models", "--model", "dbrx"],
        "generate: give one of an operator or file, --model, --set",
    ),
    "isa": (["build", *SCALES, "--isa", "sse9"], "--isa: expected one of baseline, avx2, avx512; got 'sse9'"),
    "build-missing": (["build", "none.pyx"], "build: no such file: none.pyx"),
    "build-operator": (["build", "moe"], f"source: expected one of {OPERATORS_KNOWN}, or a .mlir file; got 'moe'"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_a_mistake_is_one_clear_line(moegrad: Moegrad, tmp_path: Path, case: str) -> None:
    arguments, message = REFUSED[case]
    assert refused(moegrad(*arguments)) == message
    assert [name for name in listing(tmp_path) if name != "kernels" or listing(tmp_path / name)] == []


def test_an_unknown_model_lists_the_known(moegrad: Moegrad) -> None:
    message = refused(moegrad("generate", "--model", "gpt-5"))
    assert message.startswith("model: expected one of llama-4-scout, ")
    assert message.endswith("; got 'gpt-5'")


def test_a_program_without_weights_or_slots_refuses_their_options(moegrad: Moegrad, tmp_path: Path) -> None:
    path = tmp_path / "double.mlir"
    path.write_text(
        'func.func @double(%x: tensor<?x?xf32> {moe.dims = ["R", "H"]})\n'
        '    -> (tensor<?x?xf32> {moe.dims = ["R", "H"]}) {\n'
        "  %y = moe.add_rows %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>\n"
        "  func.return %y : tensor<?x?xf32>\n}\n"
    )
    assert refused(moegrad("ir", path, "-p", "f16")) == f"--weight-dtype: {path} has no !moe.dtype<\"P\">, got 'f16'"
    assert refused(moegrad("ir", path, "-k", "2")) == f"--topk: {path} has no slots, got 2"
    assert moegrad("ir", path).status == 0


@pytest.mark.parametrize("command", ["ir", "generate", "build"])
def test_a_wrong_file_gets_a_located_error(moegrad: Moegrad, tmp_path: Path, command: str) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(SQUARED.read_text().replace("moe.scale_rows %once", "moe.scale_row %once"))
    message = refused(moegrad(command, path))
    assert message.startswith(f"{path}:11:")
    assert "Operation moe.scale_row is not registered\n" in message
    assert message.endswith("^")


def test_a_file_that_cannot_be_lowered_gets_a_located_error(moegrad: Moegrad, tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(SQUARED.read_text().replace('["R", "H"]', '["E", "H"]'))
    assert refused(moegrad("generate", path)) == (
        f"{path}:9:3: fuse-slots: grad of dimensions (E, H) has no row for a token or a slot; "
        "gather its rows by an index"
    )


def test_a_missing_file(moegrad: Moegrad) -> None:
    message = refused(moegrad("ir", "none.mlir"))
    assert message == "none.mlir: cannot read the program: [Errno 2] No such file or directory: 'none.mlir'"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(moegrad: Moegrad, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "Permission denied" in refused(moegrad("generate", *SCALES, "-o", "closed/kernels"))


def test_a_file_in_the_place_of_the_folder(moegrad: Moegrad, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert "taken" in refused(moegrad("generate", *SCALES, "-o", "taken"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["ir"],
        ["ir", *SCALES, "--topk", "-1"],
        ["ir", *SCALES, "--topk", "x"],
        ["ir", *SCALES, "--target", "cuda"],
        ["x"],
    ],
    ids=["no-source", "negative", "no-number", "target", "command"],
)
def test_usage_errors(moegrad: Moegrad, arguments: list[str]) -> None:
    result = moegrad(*arguments)
    assert result.status == 2
    assert "Usage: " in result.err
    assert "Traceback" not in result.err


def test_generate_a_kernel(moegrad: Moegrad, tmp_path: Path) -> None:
    arguments = ["generate", *SCALES, "--dtype", "f16", "--topk", "4", "--hidden", "2880", "-o", "out"]
    name = "finalize_routing_v2_grad__scales__f16_f16__k4__h2880.pyx"
    assert moegrad(*arguments) == Result(0, f"wrote out/{name}\n1 files, 1 changed\n", "")
    assert listing(tmp_path / "out") == [name]
    assert moegrad(*arguments) == Result(0, "1 files, 0 changed\n", "")
    spec = KernelSpec.parse(name.removesuffix(".pyx"))
    assert {name: (tmp_path / "out" / name).read_text()} == kernel_files([spec])


def test_the_command_of_the_header_writes_the_same_file(moegrad: Moegrad, tmp_path: Path) -> None:
    for spec in (reference_set()[1], make_spec("token_unpermute_grad", "padded", "f32")):
        (text,) = kernel_files([spec]).values()
        command = next(line for line in text.splitlines() if line.startswith("# rewrite:")).split()[2:]
        assert command[0] == "moegrad"
        assert moegrad(*command[1:], "-o", "out").status == 0
        assert (tmp_path / "out" / f"{spec.key}.pyx").read_text() == text


def test_generate_from_a_file(moegrad: Moegrad, tmp_path: Path) -> None:
    result = moegrad("generate", SQUARED, "-d", "f16", "-k", "3")
    assert result.status == 0
    name = "scale_squared__f16_f16__k3__hany.pyx"
    assert listing(tmp_path / "kernels") == [name]
    text = (tmp_path / "kernels" / name).read_text()
    assert "# rewrite:  moegrad generate scale_squared.mlir --dtype f16 --weight-dtype f16 --topk 3\n" in text
    assert str(ROOT) not in text


def test_generate_takes_the_sizes_that_a_file_fixes(moegrad: Moegrad, tmp_path: Path) -> None:
    path = tmp_path / "fixed.mlir"
    path.write_text(
        SQUARED.read_text()
        .replace("%grad: tensor<?x?x!D>", "%grad: tensor<?x64x!D>")
        .replace("moe.repeat_rows %grad : (tensor<?x?x!D>)", "moe.repeat_rows %grad : (tensor<?x64x!D>)")
    )
    assert moegrad("generate", path).out.startswith("wrote kernels/scale_squared__bf16_bf16__kany__h64.pyx\n")
    message = "specialize: the program fixes H = 64, asked for 65"
    assert refused(moegrad("generate", path, "-H", "65")) == message


def test_generate_for_a_model(moegrad: Moegrad, tmp_path: Path) -> None:
    result = moegrad("generate", "--model", "gpt-oss-20b", "-o", "out")
    modules = {spec.module for spec in model_set("gpt-oss-20b")}
    assert result.status == 0
    assert set(listing(tmp_path / "out")) == {f"{module}.pyx" for module in modules}
    assert result.out.endswith(f"{len(modules)} files, {len(modules)} changed\n")


def test_check_finds_the_committed_reference_set_fresh(moegrad: Moegrad) -> None:
    result = moegrad("generate", "--check")
    assert (result.status, result.err) == (0, "")
    assert result.out.endswith(" files are fresh\n")
    count = len(reference_set())
    assert moegrad("generate", "--check", "--target", "cython") == Result(0, f"{count} files are fresh\n", "")


def test_check_says_what_is_not_fresh_and_writes_nothing(moegrad: Moegrad, tmp_path: Path) -> None:
    assert moegrad("generate", *REFERENCE).status == 0
    first, second, *_ = listing(tmp_path / "out")
    (tmp_path / "out" / first).unlink()
    (tmp_path / "out" / second).write_text("changed\n")
    (tmp_path / "out" / "zz_old.pyx").write_text("old\n")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    result = moegrad("generate", *REFERENCE, "--check")
    assert result == Result(1, f"out/{first}: missing\nout/{second}: differs\nout/zz_old.pyx: stale\n", "")
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    result = moegrad("generate", *REFERENCE)
    assert result.out == (
        f"wrote out/{first}\nwrote out/{second}\nremoved out/zz_old.pyx\n{len(reference_set())} files, 3 changed\n"
    )
    assert moegrad("generate", *REFERENCE, "--check").status == 0


def test_check_of_one_kernel_looks_at_no_other_file(moegrad: Moegrad, tmp_path: Path) -> None:
    moegrad("generate", *SCALES, "-o", "out")
    (tmp_path / "out" / "other.pyx").write_text("mine\n")
    assert moegrad("generate", *SCALES, "-o", "out", "--check") == Result(0, "1 files are fresh\n", "")
    assert moegrad("generate", *SCALES, "-o", "none", "--check").status == 1
    assert not (tmp_path / "none").exists()


def test_build_a_folder_of_sources(moegrad: Moegrad, tmp_path: Path) -> None:
    (tmp_path / "tiny.pyx").write_text("# cython: language_level=3\ndef answer():\n    return 42\n")
    result = moegrad("build", ".", "-o", "built")
    assert result.status == 0
    assert f"built built/{product_name('tiny')}\n" in result.out
    assert load_module(tmp_path / "built" / product_name("tiny")).answer() == 42


def test_build_a_program_file(moegrad: Moegrad, tmp_path: Path) -> None:
    result = moegrad("build", SQUARED, "-d", "f32", "-o", "built")
    assert result.status == 0
    key = "scale_squared__f32_f32__kany__hany"
    assert listing(tmp_path / "built") == [product_name(key), f"{key}.pyx"]
    assert callable(load_module(tmp_path / "built" / product_name(key)).run)


def test_build_an_empty_folder(moegrad: Moegrad) -> None:
    assert refused(moegrad("build", ".")) == "build: no .pyx files in ."


def test_the_console_script() -> None:
    script = Path(sys.executable).with_name("moegrad")
    command = [str(script)] if script.exists() else [sys.executable, "-c", "from moegrad.tools.cli import main; main()"]
    done = subprocess.run([*command, "ir", "moe"], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 2
    assert done.stderr.startswith("error: source: expected one of ")
    assert done.stdout == ""
