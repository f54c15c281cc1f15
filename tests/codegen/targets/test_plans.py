"""No choice of plan-cpu changes a bit: kernels built from other plans agree with the one that is shipped."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from moegrad import _native
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.passes.plan_cpu import PlanCpuPass
from moegrad.codegen.targets.cython.build import build_modules, load_module
from moegrad.codegen.targets.cython.emit import emit_module

from ..helpers import NUMPY, slot_map

PLANS = {
    "shipped": PlanCpuPass(),
    "stream": PlanCpuPass(store="stream"),
    "cached": PlanCpuPass(store="cached"),
    "stream_one_slot": PlanCpuPass(store="stream", slots=1),
    "no_prefetch": PlanCpuPass(prefetch=False),
    "plain_order": PlanCpuPass(pairs=False),
}
DTYPES = ("f32", "bf16", "f16")
R, K, M = 7, 3, 30
HIDDEN = (128, 104, 48, 8)
"""Rows that are whole cache lines and others, and one shorter than a block."""
OFFSETS = (0, 16, 48)
"""Bytes from a cache line to the output: what NumPy aligns to, and where streaming stores may go."""


def run(path: Path, data: str, hidden: int, offset: int, threads: int) -> bytes:
    """The outputs of a kernel on given rows, with a dropped slot, a tail and unnamed rows."""
    rng = np.random.default_rng(hidden)
    dtype = NUMPY[data]
    grad, x = (rng.standard_normal((rows, hidden)).astype(dtype) for rows in (R, M))
    scales, index = rng.standard_normal((R, K)).astype(np.float32), slot_map(rng, R * K, M)
    index[4] = -1
    size = M * hidden * dtype.itemsize
    room = _native.empty_aligned((size + 64,), np.dtype(np.uint8))
    out, weights = room[offset : offset + size].view(dtype).reshape(M, hidden), np.empty((R, K), np.float32)
    bits = [array if data == "f32" else array.view(np.uint16) for array in (grad, x, out)]
    load_module(path).run(bits[0], index, bits[1], scales, bits[2], weights, threads)
    return bytes(out.tobytes() + weights.tobytes())


def test_every_plan_gives_the_same_bits(tmp_path: Path) -> None:
    sources = {}
    for data in DTYPES:
        spec = make_spec("finalize_routing_v2_grad", "scales", data, "f32")
        for name, plan in PLANS.items():
            sources[data, name] = tmp_path / f"{data}_{name}.pyx"
            sources[data, name].write_text(emit_module(program_of(spec), [spec], "c", python=True, plan=plan))
    texts = [source.read_text() for source in sources.values()]
    assert len(set(texts)) == len(texts) - 2, "f32 and f16 have no other order; every other plan is another text"
    built = dict(zip(sources, build_modules(list(sources.values()), tmp_path), strict=True))
    for data, hidden in itertools.product(DTYPES, HIDDEN):
        runs = itertools.product(PLANS, OFFSETS, (1, 2))
        results = {run(built[data, name], data, hidden, offset, threads) for name, offset, threads in runs}
        assert len(results) == 1, (data, hidden)
