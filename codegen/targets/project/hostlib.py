"""Builds a project for the host model: one shared library with the host ACL, its operators and their kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ...errors import BuildError
from ...rendering import digest
from ...writer import FileWriter
from ..ascendc.hostbuild import (
    MODEL_FLAGS,
    OWN_SYMBOLS,
    cache_dir,
    compiler,
    compiler_version,
    include_dir,
    safe_folder,
)
from .emit import Project

LIBRARY = "moegrad_hostacl"
"""Name of the library, as a linker takes it."""

SOURCES = ("acl", "oprun")
"""Folders of the host model with sources that are part of every such library."""

PROJECT_SOURCES = ("op_api", "op_host", "host")
"""The same of a project; what is in op_kernel is included by those in host."""

DEVICE_NAMES = ("ascendcl", "acl_rt", "nnopbase", "opapi", "cust_opapi")
"""Libraries that clients link on a device: here, all of them are the one."""

OWN_INCLUDES = ("common", "op_api", "op_api/include", "op_host", "host")


@dataclass(frozen=True)
class HostLibrary:
    """A built library and what a client needs of it."""

    folder: Path

    @property
    def path(self) -> Path:
        """The shared library."""
        return self.folder / f"lib{LIBRARY}.so"

    @property
    def cflags(self) -> list[str]:
        """Folders of the headers: those of the host ACL, and the public ones of the operators."""
        return [f"-I{include_dir()}", f"-I{self.folder / 'include'}"]

    @property
    def libs(self) -> list[str]:
        """The library, found again when the client runs."""
        linked = f"-Wl,--push-state,--no-as-needed,-l{LIBRARY},--pop-state"  # also in front of a client's sources
        return [f"-L{self.folder}", linked, f"-Wl,-rpath,{self.folder}"]


def hostmodel_dir() -> Path:
    """Folder of the host model's sources."""
    return Path(str(files("moegrad.hostmodel").joinpath("include"))).parent


def build_host_library(
    project: Project, extra_flags: tuple[str, ...] = (), progress: Callable[[int, int], None] | None = None
) -> HostLibrary:
    """The library of a project, built once for the same sources, flags and tools.

    The work is done aside and renamed into place: a build that fails leaves nothing, and several processes may build
    at once. `progress` is told how many of how many files are compiled.
    """
    flags = (*MODEL_FLAGS, os.environ.get("MOEGRAD_HOST_OPT", "-O1"), "-fPIC", OWN_SYMBOLS, "-w", *extra_flags)
    flags = (*flags, "-DMOEGRAD_HOST", f"-DMOEGRAD_CHIP={project.spec.soc}")
    parts = [text for item in sorted(project.files.items()) for text in item]
    parts += [text for path in _model_files() for text in (path.name, path.read_text(encoding="utf-8"))]
    key = digest(*parts, *flags, *compiler(), compiler_version(compiler()))
    target = safe_folder(cache_dir()) / f"{LIBRARY}-{project.spec.soc}-{key}"
    if not target.exists():
        with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as name:
            _build(project, Path(name), flags, progress)
            _rename(Path(name) / "library", target)
    return HostLibrary(target)


def _model_files() -> Iterator[Path]:
    yield from sorted(include_dir().rglob("*.h"))
    for folder in SOURCES:
        yield from sorted((hostmodel_dir() / folder).glob("*.[hc]*"))


def _build(project: Project, folder: Path, flags: tuple[str, ...], progress: Callable[[int, int], None] | None) -> None:
    writer = FileWriter(folder / "project", owned=())
    for path, text in project.files.items():
        writer.add(path, text)
    writer.write()
    sources = [path for part in SOURCES for path in sorted((hostmodel_dir() / part).glob("*.cpp"))]
    sources += [path for part in PROJECT_SOURCES for path in sorted((writer.root / part).glob("*.cpp"))]
    sources.sort(key=lambda path: "_column" not in path.name)  # the long ones first
    includes = [f"-I{include_dir()}", *(f"-I{hostmodel_dir() / part}" for part in SOURCES)]
    includes += [f"-I{writer.root / part}" for part in OWN_INCLUDES]
    flags = (*flags, f"-ffile-prefix-map={writer.root}/=")  # the folder is gone when a message names a file
    objects = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(_compile, source, folder, [*flags, *includes]) for source in sources]
        try:
            for number, each in enumerate(work, 1):
                objects.append(each.result())
                if progress is not None:
                    progress(number, len(sources))
        except BuildError:
            pool.shutdown(cancel_futures=True)
            raise
    library = folder / "library"
    shutil.copytree(writer.root / "op_api" / "include", library / "include")
    _run([*compiler(), "-shared", *flags, *objects, "-o", str(library / f"lib{LIBRARY}.so"), "-pthread"])
    for name in DEVICE_NAMES:
        (library / f"lib{name}.so").symlink_to(f"lib{LIBRARY}.so")


def _compile(source: Path, folder: Path, flags: list[str]) -> str:
    target = str(folder / f"{source.parent.name}_{source.stem}.o")
    _run([*compiler(), *flags, "-c", str(source), "-o", target])
    return target


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"build: {' '.join(command)}\n{done.stderr[-8000:]}")


def _rename(source: Path, target: Path) -> None:
    try:
        os.replace(source, target)
    except OSError:
        if not target.exists():  # another process was first where it does
            raise
