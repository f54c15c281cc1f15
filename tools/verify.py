"""`moegrad verify`: every operator x mode x D x P of a target, held against the oracle."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .. import config
from ..codegen.errors import SpecError
from .cases import Case, enumerate_cases
from .checking import check
from .isolation import Worker
from .results import VerifyReport, summarise
from .tables import render
from .targets import TARGETS, Combination, Target, nothing_to_prepare

__all__ = ["TARGETS", "Target", "VerifyReport", "render", "verify", "verify_on"]

Advance = Callable[[int, int, str], None]
"""Told after each case: cases done, cases in all, and what comes next."""

_TOKENS = 3
"""R of the cases with a model's shape: several tokens, and still quick."""

_PADDED_TOPK = 4
"""Stands for K in padded cases with a model's H: padded modes have no K, it sets the number of rows."""


def verify(
    targets: Sequence[str] = ("cython",),
    cases_per_combination: int = 8,
    seed: int = 0,
    *,
    operator: str | None = None,
    mode: str | None = None,
    data: str | None = None,
    weight: str | None = None,
    model_shapes: bool = True,
    variants: bool = True,
    isolate: bool = True,
    progress: Advance | None = None,
) -> VerifyReport:
    """Holds targets against the oracle; the same arguments choose the same cases.

    Args:
        targets: keys of TARGETS.
        cases_per_combination: enumerated cases of each operator x mode x D x P.
        seed: of the cases.
        operator, mode, data, weight: keep one of each; None keeps all.
        model_shapes: add one case for each further shape that the target asks for, such as those that it
            has specialised kernels for.
        variants: also compare the bits of every variant that the machine runs.
        isolate: check in a child process, so that a crash is the failure of one case. Without it, a
            target's functions need not be importable.
        progress: called after each case with the numbers of cases done and in all, and what is verified.

    Raises:
        SpecError: an argument that names nothing known, or a choice that leaves nothing to verify.
    """
    plan = _plan(targets, cases_per_combination, seed, (operator, mode, data, weight), model_shapes)
    total = sum(len(cases) for _, _, cases, _ in plan)
    compared = {name: tuple(TARGETS[name].variants()) if variants else () for name in dict.fromkeys(targets)}
    rows, done = [], 0
    tell = progress or (lambda *_: None)
    with ExitStack() as stack:
        run = stack.enter_context(Worker()).check if isolate else check
        for name, combination, cases, shaped in plan:
            text = f"{name} {combination.operator} {combination.mode}"
            if TARGETS[name].prepare is not nothing_to_prepare:
                tell(done, total, f"{text}: building")
                TARGETS[name].prepare(combination)
            outcomes = []
            for case in cases:
                outcomes.append(run(TARGETS[name], case, variants))
                done += 1
                tell(done, total, text)
            rows.append(summarise(name, combination, outcomes, shaped, bool(compared[name])))
    return VerifyReport(seed, compared, environment(), tuple(rows))


def verify_on(console: Console, **options: Any) -> VerifyReport:
    """`verify(**options)` with a progress bar on a console."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("choosing cases", total=None)

        def advance(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

        return verify(progress=advance, **options)


def environment() -> dict[str, Any]:
    """Versions, instruction sets, threads and the number of kernels; nothing that names the machine."""
    found = dict(config.show_config("dict") or {})
    counts = found.pop("kernels").values()
    kinds = ("specialised", "generic")
    return found | {"kernels": {kind: sum(count[kind] for count in counts) for kind in kinds}}


_Plan = list[tuple[str, Combination, list[Case], int]]
"""Target, combination, its cases, and how many of those have the shape of a specialised kernel."""


_Filters = tuple[str | None, str | None, str | None, str | None]
"""Operator, mode, D and P to keep."""


def _plan(targets: Sequence[str], count: int, seed: int, filters: _Filters, model_shapes: bool) -> _Plan:
    for name in targets:
        if name not in TARGETS:
            raise SpecError(f"target: expected one of {', '.join(TARGETS)}; got {name!r}")
    if count < 1 or seed < 0:
        raise SpecError(f"cases and seed: expected at least 1 and 0, got {count} and {seed}")
    try:
        enumerated = list(enumerate_cases(*filters, cases_per_combination=count, seed=seed))
    except ValueError as error:
        raise SpecError(str(error)) from error
    grouped = {key: list(cases) for key, cases in itertools.groupby(enumerated, Combination.of)}
    plan = []
    for name in dict.fromkeys(targets):
        for combination, cases in grouped.items():
            shaped = list(_model_cases(TARGETS[name], combination, seed)) if model_shapes else []
            plan.append((name, combination, cases + shaped, len(shaped)))
    if not plan:
        named = zip(("operator", "mode", "D", "P"), filters, strict=True)
        chosen = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        raise SpecError(f"nothing to verify: no mode has {chosen or 'a target'}")
    return plan


def _model_cases(target: Target, combination: Combination, seed: int) -> Iterator[Case]:
    """One case for each shape that the target asks for."""
    for shape in target.shapes(combination):
        topk, hidden, tokens = (*shape, _TOKENS)[:3]
        yield from enumerate_cases(
            combination.operator,
            combination.mode,
            combination.data,
            combination.weight,
            topks=(_PADDED_TOPK if combination.mode.startswith("padded") else topk,),
            hiddens=(hidden,),
            tokens=(tokens,),
            cases_per_combination=1,
            seed=zlib.crc32(f"{seed}/{topk}/{hidden}".encode()),
        )
