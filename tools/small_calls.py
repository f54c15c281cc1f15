"""What a call costs beside its kernel: each step of it timed apart, all in one run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from moegrad import _native, calls, finalize_routing_v2_grad
from moegrad.contract import FINALIZE_ROUTING_V2_GRAD as OPERATOR

from .bench import Setting, call_arguments, rounds
from .peers import tensor

BASE = Setting("scales", "bf16", "bf16", 1, 8, 7168)
LARGER = Setting("scales", "bf16", "bf16", 2048, 8, 2048)
"""Where the check of the indices is held against the whole call."""

MANY = 500
"""Each contender runs so often in a row that the clock is no part of its time."""

KERNEL = "the kernel itself"
STEPS = ("look the call up", "check values of indices", "check memory of out", "hand over to the kernel")
REST = "the function around them"
OUT, NEW = "whole call, out given", "whole call, new outputs"
TORCH = "whole call, torch tensors in and out"
FIRST = "checks of a call not seen before"
NUMPY = "numpy.add of 8 elements, out given"


@dataclass(frozen=True)
class SmallCalls:
    """The figures of one run, in microseconds."""

    steps: dict[str, float]
    """The kernel and what a call with `out` does besides; they add up to that call."""
    whole: dict[str, float]
    """That call, the same with new outputs, and others to compare."""
    check_share: float
    """The check of the indices as a share of the larger setting's call."""
    base: Setting = BASE
    larger: Setting = LARGER

    def above_kernel(self, call: str) -> float:
        """A whole call less the kernel."""
        return self.whole[call] - self.steps[KERNEL]


def measure(repeats: int = 15, base: Setting = BASE, larger: Setting = LARGER) -> SmallCalls:
    """Runs everything in interleaved rounds and takes the fastest of each: a busy machine only adds to it."""
    whole = {name: min(each) / MANY * 1e6 for name, each in rounds(_contenders(base), repeats).items()}
    steps = {name: whole.pop(name) for name in (KERNEL, *STEPS)}
    steps[STEPS[-1]] -= steps[KERNEL]
    steps[REST] = whole[OUT] - sum(steps.values())
    times = {name: min(each) for name, each in rounds(_check_and_call(larger), repeats).items()}
    return SmallCalls(steps, whole, times["check"] / times["call"], base, larger)


def _contenders(setting: Setting) -> dict[str, Callable[[], object]]:
    """Each does its thing MANY times."""
    arguments = call_arguments(setting)
    out = finalize_routing_v2_grad(**arguments)
    given, attributes, x = _given(arguments), (0, 0, 0, 0), np.zeros(8, np.float32)
    call, arrays, outputs = calls.prepare(OPERATOR, given, attributes, out, True)
    assert outputs is not None
    launch = partial(_native.launch, call.kernel, (*arrays, *outputs), call.tensors, call.sizes, 1)
    steps: tuple[Callable[[], object], ...] = (
        lambda: calls.prepare(OPERATOR, given, attributes, out, True),
        lambda: _native.find_bad_values(arrays, call.values),
        lambda: _native.fit_for_output(outputs, arrays),
        launch,
    )
    others: dict[str, Callable[[], object]] = {
        OUT: lambda: finalize_routing_v2_grad(**arguments, out=out),
        NEW: lambda: finalize_routing_v2_grad(**arguments),
        FIRST: lambda: calls.examine(OPERATOR, given, attributes, out, True),
        NUMPY: lambda: np.add(x, x, out=x),
    }
    if importlib.util.find_spec("torch"):
        tensors = {name: tensor(value) for name, value in arguments.items()}
        others[TORCH] = lambda: finalize_routing_v2_grad(**tensors)
    many = {name: partial(_many, each) for name, each in (*zip(STEPS, steps, strict=True), *others.items())}
    return {KERNEL: partial(launch, MANY), **many}


def _check_and_call(setting: Setting) -> dict[str, Callable[[], object]]:
    arguments = call_arguments(setting)
    out, given = finalize_routing_v2_grad(**arguments), _given(arguments)
    call = calls.prepare(OPERATOR, given, (0, 0, 0, 0), out, True)[0]
    return {
        "check": lambda: _native.find_bad_values(given, call.values),
        "call": lambda: finalize_routing_v2_grad(**arguments, out=out),
    }


def _given(arguments: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([arguments.get(row.name) for row in OPERATOR.inputs])


def _many(contender: Callable[[], object]) -> None:
    for _ in range(MANY):
        contender()


def render(found: SmallCalls, console: Console) -> None:
    """The figures as a table."""
    table = Table("", title=f"finalize_routing_v2_grad, {found.base.label}, all checks on")
    table.add_column("us", justify="right")
    for name, spent in found.steps.items():
        table.add_row(name, f"{spent:.2f}")
    table.add_section()
    for call in [call for call in (OUT, NEW, TORCH) if call in found.whole]:
        table.add_row(f"{call}: above the kernel", f"{found.above_kernel(call):.2f}")
    table.add_section()
    for name, spent in found.whole.items():
        table.add_row(name, f"{spent:.2f}")
    console.print(table)
    console.print(
        "Fastest of interleaved rounds. The steps add up to the call with out given. "
        f"{found.larger.label}: checking the indices takes {found.check_share:.1%} of the call."
    )
