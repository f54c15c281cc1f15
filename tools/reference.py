"""Both operators as one writes them in NumPy: whole arrays, fp32 inside. The measure of speed, not of truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from .oracle import Array

__all__ = ["numpy_gradients"]


def numpy_gradients(operator: str, arguments: dict[str, Any]) -> tuple[Array, Array | None]:
    """The two gradients of a call, by its operator and keyword arguments."""
    given = dict(arguments)
    if operator == "finalize_routing_v2_grad":
        return _finalize(**given)
    if given.pop("padded_mode", False):
        return _padded(**given)
    given.pop("restore_shape", None)
    rows = given.pop("permuted_tokens")
    index, grad, probs = given["sorted_indices"], given["unpermuted_tokens_grad"], given.get("probs")
    return _scatter(grad, index, rows, len(rows), probs)


def _finalize(
    grad_y: Array,
    expanded_row_idx: Array,
    expanded_x: Array | None = None,
    scales: Array | None = None,
    expert_idx: Array | None = None,
    bias: Array | None = None,
    drop_pad_mode: int = 0,
    active_num: int = 0,
    expert_num: int = 0,
    expert_capacity: int = 0,
) -> tuple[Array, Array | None]:
    slots, hidden = expanded_row_idx.size, grad_y.shape[1]
    shape: tuple[int, ...] = (active_num if 0 < active_num < slots else slots, hidden)
    if drop_pad_mode:
        shape = (expert_num, expert_capacity, hidden)
    count = int(np.prod(shape[:-1]))
    rows = None if expanded_x is None else expanded_x.reshape(count, hidden)
    addend = None if bias is None or expert_idx is None else bias[expert_idx.reshape(-1)]
    row_grad, weight_grad = _scatter(grad_y, expanded_row_idx, rows, count, scales, addend)
    return row_grad.reshape(shape), weight_grad


def _scatter(
    grad: Array, index: Array, rows: Array | None, count: int, weights: Array | None, addend: Array | None = None
) -> tuple[Array, Array | None]:
    """Maps from slots to `count` rows; `addend` is the bias of each slot, (N, H)."""
    topk = index.size // len(grad)
    active = (index >= 0) & (index < count)
    row_grad = np.zeros((count, grad.shape[1]), grad.dtype)
    if weights is None or rows is None:
        row_grad[index[active]] = np.repeat(grad, topk, axis=0)[active]
        return row_grad, None
    wide = np.repeat(grad.astype(np.float32), topk, axis=0)
    row_grad[index[active]] = (wide * weights.reshape(-1, 1).astype(np.float32)).astype(grad.dtype)[active]
    x = np.zeros(wide.shape, np.float32)
    x[active] = rows[index[active]]
    if addend is not None:
        x += addend
    return row_grad, np.einsum("nh,nh->n", x, wide).reshape(weights.shape).astype(weights.dtype)


def _padded(
    permuted_tokens: Array,
    unpermuted_tokens_grad: Array,
    sorted_indices: Array,
    probs: Array | None = None,
    restore_shape: Any = None,
) -> tuple[Array, Array | None]:
    del restore_shape
    full = sorted_indices >= 0
    row_grad = np.zeros(permuted_tokens.shape, permuted_tokens.dtype)
    if probs is None:
        row_grad[full] = unpermuted_tokens_grad[sorted_indices[full]]
        return row_grad, None
    wide = unpermuted_tokens_grad[sorted_indices[full]].astype(np.float32)
    weights = probs.reshape(-1)[full].astype(np.float32)
    row_grad[full] = wide * weights[:, None]
    weight_grad = np.zeros(probs.size, probs.dtype)
    weight_grad[full] = np.einsum("mh,mh->m", permuted_tokens[full].astype(np.float32), wide)
    return row_grad, weight_grad.reshape(probs.shape)
