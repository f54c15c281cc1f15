"""The passes of each target, in order, and the driver that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from .dialect import context
from .errors import LoweringError
from .passes.fuse_slots import FuseSlotsPass
from .passes.legalize_precision import LegalizePrecisionPass
from .passes.plan_ascend import PlanAscendPass
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
    "ascendc": lambda spec: (*_common(spec), PlanAscendPass()),
}
"""Target -> its passes for one kernel."""


def pass_names(target: str) -> list[str]:
    """Names of the passes of a target, in order."""
    return [step.name for step in PIPELINES[target](KernelSpec("any__any", "f32", "f32"))]


def steps(spec: KernelSpec, target: str, chip: str = "", plan: PlanCpuPass | None = None) -> tuple[ModulePass, ...]:
    """The passes of a target for one kernel.

    `chip` is what an Ascend kernel is planned for; `plan` stands in for the CPU target's own plan-cpu.
    """
    passes = PIPELINES[target](spec)
    if plan is not None:
        passes = tuple(plan if isinstance(step, PlanCpuPass) else step for step in passes)
    return tuple(replace(step, chip=chip) if chip and isinstance(step, PlanAscendPass) else step for step in passes)


def stages(
    module: ModuleOp, spec: KernelSpec, target: str, chip: str = "", plan: PlanCpuPass | None = None
) -> Iterator[tuple[str, ModuleOp]]:
    """Runs the pipeline (see `steps`) on a copy of `module`; yields each pass's name and the program after it.

    The program is verified before the first pass and after each; a failure names the pass that just ran.
    """
    module = module.clone()
    passes = steps(spec, target, chip, plan)
    with _blamed(f"{spec.key}: before {passes[0].name}"):
        module.verify()
    for step in passes:
        with _blamed(f"{spec.key}: after {step.name}"):
            step.apply(context(), module)
            module.verify()
        yield step.name, module


@contextmanager
def _blamed(stage: str) -> Iterator[None]:
    try:
        yield
    except DiagnosticException as error:
        raise LoweringError(f"{stage}: {error}") from error


def lower(
    module: ModuleOp,
    spec: KernelSpec,
    target: str,
    after: str = "",
    chip: str = "",
    plan: PlanCpuPass | None = None,
) -> ModuleOp:
    """The program after pass `after`, or after the whole pipeline of the target (see `steps`)."""
    names = pass_names(target)
    if after and after not in names:
        raise LoweringError(f"pass: target {target} has the passes {', '.join(names)}; got {after!r}")
    for name, stage in stages(module, spec, target, chip, plan):
        module = stage
        if name == after:
            break
    return module
