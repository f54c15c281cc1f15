"""What each choice of plan-cpu and of the build brings: kernels built without it, timed beside the one that ships."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import moegrad
from moegrad import _native, threads

from ..codegen.generate import program_of
from ..codegen.operators import make_spec
from ..codegen.passes.plan_cpu import PlanCpuPass
from ..codegen.targets.cython.build import build_modules, load_module
from ..codegen.targets.cython.emit import emit_module
from .bench import Setting, call_arguments, limits, rounds, with_faster_copy
from .oracle import Array

DTYPES = ("f32", "bf16", "f16")
OPERATOR = "finalize_routing_v2_grad"
BASE = Setting("scales", "f32", "f32", 2048, 8, 4096)


@dataclass(frozen=True)
class Choice:
    """One way to build the kernel."""

    name: str
    plan: PlanCpuPass = field(default_factory=PlanCpuPass)
    variant: str = ""
    """Instruction set; the widest that this processor has where it is empty."""
    known: bool = False
    """Whether K and H are known to the compiler."""
    dtypes: Sequence[str] = DTYPES
    offset: int = 0
    """Bytes from a cache line to the output."""


SHIPPED = "as shipped"
CHOICES = (
    Choice(SHIPPED),
    Choice("one slot at once", PlanCpuPass(slots=1)),
    Choice("no row asked for ahead", PlanCpuPass(prefetch=False)),
    Choice("stores through the caches", PlanCpuPass(store="cached")),
    Choice("no bf16 in pairs", PlanCpuPass(pairs=False), dtypes=("bf16",)),
    Choice("output as NumPy aligns it", offset=16),
    Choice("K and H known", known=True),
    Choice("avx2", variant="avx2"),
    Choice("baseline", variant="baseline"),
)


@dataclass(frozen=True)
class Choices:
    """The figures of one run: for each dtype and choice, the share of the copy limit."""

    threads: int
    shares: dict[str, dict[str, float]]


def measure(repeats: int = 15, base: Setting = BASE) -> Choices:
    """Builds every kernel of the base setting's mode, and times those of one dtype in interleaved rounds."""
    variants = _native.cpu_variants()
    shares = {}
    with tempfile.TemporaryDirectory() as folder:
        for data in DTYPES:
            setting = Setting(base.mode, data, data, base.tokens, base.topk, base.hidden)
            wanted = [each for each in CHOICES if data in each.dtypes and (each.variant or variants[0]) in variants]
            kernels = [_build(each, setting, Path(folder), variants[0]) for each in wanted]
            shares[data] = _shares(wanted, kernels, setting, repeats)
    return Choices(threads.limit()[0], shares)


def _build(choice: Choice, setting: Setting, folder: Path, widest: str) -> ModuleType:
    known = {"topk": setting.topk, "hidden": setting.hidden} if choice.known else {}
    spec = make_spec(OPERATOR, setting.mode, setting.data, setting.weight, **known)
    source = folder / f"{setting.data}_{choice.name.replace(' ', '_')}.pyx"
    source.write_text(emit_module(program_of(spec), [spec], "moegrad bench --choices", python=True, plan=choice.plan))
    (built,) = build_modules([source], folder, choice.variant or widest)
    return load_module(built)


def _shares(
    wanted: Sequence[Choice], kernels: Sequence[ModuleType], setting: Setting, repeats: int
) -> dict[str, float]:
    arguments, count = call_arguments(setting), threads.limit()[0]
    row_grad, weight_grad = moegrad.finalize_routing_v2_grad(**arguments)
    inputs = [_bits(value) for value in arguments.values() if isinstance(value, np.ndarray)]
    moved = sum(arguments[name].nbytes for name in ("grad_y", "expanded_x")) + row_grad.nbytes
    room = _native.empty_aligned((row_grad.nbytes + 64,), np.dtype(np.uint8))
    contenders: dict[str, Callable[[], Any]] = dict(limits(arguments, moved, row_grad, count))
    for choice, kernel in zip(wanted, kernels, strict=True):
        out = room[choice.offset : choice.offset + row_grad.nbytes].view(row_grad.dtype).reshape(row_grad.shape)
        contenders[choice.name] = _call(kernel, [*inputs, _bits(out), _bits(weight_grad)], count)
    times = with_faster_copy(rounds(contenders, repeats))
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    return {choice.name: medians["copy"] / medians[choice.name] for choice in wanted}


def _call(kernel: ModuleType, arrays: Sequence[Array], count: int) -> Callable[[], object]:
    return lambda: kernel.run(*arrays, count)


def _bits(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.itemsize == 2 else array


def render(choices: Choices, console: Console) -> None:
    """The figures as a table."""
    table = Table("kernel", title=f"{BASE.mode} T={BASE.tokens} K={BASE.topk} H={BASE.hidden}, share of the copy limit")
    for data in choices.shares:
        table.add_column(data, justify="right")
    for choice in CHOICES:
        found = [shares.get(choice.name) for shares in choices.shares.values()]
        table.add_row(choice.name, *("-" if share is None else f"{share:.2f}" for share in found))
    console.print(table)
    console.print(f"{choices.threads} threads; medians of interleaved rounds.")
