"""No choice of plan-cpu changes a bit: kernels built from other plans agree with the one that is shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.passes import ModulePass

from moegrad import _native
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.passes.plan_cpu import PlanCpuPass
from moegrad.codegen.pipeline import PIPELINES
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.build import build_modules, load_module
from moegrad.codegen.targets.cython.emit import emit_module

from ..helpers import NUMPY, slot_map

PLANS = {
    "shipped": PlanCpuPass(),
    "stream": PlanCpuPass(store="stream"),
    "cached": PlanCpuPass(store="cached"),
    "no_prefetch": PlanCpuPass(prefetch=False),
    "plain_order": PlanCpuPass(pairs=False),
}
DTYPES = ("f32", "bf16", "f16")
R, K, H, M = 7, 3, 104, 30


def text_of(spec: KernelSpec, plan: PlanCpuPass, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of a kernel under another plan."""
    shipped = PIPELINES["cython"]

    def planned(each: KernelSpec) -> tuple[ModulePass, ...]:
        return tuple(plan if isinstance(step, PlanCpuPass) else step for step in shipped(each))

    with monkeypatch.context() as patch:
        patch.setitem(PIPELINES, "cython", planned)
        return emit_module(program_of(spec), [spec], "c", python=True)


def run(path: Path, data: str, threads: int) -> bytes:
    """The outputs of a kernel on given rows, with a dropped slot, a tail and unnamed rows."""
    rng = np.random.default_rng(3)
    dtype = NUMPY[data]
    grad, x = (rng.standard_normal((rows, H)).astype(dtype) for rows in (R, M))
    scales, index = rng.standard_normal((R, K)).astype(np.float32), slot_map(rng, R * K, M)
    index[4] = -1
    out, weights = _native.empty_aligned((M, H), dtype), np.empty((R, K), np.float32)
    bits = [array if data == "f32" else array.view(np.uint16) for array in (grad, x, out)]
    load_module(path).run(bits[0], index, bits[1], scales, bits[2], weights, threads)
    return out.tobytes() + weights.tobytes()


def test_every_plan_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {}
    for data in DTYPES:
        spec = make_spec("finalize_routing_v2_grad", "scales", data, "f32")
        for name, plan in PLANS.items():
            sources[data, name] = tmp_path / f"{data}_{name}.pyx"
            sources[data, name].write_text(text_of(spec, plan, monkeypatch))
    texts = [source.read_text() for source in sources.values()]
    assert len(set(texts)) == len(texts) - 2, "f32 and f16 have no other order; every other plan is another text"
    built = dict(zip(sources, build_modules(list(sources.values()), tmp_path), strict=True))
    for data in DTYPES:
        results = {run(built[data, name], data, threads) for name in PLANS for threads in (1, 2)}
        assert len(results) == 1, data
