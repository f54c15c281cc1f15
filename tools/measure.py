"""One model's routing through every mode: held against the oracle, timed beside NumPy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import operators
from ..codegen.models import Model
from . import oracle
from .compare import explain, row_grad_matches, weight_grad_error
from .reference import numpy_gradients
from .routing import Call, Routing, calls, route
from .targets import Combination, Kernel, cpu_kernel

__all__ = ["ModeRun", "ModelResult", "measure", "measured_modes", "routing_of"]

TOKENS = 1024
"""R for every model: the largest arrays, (R * K, H) in fp32, stay well below 1 GiB."""

REPEATS = 3
"""Timed runs of kernel and reference each, in turn."""


@dataclass(frozen=True)
class ModeRun:
    """One call on a model's routing."""

    operator: str
    mode: str
    layout: str
    """How rows and slots relate: dropless, truncated, with capacity."""
    kernel: Kernel
    rows_bitwise: bool
    """Whether the row gradient has the oracle's bits."""
    weight_error: float | None
    """Largest error of the weight gradient in units of its bound; None without weights or without a result."""
    message: str
    """What is wrong; empty when nothing is."""
    seconds: float
    """Median time of the public function, checks included."""
    numpy_seconds: float
    """Median time of the NumPy reference."""

    @property
    def passed(self) -> bool:
        """Whether both gradients agree with the oracle."""
        return not self.message

    @property
    def ratio(self) -> float:
        """How many times as long NumPy takes, on this machine; 0 where the call failed."""
        return self.numpy_seconds / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class ModelResult:
    """What a model's routing was like, and its runs."""

    model: Model
    data: str
    weight: str
    tokens: int
    distinct: int
    """Distinct words among the tokens."""
    common: tuple[tuple[str, int], ...]
    """The most frequent words with their counts."""
    loads: tuple[int, ...]
    """Slots of each expert."""
    skew: float
    """Largest load over the mean load."""
    capacity: int
    """C of the layouts with capacity."""
    dropped: float
    """Share of the slots that the capacity drops."""
    runs: tuple[ModeRun, ...]

    @property
    def passed(self) -> bool:
        """Whether every run agrees with the oracle."""
        return bool(self.runs) and all(run.passed for run in self.runs)


def routing_of(model: Model, tokens: int = TOKENS) -> Routing:
    """The demonstration's routing for a model."""
    return route(model.name, tokens, model.experts, model.topk, model.hidden)


def measured_modes(
    routing: Routing, data: str, weight: str, repeats: int = REPEATS, progress: Callable[[], None] | None = None
) -> tuple[ModeRun, ...]:
    """Runs every mode in every layout; `progress` is called after each."""
    runs = []
    for call in calls(routing, data, weight):
        runs.append(_run(call, routing.hidden, data, weight, repeats))
        if progress is not None:
            progress()
    return tuple(runs)


def measure(model: Model, routing: Routing, runs: Sequence[ModeRun], data: str, weight: str) -> ModelResult:
    """The result of a model from its routing and runs."""
    frequent = routing.text_in_common
    return ModelResult(
        model,
        data,
        weight,
        len(routing.words),
        len(frequent),
        tuple(frequent[:8]),
        tuple(int(load) for load in routing.loads),
        routing.skew,
        routing.capacity,
        routing.dropped,
        tuple(runs),
    )


def _run(call: Call, hidden: int, data: str, weight: str, repeats: int) -> ModeRun:
    weighted = call.arguments.keys() & {"scales", "probs"}
    combination = Combination(call.operator, call.mode, data, weight if weighted else None)
    kernel = cpu_kernel(combination, call.topk, hidden)
    function: Callable[..., Any] = getattr(operators, call.operator)
    try:
        expected = getattr(oracle, call.operator)(**call.arguments)
        row, weight_grad = function(**call.arguments)
        message = explain(row, weight_grad, expected) or ""
        bitwise = row_grad_matches(row, expected)
        error = weight_grad_error(weight_grad, expected) if weighted else None
    except Exception as failure:
        message, bitwise, error = f"{type(failure).__name__}: {failure}", False, None
        return ModeRun(call.operator, call.mode, call.layout, kernel, bitwise, error, message, 0.0, 0.0)
    seconds, numpy_seconds = _interleaved(
        (lambda: function(**call.arguments), lambda: numpy_gradients(call.operator, call.arguments)), repeats
    )
    return ModeRun(call.operator, call.mode, call.layout, kernel, bitwise, error, message, seconds, numpy_seconds)


def _interleaved(functions: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Median seconds of each function, run in turn so that a busy machine slows all of them alike."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, spent in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in times]
