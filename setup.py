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
KERNELS = Path("build", "kernels")
"""Where the sources of the compiled set are written; nothing there is committed."""


def load_compiler() -> None:
    """The compiler of this checkout under its real name, never an installed one.

    The run time, which `moegrad/__init__.py` imports, is not built yet: an empty package stands in for it.
    """
    parent = ModuleType("moegrad")
    parent.__path__ = []
    sys.modules["moegrad"] = parent
    for room in ("codegen", "templates", "cpu"):
        name, folder = f"moegrad.{room}", ROOT / room
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        setattr(parent, room, module)


os.chdir(ROOT)
load_compiler()

from moegrad.codegen.generate import module_files  # noqa: E402
from moegrad.codegen.sets import SETS, by_module  # noqa: E402
from moegrad.codegen.targets.cython.toolchain import BASE_FLAGS, ISA_FLAGS, LINK_FLAGS, isa_variants  # noqa: E402
from moegrad.codegen.writer import FileWriter  # noqa: E402


def chosen_set() -> str:
    """The set to compile: MOEGRAD_BUILD_SET, ``default``, or ``models`` for kernels of the models' shapes too."""
    chosen = os.environ.get("MOEGRAD_BUILD_SET", "default")
    if chosen not in ("default", "models"):
        raise SystemExit(f"MOEGRAD_BUILD_SET: expected default or models, got {chosen!r}")
    return chosen


def kernel_extensions() -> list[Extension]:
    """One extension for each module and instruction-set variant; a variant differs in its flags only."""
    return [
        Extension(
            f"moegrad.generated.cython.{isa}.{module}",
            [str(KERNELS / isa / f"{module}.c")],
            include_dirs=["cpu"],
            depends=[str(KERNELS / f"{module}.c"), *map(str, Path("cpu").glob("*.h"))],
            extra_compile_args=[*BASE_FLAGS, *ISA_FLAGS[isa]],
            extra_link_args=list(LINK_FLAGS),
        )
        for isa in isa_variants()
        for module in by_module(SETS[chosen_set()]())
    ]


def write_kernels() -> None:
    """Writes the set as Cython, translates it to C, and includes that C file from each variant's own."""
    from Cython.Build import cythonize

    sources = FileWriter(KERNELS)
    for path, text in module_files(SETS[chosen_set()](), f"moegrad generate --set {chosen_set()}").items():
        sources.add(path, text)
    sources.write(remove_stale=True)
    cythonize([str(KERNELS / path) for path in sorted(sources.files)], nthreads=os.cpu_count() or 1, quiet=True)
    for isa in isa_variants():
        variant = FileWriter(KERNELS / isa, owned=("*.c",))
        for path in sources.files:
            name = Path(path).stem
            variant.add(f"{name}.c", f'#include "../{name}.c"\n')
        variant.write(remove_stale=True)


class BuildKernels(build_ext):
    """Writes the kernels first, then compiles on all cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def run(self) -> None:
        write_kernels()
        super().run()

    def copy_extensions_to_source(self) -> None:
        """An editable install puts kernels beside their package, in folders that git does not know."""
        for isa in isa_variants():
            Path("generated", "cython", isa).mkdir(parents=True, exist_ok=True)
        super().copy_extensions_to_source()


setup(
    packages=[
        *ROOMS,
        *(f"moegrad.{p.parent.as_posix().replace('/', '.')}" for p in Path("codegen").glob("*/**/__init__.py")),
    ],
    package_dir=ROOMS,
    package_data={
        "moegrad": ["py.typed", "*.pyi"],
        "moegrad.codegen": ["programs/*.mlir", "models.csv"],
        "moegrad.templates": ["**/*.j2"],
        "moegrad.generated": ["cython/*.pyx", "ascendc/*"],
        "moegrad.cpu": ["*.h"],
        "moegrad.hostmodel": ["include/**/*.h", "acl/*", "oprun/*"],
        "moegrad.tools": ["*.j2"],
    },
    ext_modules=[
        Extension(
            "moegrad._native",
            ["moegrad/_native.pyx"],
            include_dirs=[numpy.get_include(), "cpu"],
            extra_compile_args=list(BASE_FLAGS),
            extra_link_args=list(LINK_FLAGS),
        ),
        *kernel_extensions(),
    ],
    cmdclass={"build_ext": BuildKernels},
)
