"""Builds kernels for the host model: g++, one shared library, cached under a digest of all that goes in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from ...errors import BuildError
from ...rendering import digest
from .emit import AscendKernel, hostrun_source

FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-fno-gnu-unique",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-ffp-contract=off",
)
"""Flags of every build; warnings are shown where a build fails, and tests ask for none."""


def include_dir() -> Path:
    """Folder that ``kernel_operator.h`` of the host model is in."""
    return Path(str(files("moegrad.hostmodel").joinpath("include")))


def compile_flags(chip: str) -> list[str]:
    """What a kernel needs to compile against the host model for one chip.

    ``MOEGRAD_HOST_OPT`` chooses the optimisation: -O1 unless it says otherwise. -O0 builds faster and runs slower.
    """
    return [
        *FLAGS,
        os.environ.get("MOEGRAD_HOST_OPT", "-O1"),
        f"-I{include_dir()}",
        f"-DMOEGRAD_CHIP={chip}",
        "-DMOEGRAD_HOST_MODEL",
    ]


def compiler() -> str:
    """The C++ compiler: ``CXX``, or g++, or c++."""
    for name in (os.environ.get("CXX", ""), "g++", "c++", "clang++"):
        if name and shutil.which(name):
            return name
    raise BuildError("build: no C++17 compiler found; install g++ or set CXX")


def cache_dir() -> Path:
    """Where built libraries are kept: ``MOEGRAD_HOST_CACHE``, or a folder of this user below the temporary one."""
    chosen = os.environ.get("MOEGRAD_HOST_CACHE")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"moegrad-hostmodel-{os.getuid()}"


def build_kernels(kernels: Sequence[AscendKernel], cache: Path | None = None) -> Path:
    """The shared library with all `kernels`, which are for one chip; built once for the same text and tools.

    The work is done aside and renamed into place, so a build that fails or is interrupted leaves nothing, and
    several processes may build at once.
    """
    chips = {kernel.chip for kernel in kernels}
    if len(chips) != 1:
        raise BuildError(f"build: expected kernels for one chip, got {', '.join(sorted(chips)) or 'none'}")
    sources = {name: text for kernel in kernels for name, text in kernel.files.items()}
    unit = '#include "kernel_operator.h"\n' + "\n".join(hostrun_source(kernel) for kernel in kernels)
    flags = compile_flags(chips.pop())
    tools = (_version(compiler()), _headers_digest(include_dir()))
    key = digest(unit, *(part for item in sorted(sources.items()) for part in item), *flags, *tools)
    folder = cache or cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{key}.so"
    if not target.exists():
        _compile(sources | {"hostrun.cpp": unit}, flags, target)
    return target


def _compile(sources: dict[str, str], flags: Sequence[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        command = [compiler(), *flags, "hostrun.cpp", "-o", "kernel.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"build: {' '.join(command)}\n{done.stderr[-8000:]}")
        os.replace(folder / "kernel.so", target)


@cache
def _version(name: str) -> str:
    return subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout


def _headers_digest(folder: Path) -> str:
    return digest(
        *(text for path in sorted(folder.rglob("*.h")) for text in (path.name, path.read_text(encoding="utf-8")))
    )


__all__ = ["build_kernels", "cache_dir", "compile_flags", "compiler", "include_dir"]
