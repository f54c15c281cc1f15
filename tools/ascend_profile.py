"""The Ascend kernels on the host model as `moegrad verify` sees them: chips, builds ahead, and counters."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ..codegen.operators import kernel_of, make_spec
from .ascend import PROGRAMS, built, run_case
from .cases import Case

TOKENS, TOPK, HIDDEN = 96, 8, 2048
SHAPE = (TOKENS, TOPK, HIDDEN)
"""Of the profiled call: two tokens a core on the largest A2 bins."""


@dataclass(frozen=True)
class Profile:
    """Counters of one kernel's run on the host model."""

    kernel: str
    counters: dict[str, float]
    pipes: dict[str, float]
    """Modelled microseconds of each pipe, of the busiest core."""
    ratio: float
    """Bytes of rows that moved over the least: one read a token, one read and one written a slot."""
    account: str


def profiles(chip: str) -> list[Profile]:
    """One run of each program, specialised, bf16 rows and f32 weights where there are weights."""
    found = []
    for program in PROGRAMS:
        operator, _, mode = program.partition("__")
        case = _case(operator, mode)
        weight = case.weight_dtype or ""
        spec = make_spec(operator, mode, case.data_dtype, weight, 0 if case.is_padded else TOPK, HIDDEN)
        kernel = built([spec], chip)[kernel_of(spec).key]
        run = run_case(kernel, case)
        pipes = {name: float(time) for name, time in run.report["time"].items() if isinstance(time, int | float)}
        found.append(Profile(spec.key, run.counters, pipes, run.traffic.ratio, run.traffic.text()))
    return found


def _case(operator: str, mode: str) -> Case:
    """Dropless, random rows; padded modes with as many rows as the others have slots."""
    weight = "f32" if mode in ("padded_probs", "scales", "scales_bias") else None
    capacity = TOKENS if operator == "token_unpermute_grad" else 0
    return Case(operator, mode, "bf16", weight, TOKENS, TOPK, HIDDEN, experts=TOPK, capacity=capacity)


def render(chip: str, found: list[Profile], console: Console, shape: tuple[int, int, int] = SHAPE) -> None:
    """The counters as a table, and the account of bytes below it."""
    table = Table(box=None, padding=(0, 1), title="{} on the host model: T={} K={} H={}".format(chip, *shape))
    table.add_column("program", no_wrap=True)
    for column in ("rows", "MB in", "out", "mean B", "repeats", "scalars", "barriers", "us"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in found:
        c = each.counters
        table.add_row(
            each.kernel.split("__")[1],
            f"{each.ratio:.2f}",
            f"{c['gm_bytes_in'] / 1e6:.1f}",
            f"{c['gm_bytes_out'] / 1e6:.1f}",
            f"{(c['gm_bytes_in'] + c['gm_bytes_out']) / (c['transfers_in'] + c['transfers_out']):.0f}",
            f"{c['vector_repeats']:.0f}",
            f"{c['scalar_gm_reads'] + c['scalar_ub_reads']:.0f}",
            f"{c['barriers']:.0f}",
            f"{each.pipes['bound_us']:.1f}",
        )
    console.print(table)
    console.print(
        "rows: bytes of rows that moved over the least (a token's row once, a row in and a row out for each slot). "
        "MB in and out of global memory; mean B: size of a transfer. scalars: values that the scalar unit read. "
        "us: modelled time of the busiest pipe."
    )
    for each in found:
        console.print(f"{each.kernel}: {each.account}", soft_wrap=True)
