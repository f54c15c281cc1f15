"""Which toolchains this machine has, and what each of them enables."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    name: str
    enables: str
    found: str
    """Version or place; empty where it is missing."""
    required: bool


def _program(*names: str, version: str = "--version") -> str:
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        done = subprocess.run([path, version], capture_output=True, text=True, check=False, timeout=30)
        lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if "version" in line.lower()]
        return (lines or (done.stdout or done.stderr).splitlines() or [name])[0].strip()
    return ""


def _package(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    if importlib.util.find_spec(name) is None:
        return ""
    try:
        return version(name)
    except PackageNotFoundError:
        return "present"


def _headers() -> str:
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return "Python.h" if header.is_file() else ""


def _openmp() -> str:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return ""
    command = [compiler, "-fopenmp", "-x", "c", "-E", "-dM", "-"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=30)
    return next((line.split()[-1] for line in done.stdout.splitlines() if "_OPENMP" in line), "")


def _variants() -> str:
    from .. import _native

    return ", ".join(_native.cpu_variants())


def _toolkit() -> str:
    home = os.environ.get("ASCEND_HOME_PATH", "")
    return home if home and Path(home).is_dir() else ""


_LOOKED_FOR: tuple[tuple[str, str, Callable[[], str], bool], ...] = (
    ("C compiler", "compiling Cython kernels", lambda: _program(os.environ.get("CC", "cc"), "gcc"), True),
    ("Python headers", "compiling Cython kernels", _headers, True),
    ("OpenMP", "kernels on several threads", _openmp, True),
    ("xdsl", "the compiler", lambda: _package("xdsl"), True),
    ("cython", "the CPU target", lambda: _package("cython"), True),
    ("jinja2", "templates, the HTML report", lambda: _package("jinja2"), True),
    ("CPU variants", "instruction sets this processor runs", _variants, True),
    (
        "C++ compiler",
        "Ascend C kernels and operator packages on the host model",
        lambda: _program(os.environ.get("CXX", "c++"), "g++"),
        False,
    ),
    ("mlir-opt", "tests of the generic form", lambda: _program("mlir-opt", "mlir-opt-19"), False),
    ("Ascend toolkit", "building for a device (ASCEND_HOME_PATH)", _toolkit, False),
    ("cmake", "operator projects, on the host and for a device", lambda: _program("cmake"), False),
    ("torch", "tests of the DLPack path and of the PyTorch binding", lambda: _package("torch"), False),
    ("numba", "a peer in benchmarks", lambda: _package("numba"), False),
    ("matplotlib", "plots", lambda: _package("matplotlib"), False),
)


def examine() -> list[Finding]:
    """Everything that was looked for, required things first."""
    return [Finding(name, enables, look(), required) for name, enables, look, required in _LOOKED_FOR]
