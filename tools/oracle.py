"""The NumPy oracle: both gradients, and the forward operators they belong to.

Every backend is held against this module. It is written from the mathematics of the operator
contract (operators.md, sections 1 to 4) and knows neither the compiler nor the run time: plain loops
over tokens and choices, rows selected by index, nothing masked by multiplication. Input is assumed
valid; refusing bad input is the run time's work.

Symbols: R tokens, K choices per token, N = R * K slots, H hidden size, M permuted rows, E experts,
C rows per expert, D the data dtype and P the weight dtype (each float16, bfloat16 or float32).
float64 is accepted for either as well, so that finite differences can be taken through the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "Expected",
    "finalize_routing_v2_forward",
    "finalize_routing_v2_grad",
    "round_once",
    "token_unpermute_forward",
    "token_unpermute_grad",
]

Array: TypeAlias = npt.NDArray[Any]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True, eq=False)
class Expected:
    """What one gradient call has to return, and how far the weight gradient may be from it.

    Attributes:
        row_grad: gradient of the permuted rows, dtype D, determined to the last bit: shape (M, H), or
            (E, C, H) for finalize_routing_v2_grad with drop_pad_mode 1.
        weight_grad_exact: gradient of probs / scales before any rounding, float64, shape of the
            weights; None in modes without weights.
        magnitude: A = sum_j |x_j + b_j| * |g_j| for each weight, float64, the scale of the error bound
            (section 4); None in modes without weights.
        weight_dtype: P, or None in modes without weights.
        hidden: H, the number of terms in each sum.
    """

    row_grad: Array
    weight_grad_exact: npt.NDArray[np.float64] | None
    magnitude: npt.NDArray[np.float64] | None
    weight_dtype: np.dtype[Any] | None
    hidden: int

    @property
    def weight_grad(self) -> Array | None:
        """The exact weight gradient rounded once to P, shape of the weights; None without weights."""
        if self.weight_grad_exact is None or self.weight_dtype is None:
            return None
        return round_once(self.weight_grad_exact, self.weight_dtype)

    @property
    def copied(self) -> bool:
        """Whether the mode copies gradient rows bit for bit, as all modes without weights do."""
        return self.weight_dtype is None


def round_once(values: npt.NDArray[np.float64], dtype: npt.DTypeLike) -> Array:
    """Round float64 to ``dtype`` once, to nearest with ties to even.

    ml_dtypes converts float64 to bfloat16 through float32, which rounds twice: 1 + 2**-8 + 2**-40
    becomes 1 rather than 1 + 2**-7. Rounding to odd on the way keeps the second rounding right.

    Args:
        values: float64, any shape.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        An array of ``dtype`` and the same shape; overflow gives infinity, NaN stays NaN.
    """
    with np.errstate(all="ignore"):
        if np.dtype(dtype) != _BFLOAT16:
            return values.astype(dtype)
        return _round_to_odd(values).astype(_BFLOAT16)


def _round_to_odd(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """float64 to float32: of the two neighbours of an inexact value, the one with an odd last bit."""
    nearest = values.astype(np.float32)
    widened = nearest.astype(np.float64)
    inexact = (widened != values) & ~np.isnan(values)
    even = (nearest.view(np.uint32) & 1) == 0
    towards = np.where(widened < values, np.float32(np.inf), np.float32(-np.inf))
    return np.where(inexact & even, np.nextafter(nearest, towards), nearest)


def token_unpermute_grad(
    permuted_tokens: Array,
    unpermuted_tokens_grad: Array,
    sorted_indices: Array,
    probs: Array | None = None,
    padded_mode: bool = False,
    restore_shape: tuple[int, int] | None = None,
) -> Expected:
    """Gradient of the unpermute operator (operators.md, section 1; slot maps: section 3).

    Args:
        permuted_tokens: (M, H), dtype D. Without padded_mode M = N, or less after truncation.
        unpermuted_tokens_grad: (R, H), dtype D.
        sorted_indices: int32. Without padded_mode (N,): destination row of slot i = token * K + choice.
            With it (M,): the token that row came from, or -1 for an empty row.
        probs: dtype P; (R, K), with padded_mode any shape of M elements. None means weights of 1.
        padded_mode: whether the map goes from rows to tokens.
        restore_shape: (R, H), redundant here.

    Returns:
        Expected with row_grad (M, H), and weight_grad_exact of the shape of probs.
    """
    del restore_shape
    if not padded_mode:
        rows = permuted_tokens.shape[0]
        return _slot_gradients(unpermuted_tokens_grad, sorted_indices, rows, permuted_tokens, probs)
    return _padded_gradients(permuted_tokens, unpermuted_tokens_grad, sorted_indices, probs)


def finalize_routing_v2_grad(
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
) -> Expected:
    """Gradient of finalize routing (operators.md, sections 2 and 3).

    Args:
        grad_y: (R, H), dtype D.
        expanded_row_idx: (N,) int32, row of slot i = token * K + choice; -1 for a dropped slot in mode 1.
        expanded_x: (M, H), in mode 1 (E, C, H), dtype D. Needed with scales.
        scales: (R, K), dtype P. None means weights of 1.
        expert_idx: (R, K) int32. Needed with bias.
        bias: (E, H), dtype D. Used only with scales.
        drop_pad_mode: 0 dropless, 1 drop and pad.
        active_num: the row limit M of mode 0 where 0 < active_num < N; otherwise M = N.
        expert_num: E, mode 1 only.
        expert_capacity: C, mode 1 only; M = E * C.

    Returns:
        Expected with row_grad (M, H), in mode 1 (E, C, H), and weight_grad_exact (R, K).

    Raises:
        ValueError: scales without expanded_x.
    """
    hidden = grad_y.shape[1]
    slots = expanded_row_idx.size
    shape: tuple[int, ...]
    if drop_pad_mode == 1:
        rows = expert_num * expert_capacity
        shape = (expert_num, expert_capacity, hidden)
    else:
        rows = active_num if 0 < active_num < slots else slots
        shape = (rows, hidden)
    flat_x = None if expanded_x is None else expanded_x.reshape(rows, hidden)
    found = _slot_gradients(grad_y, expanded_row_idx, rows, flat_x, scales, expert_idx, bias)
    return Expected(found.row_grad.reshape(shape), found.weight_grad_exact, found.magnitude, found.weight_dtype, hidden)


def _slot_gradients(
    grad: Array,
    index: Array,
    rows: int,
    expanded_x: Array | None,
    scales: Array | None,
    expert_idx: Array | None = None,
    bias: Array | None = None,
) -> Expected:
    """Section 3: all maps from slots to rows. A slot is inactive when its index is -1 or >= rows."""
    tokens, hidden = grad.shape
    row_grad = np.zeros((rows, hidden), grad.dtype)
    if scales is None:
        for slot, row in enumerate(index):
            if 0 <= row < rows:
                _copy_bits(row_grad[row], grad[slot // (index.size // tokens)])
        return Expected(row_grad, None, None, None, hidden)

    if expanded_x is None:
        raise ValueError("expanded_x is needed with scales: expected an array, got None")
    topk = scales.shape[1]
    exact = np.zeros(scales.shape, np.float64)
    magnitude = np.zeros(scales.shape, np.float64)
    with np.errstate(all="ignore"):
        for token in range(tokens):
            grad_row = _widen(grad[token])
            for choice in range(topk):
                row = index[token * topk + choice]
                active = 0 <= row < rows
                if active:
                    weight = _widen(scales[token, choice])
                    row_grad[row] = (grad_row * weight).astype(grad.dtype)
                addends = [expanded_x[row]] if active else []
                if bias is not None and expert_idx is not None:
                    addends.append(bias[expert_idx[token, choice]])
                if addends:
                    exact[token, choice], magnitude[token, choice] = _dot(addends, grad_row)
    return Expected(row_grad, exact, magnitude, scales.dtype, hidden)


def _padded_gradients(permuted: Array, grad: Array, index: Array, probs: Array | None) -> Expected:
    """Section 1, padded_mode: the map goes from row to token, and the gradient gathers."""
    rows, hidden = permuted.shape
    row_grad = np.zeros((rows, hidden), grad.dtype)
    if probs is None:
        for row, token in enumerate(index):
            if token >= 0:
                _copy_bits(row_grad[row], grad[token])
        return Expected(row_grad, None, None, None, hidden)

    weights = probs.reshape(rows)
    exact = np.zeros(rows, np.float64)
    magnitude = np.zeros(rows, np.float64)
    with np.errstate(all="ignore"):
        for row, token in enumerate(index):
            if token >= 0:
                grad_row = _widen(grad[token])
                row_grad[row] = (grad_row * _widen(weights[row])).astype(grad.dtype)
                exact[row], magnitude[row] = _dot([permuted[row]], grad_row)
    return Expected(row_grad, exact.reshape(probs.shape), magnitude.reshape(probs.shape), probs.dtype, hidden)


def _widen(values: Any) -> Array:
    """f32(values), section 3; float64 stays as it is for finite differences."""
    return np.asarray(values, np.promote_types(np.float32, np.asarray(values).dtype))


def _dot(addends: list[Array], grad_row: Array) -> tuple[float, float]:
    """sum_j (sum of addends)_j * g_j and the same sum over absolute values, in float64."""
    total = sum((row.astype(np.float64) for row in addends[1:]), addends[0].astype(np.float64))
    terms = total * grad_row.astype(np.float64)
    return float(terms.sum()), float(np.abs(terms).sum())


def _copy_bits(target: Array, source: Array) -> None:
    """Copy a row as unsigned integers, so that no conversion can quieten or change a NaN."""
    bits = np.dtype(f"u{source.dtype.itemsize}")
    target.view(bits)[...] = np.ascontiguousarray(source).view(bits)


def token_unpermute_forward(
    permuted_tokens: Array,
    sorted_indices: Array,
    probs: Array | None = None,
    padded_mode: bool = False,
    restore_shape: tuple[int, int] | None = None,
) -> npt.NDArray[np.float64]:
    """The unpermute operator in float64; its derivative is token_unpermute_grad.

    Args:
        permuted_tokens: (M, H), any float dtype.
        sorted_indices: as for token_unpermute_grad.
        probs: as for token_unpermute_grad.
        padded_mode: False combines K rows into each token; True scatter-adds each row to its token.
        restore_shape: (R, H). Needed with padded_mode; otherwise read when probs is None, where leaving
            it out means K = 1.

    Returns:
        unpermuted tokens, (R, H) float64.

    Raises:
        ValueError: padded_mode without restore_shape.
    """
    if not padded_mode:
        tokens = sorted_indices.size if restore_shape is None else restore_shape[0]
        weights = _unit_weights(tokens, sorted_indices) if probs is None else probs
        return _combine(permuted_tokens, sorted_indices, weights)
    if restore_shape is None:
        raise ValueError("restore_shape is needed with padded_mode: expected (R, H), got None")
    rows = permuted_tokens.shape[0]
    flat_probs = np.ones(rows) if probs is None else probs.reshape(rows).astype(np.float64)
    result = np.zeros(restore_shape, np.float64)
    for row, token in enumerate(sorted_indices):
        if token >= 0:
            result[token] += permuted_tokens[row].astype(np.float64) * flat_probs[row]
    return result


def finalize_routing_v2_forward(
    expanded_x: Array,
    expanded_row_idx: Array,
    scales: Array | None = None,
    expert_idx: Array | None = None,
    bias: Array | None = None,
    tokens: int | None = None,
) -> npt.NDArray[np.float64]:
    """Finalize routing in float64; its derivative is finalize_routing_v2_grad.

    y[t] = sum_k scales[t, k] * (x[row of slot (t, k)] + bias[expert_idx[t, k]]), where the x term is left
    out for an inactive slot and the bias term is not (operators.md, section 3).

    Args:
        expanded_x: (M, H) or (E, C, H), any float dtype; slots with an index >= M are inactive.
        expanded_row_idx: (N,) int32, row of slot i, or -1.
        scales: (R, K); None means weights of 1.
        expert_idx: (R, K) int32, needed with bias.
        bias: (E, H).
        tokens: R, read without scales only; None means K = 1.

    Returns:
        y, (R, H) float64.
    """
    flat_x = expanded_x.reshape(-1, expanded_x.shape[-1])
    if scales is None:
        scales = _unit_weights(expanded_row_idx.size if tokens is None else tokens, expanded_row_idx)
        bias = None
    return _combine(flat_x, expanded_row_idx, scales, expert_idx, bias)


def _unit_weights(tokens: int, index: Array) -> npt.NDArray[np.float64]:
    """Weights of 1 for N slots of R tokens, (R, N / R)."""
    return np.ones((tokens, index.size // tokens if tokens else 1), np.float64)


def _combine(
    rows: Array, index: Array, weights: Array, expert_idx: Array | None = None, bias: Array | None = None
) -> npt.NDArray[np.float64]:
    """Weighted sum over the K slots of each token, in float64."""
    tokens, topk = weights.shape
    result = np.zeros((tokens, rows.shape[1]), np.float64)
    for slot, row in enumerate(index):
        token, choice = divmod(slot, topk)
        addend = np.zeros(rows.shape[1], np.float64)
        if 0 <= row < rows.shape[0]:
            addend += rows[row].astype(np.float64)
        if bias is not None and expert_idx is not None:
            addend += bias[expert_idx[token, choice]].astype(np.float64)
        result[token] += np.float64(weights[token, choice]) * addend
    return result
