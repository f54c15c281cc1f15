"""Counters of the Ascend kernels on the host model, beside the least traffic that each mode needs."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ..codegen.operators import kernel_of, make_spec, program_mode
from ..codegen.targets.ascendc.hostrun import HostRun
from .ascend import PROGRAMS, built, run_case
from .cases import Case

TOKENS, TOPK, HIDDEN = 96, 8, 2048
SHAPE = (TOKENS, TOPK, HIDDEN)
"""Of the profiled call: two tokens a core on the largest A2 bins."""


@dataclass(frozen=True)
class Profile:
    """Counters of one kernel's run on the host model."""

    mode: str
    kernel: str
    figures: dict[str, float]
    """Bytes, transfers, instructions, events and modelled microseconds of each pipe, by name."""

    @classmethod
    def of(cls, mode: str, kernel: str, run: HostRun) -> Profile:
        """The figures of a run."""
        return cls(mode, kernel, {name.replace("_", " "): float(value) for name, value in run.profile().items()})


def profiles(chip: str) -> list[Profile]:
    """One run of each program, specialised, bf16 rows and f32 weights where there are weights."""
    found = []
    for program in PROGRAMS:
        operator, _, mode = program.partition("__")
        case = _case(operator, mode)
        spec = make_spec(operator, mode, "bf16", case.weight_dtype or "", 0 if case.is_padded else TOPK, HIDDEN)
        kernel = built([spec], chip)[kernel_of(spec).key]
        found.append(Profile.of(mode, spec.key, run_case(kernel, case)))
    return found


def _case(operator: str, mode: str) -> Case:
    """Dropless, random rows; padded modes with as many rows as the others have slots."""
    known = program_mode(f"{operator}__{mode}")
    assert known is not None
    weight = "f32" if known.weighted else None
    capacity = TOKENS if known.per_row else 0
    return Case(operator, mode, "bf16", weight, TOKENS, TOPK, HIDDEN, experts=TOPK, capacity=capacity)


def render(chip: str, found: list[Profile], console: Console, shape: tuple[int, int, int] = SHAPE) -> None:
    """The counters, one kernel a column."""
    table = Table(box=None, padding=(0, 1), title="{} on the host model: T={} K={} H={}".format(chip, *shape))
    table.add_column("")
    for profile in found:
        table.add_column(profile.mode, justify="right", no_wrap=True)
    for name in found[0].figures:
        table.add_row(name, *(_number(profile.figures.get(name, 0.0)) for profile in found))
    console.print(table)
    console.print(
        "least row bytes: a token's row once, a row in and a row out for each slot; ratio: row bytes over them. "
        "us: modelled from documented rates; bound is the time that global memory takes for all bytes."
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and value >= 10 else f"{value:.3f}"
