"""Builds kernels for the host model: g++, one shared library, cached under a digest of all that goes in."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from ...errors import BuildError
from ...rendering import digest
from .emit import AscendKernel, hostrun_source

MODEL_FLAGS = ("-std=c++17", "-fwrapv", "-ffp-contract=off")
"""What the host model asks of every compilation, of generated and of hand-written kernels: integers that wrap as on the
device, and no product and sum rounded as one."""

OWN_SYMBOLS = "-fno-gnu-unique"
"""Keeps what libraries for different chips have under one name apart in one process."""

LIBRARY_FLAGS = ("-fPIC", "-shared", OWN_SYMBOLS, "-Wall", "-Wextra", "-Wno-unused-parameter")
"""The rest of the flags of a library; warnings are shown where a build fails."""


def include_dir() -> Path:
    """Folder that ``kernel_operator.h`` of the host model is in."""
    return Path(str(files("moegrad.hostmodel").joinpath("include")))


def compile_flags(chip: str) -> list[str]:
    """What a kernel needs to compile against the host model for one chip.

    ``MOEGRAD_HOST_OPT`` chooses the optimisation: -O1 unless it says otherwise. -O0 builds faster and runs slower.
    """
    optimisation = os.environ.get("MOEGRAD_HOST_OPT", "-O1")
    return [*MODEL_FLAGS, *LIBRARY_FLAGS, optimisation, f"-I{include_dir()}", f"-DMOEGRAD_CHIP={chip}"]


def compiler() -> tuple[str, ...]:
    """The C++ compiler as the words of a command: ``CXX``, such as ``ccache g++``; else g++, c++ or clang++."""
    chosen = os.environ.get("CXX", "")
    try:
        words = shlex.split(chosen)
    except ValueError as error:
        raise BuildError(f"build: CXX: cannot be read as a command, got {chosen!r}: {error}") from error
    if words:
        if shutil.which(words[0]) is None:
            raise BuildError(f"build: CXX: expected a C++17 compiler, got {chosen!r}: {words[0]} is not found")
        return tuple(words)
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            return (name,)
    raise BuildError("build: no C++17 compiler found; install g++ or set CXX")


def cache_dir() -> Path:
    """Where built libraries are kept: ``MOEGRAD_HOST_CACHE``, or ``moegrad/hostmodel`` in the user's cache folder."""
    chosen = os.environ.get("MOEGRAD_HOST_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "moegrad" / "hostmodel"


def safe_folder(folder: Path) -> Path:
    """The folder, made for this user alone; BuildError where another could put a library into it.

    What is in it gets loaded and run, so a folder that somebody else owns or can write to is not used.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise BuildError(f"build: cache folder {folder}: {error}") from error
    if found.st_uid != os.getuid():
        raise BuildError(
            f"build: cache folder {folder}: expected a folder of user {os.getuid()}, it belongs to {found.st_uid}; "
            "set MOEGRAD_HOST_CACHE to another one"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"build: cache folder {folder}: others may write to it (mode {stat.S_IMODE(found.st_mode):o}); "
            f"run chmod go-w {folder}, or set MOEGRAD_HOST_CACHE to another folder"
        )
    return folder


def build_kernels(kernels: Sequence[AscendKernel], cache: Path | None = None) -> Path:
    """The shared library with all `kernels`, which are for one chip; built once for the same text and tools.

    The work is done aside and renamed into place, so a build that fails or is interrupted leaves nothing, and
    several processes may build at once. A library of one kernel has the kernel's name in its own.
    """
    chips = {kernel.chip for kernel in kernels}
    if len(chips) != 1:
        raise BuildError(f"build: expected kernels for one chip, got {', '.join(sorted(chips)) or 'none'}")
    sources = {name: text for kernel in kernels for name, text in kernel.files.items()}
    unit = '#include "kernel_operator.h"\n' + "\n".join(hostrun_source(kernel) for kernel in kernels)
    flags = compile_flags(chips.pop())
    tools = (*compiler(), compiler_version(compiler()), _headers_digest(include_dir()))
    key = digest(unit, *(part for item in sorted(sources.items()) for part in item), *flags, *tools)
    name = f"{kernels[0].source.key}-{key}" if len(kernels) == 1 else key
    target = safe_folder(cache or cache_dir()) / f"{name}.so"
    if not target.exists():
        _compile(sources | {"hostrun.cpp": unit}, flags, target)
    return target


def _compile(sources: dict[str, str], flags: Sequence[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        command = [*compiler(), *flags, "hostrun.cpp", "-o", "kernel.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"build: {' '.join(command)}\n{done.stderr[-8000:]}")
        os.replace(folder / "kernel.so", target)


@cache
def compiler_version(command: tuple[str, ...]) -> str:
    """What a compiler says of itself."""
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def _headers_digest(folder: Path) -> str:
    return digest(
        *(text for path in sorted(folder.rglob("*.h")) for text in (path.name, path.read_text(encoding="utf-8")))
    )
