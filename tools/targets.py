"""What `moegrad verify` can run cases on. A new target is one more entry of TARGETS."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from .. import _native, kernels, operators, threads
from ..aclnn import Session
from ..codegen.chips import FAMILIES
from ..codegen.models import shapes
from ..contract import FINALIZE_ROUTING_V2_GRAD, TOKEN_UNPERMUTE_GRAD
from .aclnn_runs import run_through_aclnn
from .cases import DTYPES, Case
from .oracle import Array

__all__ = [
    "TARGETS",
    "Combination",
    "Kernel",
    "Outputs",
    "Runner",
    "Target",
    "cpu_kernel",
    "run_on_cpu",
    "targets_named",
]

Outputs: TypeAlias = tuple[Array, Array | None]
"""Row gradient, and the gradient of probs / scales or None in modes without weights."""

Runner: TypeAlias = Callable[[Case], Outputs]
"""Computes a case; what it raises becomes that case's failure."""


@dataclass(frozen=True)
class Combination:
    """One line of the matrix: operator, mode and the dtype tags D and P (None without weights)."""

    operator: str
    mode: str
    data: str
    weight: str | None

    @classmethod
    def of(cls, case: Case) -> Combination:
        """The combination that a case belongs to."""
        return cls(case.operator, case.mode, case.data_dtype, case.weight_dtype)


def no_variants() -> dict[str, Runner]:
    """For targets with a single way to compute."""
    return {}


def no_shapes(_combination: Combination) -> tuple[tuple[int, ...], ...]:
    """For targets that the generated cases are enough for."""
    return ()


def nothing_to_prepare(_combination: Combination) -> None:
    """For targets that are built already."""


@dataclass(frozen=True)
class Target:
    """Something that computes both operators."""

    run: Runner
    variants: Callable[[], Mapping[str, Runner]] = no_variants
    """Further ways to compute the same, by name. Their outputs must have the bits that `run` gives."""
    shapes: Callable[[Combination], tuple[tuple[int, ...], ...]] = no_shapes
    """Further (K, H), or (K, H, R), to run a case of: shapes of specialised kernels, limits of the target."""
    prepare: Callable[[Combination], None] = nothing_to_prepare
    """Builds what the cases of a combination need, before the first of them runs."""


@dataclass(frozen=True)
class Kernel:
    """The compiled kernel that a call runs."""

    name: str
    """Its key, such as finalize_routing_v2_grad__scales__bf16_f32__k8__h7168."""
    variant: str
    """Instruction set: avx512, avx2 or baseline."""

    @property
    def specialised(self) -> bool:
        """Whether it is compiled for one K and H."""
        return not self.name.endswith("__kany__hany")


_OPERATORS = {op.name: op for op in (TOKEN_UNPERMUTE_GRAD, FINALIZE_ROUTING_V2_GRAD)}
_FUNCTIONS = {name: getattr(operators, name) for name in _OPERATORS}

_GUARD = 96
"""Bytes before and after each output that no kernel may touch."""

_POISON = 0xA5
"""What outputs and guards hold beforehand. A result that was not written shows it."""


@lru_cache(maxsize=1)
def _arguments(case: Case) -> dict[str, Any]:
    """The arguments of a case, made once for all its variants; to be read only."""
    arguments = case.arguments()
    for value in arguments.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return arguments


def run_on_cpu(case: Case) -> Outputs:
    """The public function as a user calls it: the run time chooses variant and threads."""
    row, weight = _FUNCTIONS[case.operator](**_arguments(case))
    return row, weight


def run_guarded(case: Case, variant: str, count: int) -> Outputs:
    """The public function on one variant and `count` threads, into poisoned buffers between guards.

    Raises RuntimeError where a byte outside the outputs changed.
    """
    arguments = _arguments(case)
    row_shape = (case.experts, case.capacity, case.hidden) if case.drop_pad_mode else (case.rows, case.hidden)
    row_buffer, row = _guarded(row_shape, DTYPES[case.data_dtype])
    buffers, weight = [row_buffer], None
    if case.weight_dtype is not None:
        weights = arguments["scales" if case.is_finalize else "probs"]
        weight_buffer, weight = _guarded(weights.shape, DTYPES[case.weight_dtype])
        buffers.append(weight_buffer)
    with kernels.forced(variant), threads.forced(count):
        _FUNCTIONS[case.operator](**arguments, out=(row, weight))
    for name, buffer in zip(("row_grad", "weight_grad"), buffers, strict=False):
        if (np.concatenate([buffer[:_GUARD], buffer[-_GUARD:]]) != _POISON).any():
            raise RuntimeError(f"{name}: bytes outside the output were written")
    return row, weight


def _guarded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """A poisoned buffer in bytes, and the output of `shape` in its middle."""
    size = int(np.prod(shape)) * dtype.itemsize
    buffer = np.full(size + 2 * _GUARD, _POISON, np.uint8)
    return buffer, buffer[_GUARD : _GUARD + size].view(dtype).reshape(shape)


def cpu_variants() -> dict[str, Runner]:
    """Every instruction set that was built and that this processor runs, on one thread and on several."""
    built = [variant for variant in _native.cpu_variants() if kernels.compiled(variant)]
    runners = {variant: partial(run_guarded, variant=variant, count=1) for variant in built}
    if built:
        runners["threads"] = partial(run_guarded, variant=kernels.usable()[0], count=3)
    return dict(runners)


def cpu_shapes(combination: Combination) -> tuple[tuple[int, int], ...]:
    """(K, H) of the models, sorted; K is 1 in padded modes. A build with the set of models has a kernel for each."""
    return tuple(sorted({(1 if combination.mode.startswith("padded") else topk, hidden) for topk, hidden in shapes()}))


def cpu_kernel(combination: Combination, topk: int, hidden: int) -> Kernel:
    """The kernel that a call with these sizes runs; K is 1 in padded modes."""
    found = _kernels(combination)
    shape = f"k{topk}__h{hidden}" if (topk, hidden) in found.specialised else "kany__hany"
    tags = "_".join(filter(None, (combination.data, combination.weight)))
    module = f"{_OPERATORS[combination.operator].kernels[combination.mode]}__{tags}"
    variant = next(name for name in kernels.usable() if module in kernels.compiled(name))
    return Kernel(f"{module}__{shape}", variant)


def _kernels(combination: Combination) -> kernels.Kernels:
    op = _OPERATORS[combination.operator]
    return kernels.find(op, combination.mode, combination.data, combination.weight or "")


def run_on_npu(case: Case, chip: str, entry: str = "", seed: int = 0, auto_sync: bool = False) -> Outputs:
    """A generated Ascend C kernel on the host model; what the model reports is an error.

    Nothing is synchronised that the kernel does not synchronise itself, unless `auto_sync` says so, and the
    Unified Buffer is the smaller one that leaves out reserved bytes. A case runs on one core, on three, or on all.
    """
    from .ascend import run_on_host_model  # the compiler is loaded only where it is needed

    return run_on_host_model(case, chip, entry, seed, auto_sync)


def npu_variants(chip: str) -> dict[str, Runner]:
    """The direct-launch entry of the same kernel, another interleaving, and with automatic synchronisation."""
    return {
        "launch": partial(run_on_npu, chip=chip, entry="_launch"),
        "interleaving": partial(run_on_npu, chip=chip, seed=1),
        "auto-sync": partial(run_on_npu, chip=chip, auto_sync=True),
    }


def npu_shapes(combination: Combination) -> tuple[tuple[int, ...], ...]:
    """(K, H, R) that generated cases do not reach: the limit of topK, rows larger than the Unified Buffer, more
    tokens than a block or a group has, and the shape of the specialised kernels."""
    if combination.mode.startswith("padded"):
        return ((4, 16385, 2), (4, 50001, 1), (4, 17, 400), (4, 2880, 12))
    return ((511, 33, 2), (512, 40, 3), (2, 16385, 2), (1, 50001, 2), (8, 17, 330), (2, 100, 150), (4, 2880, 12))


def build_for_npu(combination: Combination, chip: str) -> None:
    """Builds the kernels of a combination's program for a chip; they stay in the cache on disk."""
    from ..codegen.operators import kernel_of, make_spec
    from .ascend import generic_kernels, specialised_kernels

    spec = make_spec(combination.operator, combination.mode, combination.data, combination.weight or "")
    program = kernel_of(spec).program
    generic_kernels(program, chip)
    specialised_kernels(program, chip)


@cache
def host_session(chip: str) -> Session:
    """A session with the operators of a chip, whose library is built where it is not; it ends with the process."""
    from ..codegen.targets.project.emit import Project, ProjectSpec
    from ..codegen.targets.project.hostlib import build_host_library

    session = Session(str(build_host_library(Project(ProjectSpec(chip))).path)).__enter__()
    atexit.register(session.__exit__, None, None, None)
    return session


def run_on_aclnn(case: Case, chip: str) -> Outputs:
    """The operator package of a chip, called in two phases as a client of a device calls it."""
    return run_through_aclnn(case, host_session(chip))


def build_for_aclnn(_combination: Combination, chip: str) -> None:
    """Builds the library of a chip."""
    host_session(chip)


TARGETS: dict[str, Target] = (
    {"cython": Target(run_on_cpu, cpu_variants, cpu_shapes)}
    | {
        f"ascendc:{chip}": Target(
            partial(run_on_npu, chip=chip),
            partial(npu_variants, chip),
            npu_shapes,
            partial(build_for_npu, chip=chip),
        )
        for chip in FAMILIES
    }
    | {
        f"aclnn:{chip}": Target(
            partial(run_on_aclnn, chip=chip), shapes=npu_shapes, prepare=partial(build_for_aclnn, chip=chip)
        )
        for chip in FAMILIES
    }
)
"""Name of the target, with its chip where it has several -> target."""

KERNEL_TARGETS = ("cython", "ascendc")
"""Targets that kernels are printed for; aclnn runs those of ascendc, in their package."""


def targets_named(name: str) -> tuple[str, ...]:
    """The keys of TARGETS that a name on a command line stands for: ``all`` kernels, a target, or target and chip."""
    if name == "all":
        return tuple(key for key in TARGETS if key.partition(":")[0] in KERNEL_TARGETS)
    return tuple(key for key in TARGETS if key == name or key.startswith(f"{name}:")) or (name,)
