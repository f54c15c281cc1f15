"""Builds generated Cython modules outside of a wheel, and loads them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from types import ModuleType

from ...errors import BuildError
from .toolchain import BASE_FLAGS, ISA_FLAGS, LINK_FLAGS, include_dir


def build_modules(sources: Sequence[Path], out: Path, isa: str = "baseline", native: bool = False) -> list[Path]:
    """Compiles ``.pyx`` files to extension modules in `out`; returns their paths in order.

    The work happens in a temporary folder and each product is renamed into place, so a build that
    fails or is interrupted leaves nothing behind. `native` tunes for this machine's processor.
    """
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        raise BuildError(f"build: no such file: {', '.join(missing)}")
    flags = [*BASE_FLAGS, *(("-march=native",) if native else ISA_FLAGS[isa])]
    workers = min(len(sources), os.cpu_count() or 1) if len(sources) > 1 else 0
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=out) as folder:
        copies = [shutil.copy(source, folder) for source in sources]
        extensions = [
            Extension(
                Path(copy).stem,
                [copy],
                include_dirs=[str(include_dir())],
                extra_compile_args=flags,
                extra_link_args=list(LINK_FLAGS),
            )
            for copy in copies
        ]
        with _captured(Path(folder) / "log") as log, log.open("a") as stream, redirect_stderr(stream):
            try:
                command = build_ext(Distribution({"ext_modules": cythonize(extensions, nthreads=workers, quiet=True)}))
                command.build_lib, command.build_temp = f"{folder}/lib", f"{folder}/tmp"
                command.parallel = os.cpu_count()
                command.ensure_finalized()
                command.run()
            except Exception as error:
                stream.flush()
                raise BuildError(f"build: {error}\n{log.read_text(errors='replace')}") from error
        return [_install(Path(folder) / "lib", Path(copy).stem, out) for copy in copies]


def load_module(path: Path) -> ModuleType:
    """The extension module of a file that `build_modules` made."""
    name = path.name.split(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BuildError(f"build: {path} is no extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def product_name(module: str) -> str:
    """File name of an extension module for this interpreter."""
    return f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"


def _install(lib: Path, module: str, out: Path) -> Path:
    target = out / product_name(module)
    os.replace(lib / target.name, target)
    return target


@contextmanager
def _captured(log: Path) -> Iterator[Path]:
    """Sends what the compilers print to a file, which a BuildError quotes."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        try:
            yield log
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
