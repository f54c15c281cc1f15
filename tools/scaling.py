"""How a kernel's time grows with T, K and H and with the share of dropped slots, and what memory a call needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import moegrad
from moegrad import threads

from .bench import Setting, call_arguments, rounds

BASE = Setting("scales", "bf16", "bf16", 4096, 8, 4096)
"""Its rows, gradients of rows included, fill 544 MiB; those of the smallest sizes below fill half of that, more than
the last-level cache of most machines."""

SIZES = {"tokens": (2048, 4096, 8192), "topk": (4, 8, 16), "hidden": (2048, 4096, 8192)}
DROPPED = (0.0, 0.25, 0.5, 0.75)
CLEAR_PEAK = "5"
"""What resets the peak of a process' memory when written to /proc/self/clear_refs."""


@dataclass(frozen=True)
class Scaling:
    """The figures of one run."""

    threads: int
    slopes: dict[str, float]
    """Size -> slope of log time over log size: 1 where time is linear in it."""
    dropped: dict[float, float]
    """Share of dropped slots -> time over that without any."""
    extra_bytes: int | None
    """Peak memory of a call beyond its arrays; None where the system does not tell."""


def measure(repeats: int = 15, base: Setting = BASE) -> Scaling:
    """Runs everything in interleaved rounds and takes the fastest of each: a busy machine only adds to it."""
    slopes = {}
    for name, sizes in SIZES.items():
        changes: list[dict[str, Any]] = [{name: size} for size in sizes]
        calls = {str(change[name]): _call(call_arguments(replace(base, **change))) for change in changes}
        times = {size: min(spent) for size, spent in rounds(calls, repeats).items()}
        slopes[name] = _slope([(math.log(int(size)), math.log(spent)) for size, spent in times.items()])
    calls = {str(share): _call(_with_dropped(call_arguments(base), share)) for share in DROPPED}
    spent = {float(share): min(each) for share, each in rounds(calls, repeats).items()}
    return Scaling(
        threads.limit()[0], slopes, {share: spent[share] / spent[0.0] for share in DROPPED}, _extra_bytes(base)
    )


def render(scaling: Scaling, console: Console) -> None:
    """The figures as tables."""
    table = Table("", "", title=f"{BASE.label} on {scaling.threads} threads")
    for name, slope in scaling.slopes.items():
        table.add_row(f"slope of log time over log {name}", f"{slope:.2f}")
    for share, ratio in scaling.dropped.items():
        table.add_row(f"time with {share:.0%} of the slots dropped", f"{ratio:.2f}")
    extra = "unknown" if scaling.extra_bytes is None else f"{scaling.extra_bytes / 1024:.0f} KiB"
    table.add_row("peak memory beyond the arrays", extra)
    console.print(table)


def _call(arguments: dict[str, Any]) -> Callable[[], object]:
    """The operator on outputs of its own, which exist before."""
    out = moegrad.finalize_routing_v2_grad(**arguments)
    return lambda: moegrad.finalize_routing_v2_grad(**arguments, out=out)


def _with_dropped(arguments: dict[str, Any], share: float) -> dict[str, Any]:
    """The same call with capacity, where a share of the slots has no row."""
    index = arguments["expanded_row_idx"].copy()
    count = round(share * len(index))
    index[np.random.default_rng(2).permutation(len(index))[:count]] = -1
    capacity = {"drop_pad_mode": 1, "expert_num": 1, "expert_capacity": len(index)}
    rows = arguments["expanded_x"].reshape(1, *arguments["expanded_x"].shape)
    return arguments | capacity | {"expanded_row_idx": index, "expanded_x": rows}


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares."""
    x, y = (np.array(values) for values in zip(*points, strict=True))
    return float(np.polyfit(x, y, 1)[0])


def _extra_bytes(setting: Setting) -> int | None:
    """How much the peak of this process' memory rises above its memory before a call."""
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not clear.exists() or not status.exists():
        return None
    call = _call(call_arguments(setting))
    call()
    clear.write_text(CLEAR_PEAK)
    before = _status(status.read_text(), "VmRSS")
    call()
    return max(0, _status(status.read_text(), "VmHWM") - before)


def _status(text: str, name: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024
