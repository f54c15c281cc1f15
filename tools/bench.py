"""Benchmarks: everything is timed side by side in one process, in turn, and reported as a ratio.

Three limits are measured in the same run. ``copy`` is a streaming copy of as many bytes as the operator must
move: each row of a token and of a slot is read once, and each row written once; half of a copy's bytes are
writes. It is done in order and four pages at a time, and the faster of the two is the limit. ``traffic`` reads
and writes in order just what the operator reads and writes: a mode that mostly writes cannot be faster, since
writes are slower than reads. ``rows`` copies the slots' rows in the order of the map, which a machine does more
slowly than in order. Medians over interleaved rounds; the machine's own unrest is measured on the copy and
reported. All arrays are aligned to a cache line and allocated by NumPy, which asks Linux for huge pages.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import moegrad
from moegrad import _native, threads

from .oracle import Array
from .peers import SLOW, Run, peers

MODES = ("plain", "scales", "scales_bias")
LIMITS = ("copy", "traffic", "rows")
OURS = ("moegrad", *LIMITS)
"""What is timed beside the peers."""

NOISY = 0.15
"""Spread of the copy's times (quartiles over median) above which a run is not to be trusted."""

_DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@dataclass(frozen=True)
class Setting:
    """What is measured: a mode of finalize_routing_v2_grad at a shape."""

    mode: str
    data: str
    weight: str
    tokens: int
    topk: int
    hidden: int

    @property
    def label(self) -> str:
        """For tables and plots."""
        dtypes = self.data if self.mode == "plain" else f"{self.data}/{self.weight}"
        return f"{self.mode} {dtypes} T={self.tokens} K={self.topk} H={self.hidden}"


@dataclass(frozen=True)
class Result:
    """One setting's figures."""

    setting: Setting
    bytes_moved: int
    """Bytes that must be read or written once."""
    seconds: dict[str, float]
    """Median seconds of each contender, ``moegrad`` and ``copy`` among them."""
    spread: float
    """Distance of the quartiles of the copy's times over their median."""

    @property
    def gigabytes_per_second(self) -> float:
        """Rate at which moegrad moves its bytes."""
        return self.bytes_moved / self.seconds["moegrad"] / 1e9

    @property
    def share(self) -> float:
        """Share of the copy limit: 1 where the kernel is as fast as a copy of as many bytes."""
        return self.seconds["copy"] / self.seconds["moegrad"]

    def share_of(self, limit: str) -> float | None:
        """Share of one of the limits, ``copy``, ``traffic`` or ``rows``; None where it was not measured."""
        return self.seconds[limit] / self.seconds["moegrad"] if limit in self.seconds else None

    def speedup(self, peer: str) -> float | None:
        """How many times as long a peer takes; None where it did not run."""
        return self.seconds[peer] / self.seconds["moegrad"] if peer in self.seconds else None


@dataclass(frozen=True)
class Report:
    """All results of one run."""

    threads: int
    config: dict[str, Any]
    results: tuple[Result, ...] = field(default=())

    @property
    def noisy(self) -> bool:
        """Whether the machine was too busy for the figures to mean much."""
        return any(result.spread > NOISY for result in self.results)

    def to_json(self) -> str:
        """The report as JSON: settings, seconds and the ratios derived from them."""
        rows = [
            asdict(result.setting)
            | {
                "bytes": result.bytes_moved,
                "seconds": result.seconds,
                "gigabytes_per_second": result.gigabytes_per_second,
                "share_of_copy_limit": result.share,
                "share_of": {limit: result.share_of(limit) for limit in LIMITS},
                "speedup_over": {peer: result.speedup(peer) for peer in result.seconds if peer not in OURS},
                "spread": result.spread,
            }
            for result in self.results
        ]
        document = {"schema": 1, "threads": self.threads, "noisy": self.noisy, "config": self.config, "results": rows}
        return json.dumps(document, indent=1, default=str)


def settings(
    modes: Sequence[str], dtypes: Sequence[str], weights: Sequence[str], shapes: Iterable[tuple[int, int, int]]
) -> list[Setting]:
    """Every mode x dtypes x shape; an empty weight dtype means P = D."""
    found = [
        Setting(mode, data, (weight or data) if mode != "plain" else "", *shape)
        for shape in shapes
        for mode in modes
        for data in dtypes
        for weight in weights
    ]
    return list(dict.fromkeys(found))


def run(
    wanted: Sequence[Setting], repeats: int = 15, with_peers: bool = True, progress: Callable[[str], None] | None = None
) -> Report:
    """Measures every setting; `progress` is told the label of each one that is done."""
    count = threads.limit()[0]
    results = []
    for setting in wanted:
        results.append(_measure(setting, repeats, with_peers, count))
        if progress is not None:
            progress(setting.label)
    return Report(count, moegrad.show_config(mode="dict") or {}, tuple(results))


def _measure(setting: Setting, repeats: int, with_peers: bool, count: int) -> Result:
    arguments = call_arguments(setting)
    row_grad, weight_grad = moegrad.finalize_routing_v2_grad(**arguments)
    rows = [value for name, value in arguments.items() if name in ("grad_y", "expanded_x")]
    moved = sum(array.nbytes for array in (*rows, row_grad))
    contenders: dict[str, Run] = {
        "moegrad": lambda: moegrad.finalize_routing_v2_grad(**arguments, out=(row_grad, weight_grad)),
        **limits(arguments, moved, row_grad, count),
    }
    if with_peers:
        contenders |= peers(arguments, row_grad, weight_grad, count)
    times = with_faster_copy(rounds(contenders, repeats))
    quartiles = statistics.quantiles(times["copy"], n=4)
    return Result(
        setting,
        moved,
        {name: statistics.median(spent) for name, spent in times.items()},
        (quartiles[2] - quartiles[0]) / quartiles[1],
    )


def limits(arguments: dict[str, Any], moved: int, row_grad: Array, count: int) -> dict[str, Run]:
    """What the operator could at best take: see the top of this file."""
    read, written, half = moved - row_grad.nbytes, row_grad.nbytes, moved // 2
    source, target = (_native.empty_aligned((max(size, half),), np.dtype(np.uint8)) for size in (read, written))
    source[:] = np.resize(np.random.default_rng(1).integers(0, 256, 1 << 16, np.uint8), len(source))
    target[:] = 0
    limits: dict[str, Run] = {
        "copy": lambda: _native.stream_copy(target[:half], source[:half], count),
        "copy of pages": lambda: _native.stream_copy(target[:half], source[:half], count, True),
        "traffic": lambda: _native.stream_traffic(target[:written], source[:read], count),
    }
    if "expanded_x" in arguments:
        rows = target[:written].view(row_grad.dtype).reshape(row_grad.shape)
        index = arguments["expanded_row_idx"]
        limits["rows"] = lambda: _native.stream_rows(rows, arguments["expanded_x"], index, count)
    return limits


def rounds(contenders: dict[str, Run], repeats: int) -> dict[str, list[float]]:
    """Times of each contender, run in turn so that a busy machine slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for turn in range(repeats):
        for name, contender in contenders.items():
            if name in SLOW and turn % 5:
                continue
            start = time.perf_counter()
            contender()
            times[name].append(time.perf_counter() - start)
    return times


def with_faster_copy(times: dict[str, list[float]]) -> dict[str, list[float]]:
    """The same times with one copy, the faster of the two that `limits` makes."""
    in_order, of_pages = times["copy"], times["copy of pages"]
    others = {name: spent for name, spent in times.items() if name != "copy of pages"}
    return others | {"copy": min(in_order, of_pages, key=statistics.median)}


def call_arguments(setting: Setting) -> dict[str, Any]:
    """Random rows on a random permutation; experts and bias where the mode has them."""
    rng = np.random.default_rng(0)
    data, slots = _DTYPES[setting.data], setting.tokens * setting.topk
    arguments: dict[str, Any] = {
        "grad_y": _rows(rng, setting.tokens, setting.hidden, data),
        "expanded_row_idx": rng.permutation(slots).astype(np.int32),
    }
    if setting.mode == "plain":
        return arguments
    arguments["expanded_x"] = _rows(rng, slots, setting.hidden, data)
    arguments["scales"] = rng.random((setting.tokens, setting.topk), np.float32).astype(_DTYPES[setting.weight])
    if setting.mode == "scales_bias":
        arguments["bias"] = _rows(rng, 64, setting.hidden, data)
        arguments["expert_idx"] = rng.integers(0, 64, (setting.tokens, setting.topk), np.int32)
    return arguments


def _rows(rng: np.random.Generator, count: int, hidden: int, data: Any) -> Array:
    rows = _native.empty_aligned((count, hidden), np.dtype(data))
    for start in range(0, count, 1024):
        rows[start : start + 1024] = rng.standard_normal(rows[start : start + 1024].shape, np.float32)
    return rows
