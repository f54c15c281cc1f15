"""The same gradients as others compute them, for benchmarks: NumPy, numba, torch eager and compiled.

Each peer is the code that a careful user of that package would write: fp32 inside, outputs
preallocated where the package allows it. Peers that are not installed are left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .oracle import Array
from .reference import numpy_gradients

Run = Callable[[], object]

SLOW = {"numpy", "torch eager", "torch.compile"}
"""Peers that are timed in fewer rounds, since one of theirs takes as long as many of the others."""


def peers(arguments: dict[str, Any], row_grad: Array, weight_grad: Array | None, threads: int) -> dict[str, Run]:
    """The peers that are installed and know the dtypes, each a function that computes the gradients once.

    `arguments` are those of finalize_routing_v2_grad, dropless; `row_grad` and `weight_grad` give the
    shapes and dtypes of the results.
    """
    found: dict[str, Run] = {"numpy": lambda: numpy_gradients("finalize_routing_v2_grad", arguments)}
    if importlib.util.find_spec("numba") and arguments["grad_y"].dtype == np.float32:
        found["numba"] = _numba(arguments, np.empty_like(row_grad), weight_grad, threads)
    if importlib.util.find_spec("torch"):
        found |= _torch(arguments, threads)
    return found


def _numba(arguments: dict[str, Any], out: Array, weight_grad: Array | None, threads: int) -> Run:
    import numba

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    grad, index = arguments["grad_y"], arguments["expanded_row_idx"]
    if weight_grad is None:
        topk = len(index) // len(grad)

        @numba.njit(parallel=True)  # type: ignore[untyped-decorator]
        def plain(grad: Array, index: Array, out: Array) -> None:
            for t in numba.prange(grad.shape[0]):
                for k in range(topk):
                    out[index[t * topk + k]] = grad[t]

        return lambda: plain(grad, index, out)

    x, scales, gscale = arguments["expanded_x"], arguments["scales"], np.empty_like(weight_grad)
    bias, expert = arguments.get("bias"), arguments.get("expert_idx")

    if bias is None:

        @numba.njit(parallel=True)  # type: ignore[untyped-decorator]
        def scaled(grad: Array, index: Array, x: Array, scales: Array, out: Array, gscale: Array) -> None:
            tokens, topk = scales.shape
            for t in numba.prange(tokens):
                for k in range(topk):
                    row, scale, total = index[t * topk + k], scales[t, k], np.float32(0)
                    for j in range(grad.shape[1]):
                        out[row, j] = grad[t, j] * scale
                        total += x[row, j] * grad[t, j]
                    gscale[t, k] = total

        return lambda: scaled(grad, index, x, scales, out, gscale)

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator]
    def biased(
        grad: Array, index: Array, x: Array, scales: Array, expert: Array, bias: Array, out: Array, gscale: Array
    ) -> None:
        tokens, topk = scales.shape
        for t in numba.prange(tokens):
            for k in range(topk):
                row, scale, total, e = index[t * topk + k], scales[t, k], np.float32(0), expert[t, k]
                for j in range(grad.shape[1]):
                    out[row, j] = grad[t, j] * scale
                    total += (x[row, j] + bias[e, j]) * grad[t, j]
                gscale[t, k] = total

    return lambda: biased(grad, index, x, scales, expert, bias, out, gscale)


def _torch(arguments: dict[str, Any], threads: int) -> dict[str, Run]:
    import torch

    torch.set_num_threads(threads)
    given = {name: tensor(value) for name, value in arguments.items() if isinstance(value, np.ndarray)}
    grad, index = given["grad_y"], given["expanded_row_idx"].long()
    topk = len(index) // len(grad)
    if "scales" not in given:

        def plain() -> Any:
            out = torch.empty((len(index), grad.shape[1]), dtype=grad.dtype)
            out[index] = grad.repeat_interleave(topk, dim=0)
            return out

        return {"torch eager": plain}
    x, scales = given["expanded_x"], given["scales"]
    bias, expert = given.get("bias"), given.get("expert_idx")

    def weighted() -> Any:
        wide = grad.float().unsqueeze(1)
        out = torch.empty_like(x)
        out[index] = (wide * scales.float().unsqueeze(2)).to(grad.dtype).reshape(len(index), -1)
        rows = x[index].float().reshape(len(grad), topk, -1)
        if bias is not None and expert is not None:
            rows = rows + bias[expert.long()].float()
        return out, (rows * wide).sum(-1).to(scales.dtype)

    return {"torch eager": weighted, "torch.compile": torch.compile(weighted)}


def tensor(array: Array) -> Any:
    """A torch tensor on the same memory."""
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)
