"""Benchmarks: everything is timed side by side in one process, in turn, and reported as a ratio.

The limit is a streaming copy of as many bytes as the operator must move (rows read once for each
token and slot, rows and weights written once), measured in the same run. Medians over interleaved
rounds; the machine's own unrest is measured on that copy and reported.
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
                "speedup_over": {peer: result.speedup(peer) for peer in result.seconds if peer != "moegrad"},
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
    arguments = _arguments(setting)
    row_grad, weight_grad = moegrad.finalize_routing_v2_grad(**arguments)
    rows = [value for name, value in arguments.items() if name in ("grad_y", "expanded_x")]
    moved = sum(array.nbytes for array in (*rows, row_grad))
    source, target = (_native.empty_aligned((moved // 2,), np.dtype(np.uint8)) for _ in range(2))
    source[:] = (
        np.random.default_rng(1).integers(0, 256, 1 << 16, np.uint8).repeat(-(-len(source) >> 16))[: len(source)]
    )
    contenders: dict[str, Run] = {
        "moegrad": lambda: moegrad.finalize_routing_v2_grad(**arguments, out=(row_grad, weight_grad)),
        "copy": lambda: _native.stream_copy(target, source, count),
    }
    if with_peers:
        contenders |= peers(arguments, row_grad, weight_grad, count)
    times = _rounds(contenders, repeats)
    quartiles = statistics.quantiles(times["copy"], n=4)
    return Result(
        setting,
        moved,
        {name: statistics.median(spent) for name, spent in times.items()},
        (quartiles[2] - quartiles[0]) / quartiles[1],
    )


def _rounds(contenders: dict[str, Run], repeats: int) -> dict[str, list[float]]:
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


def _arguments(setting: Setting) -> dict[str, Any]:
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
