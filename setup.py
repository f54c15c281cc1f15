"""Maps the rooms of the repository into one package and compiles the default set of kernels."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
ROOMS = {"moegrad": "moegrad"} | {
    f"moegrad.{room}": room for room in ("codegen", "templates", "generated", "cpu", "hostmodel", "tools")
}
BUILD = Path("build") / "kernels"
"""Where the default set is written, relative to the checkout."""


def room(name: str, folder: str) -> ModuleType:
    """Loads a room of this checkout under its real name, without what `moegrad/__init__` imports."""
    spec = importlib.util.spec_from_file_location(
        name, ROOT / folder / "__init__.py", submodule_search_locations=[str(ROOT / folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_compiler() -> None:
    """The compiler of this checkout, never an installed one, so that build time and run time agree."""
    parent = ModuleType("moegrad")
    parent.__path__ = []
    sys.modules["moegrad"] = parent
    for name in ("codegen", "templates", "cpu"):
        setattr(parent, name, room(f"moegrad.{name}", name))


def write_default_set() -> list[Path]:
    """The Cython sources of the set that MOEGRAD_BUILD_SET names: default, or generic for a quick build."""
    from moegrad.codegen.generate import module_files
    from moegrad.codegen.sets import SETS
    from moegrad.codegen.writer import FileWriter

    chosen = os.environ.get("MOEGRAD_BUILD_SET", "default")
    if chosen not in ("default", "generic"):
        raise SystemExit(f"MOEGRAD_BUILD_SET: expected default or generic, got {chosen!r}")
    writer = FileWriter(ROOT / BUILD)
    for path, text in module_files(SETS[chosen](), f"moegrad generate --set {chosen}").items():
        writer.add(path, text)
    writer.write(remove_stale=True)
    return [BUILD / path for path in sorted(writer.files)]


def kernel_extensions() -> list[Extension]:
    """One extension for each module and instruction-set variant, all from the same C file."""
    from Cython.Build import cythonize
    from moegrad.codegen.targets.cython.toolchain import BASE_FLAGS, ISA_FLAGS, LINK_FLAGS, isa_variants
    from moegrad.codegen.writer import FileWriter

    sources = write_default_set()
    cythonize([str(path) for path in sources], nthreads=os.cpu_count() or 1, quiet=True)
    extensions = []
    for isa in isa_variants():
        writer = FileWriter(ROOT / BUILD / isa, owned=("*.c",))
        for path in sources:
            writer.add(f"{path.stem}.c", f'#include "../{path.stem}.c"\n')
            extensions.append(
                Extension(
                    f"moegrad.generated.cython.{isa}.{path.stem}",
                    [str(BUILD / isa / f"{path.stem}.c")],
                    include_dirs=["cpu"],
                    depends=[str(path.with_suffix(".c")), *map(str, Path("cpu").glob("*.h"))],
                    extra_compile_args=[*BASE_FLAGS, *ISA_FLAGS[isa]],
                    extra_link_args=list(LINK_FLAGS),
                )
            )
        writer.write(remove_stale=True)
    return extensions


def native_extension() -> list[Extension]:
    """The hand-written part of the run time."""
    from Cython.Build import cythonize

    extension = Extension("moegrad._native", ["moegrad/_native.pyx"], include_dirs=[numpy.get_include()])
    return list(cythonize([extension], build_dir="build/cython", quiet=True))


class ParallelBuildExt(build_ext):
    """Compiles on all cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def copy_extensions_to_source(self) -> None:
        """An editable install puts kernels beside their package, whose folders git does not know."""
        for extension in self.extensions:
            package, _, _ = extension.name.rpartition(".")
            if package.startswith("moegrad.generated."):
                Path(package.removeprefix("moegrad.").replace(".", "/")).mkdir(parents=True, exist_ok=True)
        super().copy_extensions_to_source()


os.chdir(ROOT)
load_compiler()
setup(
    packages=[*ROOMS, *(f"moegrad.codegen.{p}" for p in ("dialect", "passes", "targets", "targets.cython"))],
    package_dir=ROOMS,
    package_data={
        "moegrad": ["py.typed", "*.pyi"],
        "moegrad.codegen": ["programs/*.mlir", "models.csv"],
        "moegrad.templates": ["*/*.j2"],
        "moegrad.generated": ["cython/*.pyx"],
        "moegrad.cpu": ["*.h"],
        "moegrad.hostmodel": ["include/**/*.h"],
        "moegrad.tools": ["*.j2"],
    },
    ext_modules=[*native_extension(), *kernel_extensions()],
    cmdclass={"build_ext": ParallelBuildExt},
)
