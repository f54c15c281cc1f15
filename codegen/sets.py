"""The sets of kernels: the small reference set under ``generated/``, the default set of a wheel, that of all models."""

from __future__ import annotations

from collections.abc import Iterable

from .models import model, shapes
from .operators import OPERATORS, Mode, dtype_pairs, kernel_of, make_spec
from .spec import ANY, KernelSpec

REFERENCE_TOPK, REFERENCE_HIDDEN = 8, 7168
"""Shape of the reference kernels: the largest models."""


def reference_set() -> list[KernelSpec]:
    """One kernel for each operator and mode: bf16 rows, fp32 weights, the shape of the largest models."""
    return [
        make_spec(
            name, mode.name, "bf16", "f32" if mode.weighted else "", _topk(mode, REFERENCE_TOPK), REFERENCE_HIDDEN
        )
        for name, operator in OPERATORS.items()
        for mode in operator.modes
    ]


def default_set() -> list[KernelSpec]:
    """Every mode, D and P, for any shape: on a CPU a kernel that knows topK and hidden size is no faster."""
    return _kernels([(ANY, ANY)])


def models_set() -> list[KernelSpec]:
    """The default set, and kernels of their own for every shape of the models."""
    return _kernels([*shapes(), (ANY, ANY)])


def model_set(name: str) -> list[KernelSpec]:
    """Every mode, D and P for the shape of one model."""
    found = model(name)
    return _kernels([(found.topk, found.hidden)])


def by_module(specs: Iterable[KernelSpec]) -> dict[str, list[KernelSpec]]:
    """Kernels grouped into the modules that hold them, sorted."""
    modules: dict[str, list[KernelSpec]] = {}
    for spec in sorted(specs):
        modules.setdefault(spec.module, []).append(spec)
    return modules


def _kernels(wanted: Iterable[tuple[int, int]]) -> list[KernelSpec]:
    wanted = list(wanted)
    specs = {
        kernel_of(make_spec(name, mode.name, data, weight, _topk(mode, topk), hidden))
        for name, operator in OPERATORS.items()
        for mode in operator.modes
        for data, weight in dtype_pairs(mode)
        for topk, hidden in wanted
    }
    return sorted(specs)


def _topk(mode: Mode, topk: int) -> int:
    return 1 if mode.per_row else topk


SETS = {"reference": reference_set, "default": default_set, "models": models_set}
"""Name on the command line -> its kernels."""

__all__ = ["SETS", "by_module", "default_set", "model_set", "models_set", "reference_set"]
