"""Generates sources: specs in, files out, for every target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from xdsl.dialects.builtin import ModuleOp

from .chips import DEFAULT_CHIP
from .operators import program_mode
from .parsing import builtin_program
from .sets import by_module
from .spec import ANY, KernelSpec
from .targets.ascendc.emit import AscendKernel, emit_kernel
from .targets.cython.emit import emit_module


@cache
def _program(name: str) -> ModuleOp:
    return builtin_program(name)


def program_of(spec: KernelSpec) -> ModuleOp:
    """The program of an operator's mode."""
    mode = program_mode(spec.program)
    assert mode is not None, spec.program
    return _program(mode.program)


def kernel_files(specs: Iterable[KernelSpec]) -> dict[str, str]:
    """One ``.pyx`` for each kernel, with a Python entry: file name -> text."""
    return {f"{spec.key}.pyx": emit_module(program_of(spec), [spec], command_for(spec), True) for spec in sorted(specs)}


def module_files(specs: Iterable[KernelSpec], command: str) -> dict[str, str]:
    """One ``.pyx`` for each program and dtypes with all its shapes, as a wheel ships them."""
    return {
        f"{name}.pyx": emit_module(program_of(group[0]), group, command, False)
        for name, group in by_module(specs).items()
    }


def command_for(spec: KernelSpec, chip: str = "") -> str:
    """The command that regenerates one kernel of an operator, with a `chip` for the Ascend target."""
    operator, _, mode = spec.program.partition("__")
    target = f" {ascend_options(chip)}" if chip else ""
    return f"moegrad generate {operator} --mode {mode} {options(spec)}{target}"


def options(spec: KernelSpec) -> str:
    """A spec as command-line options."""
    parts: Sequence[str] = (
        f"--dtype {spec.data}",
        f"--weight-dtype {spec.weight}" if spec.weight else "",
        f"--topk {spec.topk}" if spec.topk != ANY else "",
        f"--hidden {spec.hidden}" if spec.hidden != ANY else "",
    )
    return " ".join(part for part in parts if part)


ASCEND_FILES = ("*.h", "*.cpp", "*.asc")
"""Patterns of the files that belong to the Ascend target."""


def ascend_kernel(spec: KernelSpec, chip: str = DEFAULT_CHIP) -> AscendKernel:
    """One Ascend C kernel of an operator."""
    return emit_kernel(program_of(spec), spec, command_for(spec, chip), chip)


def ascend_files(specs: Iterable[KernelSpec], chip: str = DEFAULT_CHIP) -> dict[str, str]:
    """All files of Ascend C kernels: file name -> text."""
    return {name: text for spec in sorted(specs) for name, text in ascend_kernel(spec, chip).files.items()}


def ascend_program(program: ModuleOp, source: str, spec: KernelSpec, chip: str = DEFAULT_CHIP) -> AscendKernel:
    """The Ascend C kernel of a program file."""
    return emit_kernel(program, spec, f"moegrad generate {source} {options(spec)} {ascend_options(chip)}", chip)


def ascend_options(chip: str) -> str:
    """Target and chip as command-line options."""
    return "--target ascendc" + (f" --chip {chip}" if chip != DEFAULT_CHIP else "")
