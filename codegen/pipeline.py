"""The passes of each target, in order, and the driver that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from .dialect import context
from .errors import LoweringError
from .passes.fuse_slots import FuseSlotsPass
from .passes.legalize_precision import LegalizePrecisionPass
from .passes.plan_cpu import PlanCpuPass
from .passes.specialize import SpecializePass
from .passes.split_inactive import SplitInactivePass
from .spec import KernelSpec

Pipeline = Callable[[KernelSpec], tuple[ModulePass, ...]]


def _common(spec: KernelSpec) -> tuple[ModulePass, ...]:
    return (
        SpecializePass(spec.data, spec.weight, spec.topk, spec.hidden, spec.key),
        LegalizePrecisionPass(),
        FuseSlotsPass(),
        SplitInactivePass(),
    )


PIPELINES: dict[str, Pipeline] = {
    "cython": lambda spec: (*_common(spec), PlanCpuPass()),
}
"""Target -> its passes for one kernel."""


def pass_names(target: str) -> list[str]:
    """Names of the passes of a target, in order."""
    return [step.name for step in PIPELINES[target](KernelSpec("any__any", "f32", "f32"))]


def stages(module: ModuleOp, spec: KernelSpec, target: str) -> Iterator[tuple[str, ModuleOp]]:
    """Runs the pipeline on a copy of `module`; yields each pass's name and the program after it.

    Every stage is verified; a failure names the pass that just ran.
    """
    module = module.clone()
    for step in PIPELINES[target](spec):
        try:
            step.apply(context(), module)
            module.verify()
        except DiagnosticException as error:
            raise LoweringError(f"{spec.key}: after {step.name}: {error}") from error
        yield step.name, module


def lower(module: ModuleOp, spec: KernelSpec, target: str, after: str = "") -> ModuleOp:
    """The program after pass `after`, or after the whole pipeline of the target."""
    names = pass_names(target)
    if after and after not in names:
        raise LoweringError(f"pass: target {target} has the passes {', '.join(names)}; got {after!r}")
    for name, stage in stages(module, spec, target):
        module = stage
        if name == after:
            break
    return module
