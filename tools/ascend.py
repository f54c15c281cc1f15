"""Runs cases of both operators on the host model of the Ascend chips."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..codegen.chips import DEFAULT_CHIP
from ..codegen.generate import ascend_kernel
from ..codegen.operators import OPERATORS, dtype_pairs, kernel_of, make_spec, program_mode
from ..codegen.spec import ANY, KernelSpec
from ..codegen.targets.ascendc.hostbuild import build_kernels
from ..codegen.targets.ascendc.hostrun import NO_AUTO_SYNC, PACKAGE, STRICT_UB, HostKernel, HostRun
from .cases import Case
from .compare import explain
from .oracle import Array
from .program_cases import program_inputs, public_outputs, spec_of

__all__ = [
    "PROGRAMS",
    "built",
    "best_kernel_for",
    "generic_kernels",
    "kernel_for",
    "problem",
    "run_case",
    "run_on_host_model",
    "specialised_kernels",
]

SPECIALISED = (4, 2880)
"""topK and hidden size of the specialised kernels: those of gpt-oss."""

PROGRAMS: tuple[str, ...] = tuple(
    f"{name}__{mode.name}" for name, operator in OPERATORS.items() for mode in operator.modes if not mode.kernel
)
"""Every ``operator__mode`` with a kernel of its own."""


def built(specs: Iterable[KernelSpec], chip: str = DEFAULT_CHIP) -> dict[str, HostKernel]:
    """Kernels built together, by key."""
    kernels = [ascend_kernel(spec, chip) for spec in dict.fromkeys(map(kernel_of, specs))]
    library = build_kernels(kernels)
    return {kernel.spec.key: HostKernel(library, kernel) for kernel in kernels}


@cache
def generic_kernels(program: str, chip: str = DEFAULT_CHIP) -> Mapping[str, HostKernel]:
    """The kernels of any shape of one of PROGRAMS, every D and P, by key."""
    return _kernels(program, chip, ANY, ANY)


@cache
def specialised_kernels(program: str, chip: str = DEFAULT_CHIP) -> Mapping[str, HostKernel]:
    """The kernels of the SPECIALISED shape of one of PROGRAMS, every D and P, by key."""
    return _kernels(program, chip, *SPECIALISED)


def _kernels(program: str, chip: str, topk: int, hidden: int) -> dict[str, HostKernel]:
    mode = program_mode(program)
    assert mode is not None, program
    name = program.partition("__")[0]
    topk = ANY if mode.per_row else topk
    return built((make_spec(name, mode.name, *pair, topk, hidden) for pair in dtype_pairs(mode)), chip)


def kernel_for(case: Case, chip: str = DEFAULT_CHIP) -> HostKernel:
    """The kernel of any shape that runs a case."""
    spec = kernel_of(spec_of(case))
    return generic_kernels(spec.program, chip)[spec.key]


def best_kernel_for(case: Case, chip: str = DEFAULT_CHIP) -> HostKernel:
    """The specialised kernel where a case has its shape, else the one of any shape."""
    if (case.topk, case.hidden) != SPECIALISED:
        return kernel_for(case, chip)
    spec = kernel_of(spec_of(case, specialised=True))
    return specialised_kernels(spec.program, chip)[spec.key]


def run_case(kernel: HostKernel, case: Case, **options: Any) -> HostRun:
    """One case on a built kernel; `options` as of `HostKernel.run`.

    Without padding and capacity the indices are a permutation by contract, so the zero fill is left out,
    as the host of a device would do.
    """
    arrays, sizes = program_inputs(case)
    options.setdefault("every_row_named", not case.has_capacity)
    return kernel.run(arrays, {"K": case.topk, "E": case.experts, **sizes}, **options)


def problem(case: Case, run: HostRun) -> str | None:
    """What is wrong with a run: the oracle's word, then the host model's; None where both are content."""
    wrong = explain(*public_outputs(case, run.outputs), case.expected())
    if wrong is not None:
        return wrong
    if not run.clean:
        first = run.diagnostics[0]
        place = f"{Path(first['file']).name}:{first['line']}"
        return f"host model: {first['name']} at {place}: {first['message']}; mend: {first['mend']}"
    return None


def run_on_host_model(
    case: Case, chip: str = DEFAULT_CHIP, entry: str = PACKAGE, seed: int = 0, auto_sync: bool = True
) -> tuple[Array, Array | None]:
    """Outputs of a case on one core, three or all; RuntimeError where the host model has anything to report."""
    cores = (0, 1, 3)[zlib.crc32(case.id.encode()) % 3]
    switches = STRICT_UB if auto_sync else STRICT_UB | NO_AUTO_SYNC
    run = run_case(best_kernel_for(case, chip), case, entry=entry, seed=seed, cores=cores, switches=switches)
    if not run.clean:
        raise RuntimeError(str(problem(case, run)))
    return public_outputs(case, run.outputs)
