"""The wheel: what it holds, and that a kernel runs from it without the compiler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from moegrad import codegen

ROOT = Path(__file__).resolve().parent.parent
COMPILER = ("xdsl", "jinja2", "Cython", "rich", "typer", "setuptools")

RUN_ONE_KERNEL = f"""
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {COMPILER!r}:
            raise ImportError(f"{{name}} is not for the run time")

sys.meta_path.insert(0, Refuse())
import numpy as np
import moegrad
print(moegrad.__file__)
grad = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
out, none = moegrad.finalize_routing_v2_grad(grad, np.array([1, 3, 0, 2], np.int32))
assert out[:, 0].tolist() == [3.0, 1.0, 4.0, 2.0], out
"""


def build_wheel(folder: Path, kernels: str) -> Path:
    """A wheel by pip, in an isolated build like a user's."""
    environment = dict(os.environ, MOEGRAD_BUILD_SET=kernels)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("moegrad-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), "default")


def test_a_wheel_has_one_top_level_name(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names == {"moegrad", "moegrad-0.1.0.dist-info"}


@pytest.mark.parametrize(
    "path",
    [
        "moegrad/py.typed",
        "moegrad/codegen/programs/scales.mlir",
        "moegrad/codegen/models.csv",
        "moegrad/templates/cython/module.pyx.j2",
        "moegrad/templates/project/op_host/tiling.cpp.j2",
        "moegrad/templates/project/CMakeLists.txt.j2",
        "moegrad/hostmodel/include/acl/acl.h",
        "moegrad/hostmodel/acl/memory.cpp",
        "moegrad/hostmodel/oprun/oprun.h",
        "moegrad/generated/contract.py",
        "moegrad/cpu/moegrad_lanes.h",
        "moegrad/generated/cython/finalize_routing_v2_grad__scales__bf16_f32__k8__h7168.pyx",
        "moegrad-0.1.0.dist-info/licenses/LICENSE",
    ],
)
def test_a_wheel_carries(wheel: Path, path: str) -> None:
    assert path in zipfile.ZipFile(wheel).namelist()


def test_a_wheel_has_each_kernel_module_in_each_variant(wheel: Path) -> None:
    found = re.findall(r"generated/cython/(\w+)/(\w+)\.[^/]*\.so", "\n".join(zipfile.ZipFile(wheel).namelist()))
    variants = {variant for variant, _ in found}
    assert "baseline" in variants
    for variant in variants:
        assert len({name for other, name in found if other == variant}) == 33


def test_a_kernel_runs_from_a_wheel_without_the_compiler(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    command = [sys.executable, "-c", RUN_ONE_KERNEL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


def test_the_version_is_one() -> None:
    import moegrad

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == codegen.__version__ == moegrad.__version__


def test_a_source_distribution_carries_what_a_build_needs(tmp_path: Path) -> None:
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    import tarfile

    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as stream:
        names = {name.partition("/")[2] for name in stream.getnames()}
    parts = [f"moegrad/{path.name}" for path in (ROOT / "moegrad").glob("*.pxi")]
    assert len(parts) == 4
    assert {"moegrad/_native.pyx", *parts, "cpu/moegrad_kernel.h", "codegen/programs/plain.mlir"} <= names
    assert not [name for name in names if name.endswith(".so") or name.startswith("build/")]


@pytest.mark.slow
def test_the_default_wheel_is_small(tmp_path: Path) -> None:
    assert build_wheel(tmp_path, "models").stat().st_size < 10e6
