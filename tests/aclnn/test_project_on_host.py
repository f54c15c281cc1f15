"""A written project built with CMake: on the host it runs its own tests, without a toolkit it says what it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MOEGRAD = Path(sys.executable).with_name("moegrad")


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND")} | environment
    env["PATH"] = f"{MOEGRAD.parent}{os.pathsep}{env['PATH']}"
    return subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project for bf16 rows and fp32 weights, with kernels of their own for one small shape."""
    target = tmp_path_factory.mktemp("project") / "operators"
    options = ("--soc", "ascend910b", "--topk", "3", "--hidden", "40", "--dtype", "bf16", "--weight-dtype", "f32")
    done = run(MOEGRAD, "generate", "--project", target, *options, cwd=target.parent)
    assert done.returncode == 0, done.stderr
    assert "its README.md says how to build it" in done.stdout
    yield target
    shutil.rmtree(target)


def test_cmake_builds_the_host_library_and_its_tests_pass(folder: Path) -> None:
    configured = run("cmake", "-S", ".", "-B", "build_host", "-DMOEGRAD_TARGET=host", cwd=folder)
    assert configured.returncode == 0, configured.stderr
    built = run("cmake", "--build", "build_host", "--parallel", "2", cwd=folder)
    assert built.returncode == 0, built.stdout + built.stderr
    tested = run("ctest", "--test-dir", "build_host", "--output-on-failure", cwd=folder)
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"100% tests passed.* out of 3", tested.stdout)
    own = run(folder / "build_host" / "tests" / "test_finalize_routing_v2_grad", cwd=folder)
    assert "ok    bf16_f32 strided, 2 tokens, topK 3, hidden 40: rows" in own.stdout
    assert own.stdout.endswith("ok    nothing leaks\n0 failures\n")


def test_without_a_toolkit_the_package_says_what_it_needs(folder: Path) -> None:
    done = run("cmake", "-S", ".", "-B", "build_npu", "-DMOEGRAD_TARGET=npu", cwd=folder)
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert "MOEGRAD_TARGET=npu needs the Ascend toolkit, got ASCEND_CANN_PACKAGE_PATH=''" in text
    assert "Source its set_env.sh" in text
    assert "-DMOEGRAD_TARGET=host builds the same sources for the host model" in text


def test_an_unknown_target_is_refused(folder: Path) -> None:
    done = run("cmake", "-S", ".", "-B", "build_other", "-DMOEGRAD_TARGET=gpu", cwd=folder)
    assert done.returncode != 0
    assert "MOEGRAD_TARGET: expected npu or host, got 'gpu'" in done.stderr


def test_the_build_script_needs_the_environment(folder: Path) -> None:
    done = run("bash", "build.sh", cwd=folder)
    assert done.returncode == 1
    assert "ASCEND_HOME_PATH is not set; source the toolkit's set_env.sh first" in done.stderr


def test_a_fresh_project_is_known_as_fresh_and_a_changed_file_is_named(folder: Path) -> None:
    options = ("--soc", "ascend910b", "--topk", "3", "--hidden", "40", "-d", "bf16", "-p", "f32", "--check")
    assert run(MOEGRAD, "generate", "--project", folder, *options, cwd=folder).returncode == 0
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(text + "more\n", encoding="utf-8")
    done = run(MOEGRAD, "generate", "--project", folder, *options, cwd=folder)
    readme.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert "README.md: differs" in done.stdout


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    done = run(MOEGRAD, "generate", "--project", tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert "holds other files; expected an empty folder, or one that --project wrote" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_operator_project_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    kept = {"CMakeLists.txt": "project(mine)\n", "op_kernel/mine.h": "// mine\n", "op_api/mine.h": "// mine\n"}
    for path, text in kept.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    done = run(MOEGRAD, "generate", "--project", tmp_path, "-d", "bf16", "-p", "bf16", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds other files" in done.stderr
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == kept


def test_a_file_of_ones_own_in_a_project_stays_and_kernels_of_other_options_go(tmp_path: Path) -> None:
    options = ("--soc", "ascend910b", "-p", "bf16")
    assert run(MOEGRAD, "generate", "--project", "ops", *options, "-d", "bf16", cwd=tmp_path).returncode == 0
    mine = tmp_path / "ops" / "op_kernel" / "mine.h"
    mine.write_text("// mine\n", encoding="utf-8")
    old = tmp_path / "ops" / "op_kernel" / "finalize_routing_v2_grad__plain__bf16__kany__hany.h"
    assert old.exists()
    assert run(MOEGRAD, "generate", "--project", "ops", *options, "-d", "f16", cwd=tmp_path).returncode == 0
    assert mine.exists()
    assert not old.exists()
    done = run(MOEGRAD, "generate", "--launch", "ops", cwd=tmp_path)
    assert "expected an empty folder, or one that --launch wrote" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--project", "DIR", "finalize_routing_v2_grad"), "a project takes --soc, --model"),
        (("--project", "DIR", "--launch", "DIR"), "give one of --project and --launch"),
        (("--project", "DIR", "--chip", "ascend950"), "a project takes --soc, --model"),
        (("--set", "models", "--soc", "ascend950"), "--soc: is for --project and --launch, got 'ascend950'"),
        (("--project", "DIR", "--dtype", "f8"), "--dtype: dtype: expected one of f16, bf16, f32, got 'f8'"),
    ],
)
def test_options_that_contradict_each_other(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    named = [str(tmp_path / "new") if each == "DIR" else each for each in arguments]
    done = run(MOEGRAD, "generate", *named, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_hostacl_needs_to_be_told_what_to_print(tmp_path: Path) -> None:
    done = run(MOEGRAD, "hostacl", cwd=tmp_path)
    assert done.returncode == 2
    assert "hostacl: give --cflags, --libs, --library or --sources" in done.stderr
