"""The two operators on arrays: check everything, choose the kernel, run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, calls, checks, threads
from .arrays import like
from .checks import Attributes, Given
from .contract import FINALIZE_ROUTING_V2_GRAD, TOKEN_UNPERMUTE_GRAD, Operator


def token_unpermute_grad(
    permuted_tokens: Any,
    unpermuted_tokens_grad: Any,
    sorted_indices: Any,
    probs: Any = None,
    padded_mode: bool = False,
    restore_shape: Any = None,
    *,
    out: tuple[Any, Any] | None = None,
    check_indices: bool = True,
) -> tuple[Any, Any]:
    """Gradients of token_unpermute: of the permuted tokens, and of the probabilities.

    Arguments are NumPy arrays (bfloat16 from ml_dtypes) or CPU arrays with DLPack such as torch tensors,
    read-only or strided as they please. D and P are float16, bfloat16 or float32. R tokens, K choices per
    token, N = R * K.

    permuted_tokens: (M, H), D; M = N, or fewer rows where the forward dropped those past M.
    unpermuted_tokens_grad: (R, H), D; gradient of the forward's output. Its kind of array is that of the
        results.
    sorted_indices: (N,), int32; the row of each slot (slot t * K + k is choice k of token t), distinct, in
        [0, N-1].
    probs: (R, K), P; without it every choice weighs one, and K = N / R.
    padded_mode: True when every expert takes the same number of rows. sorted_indices is then (M,): the token
        each row came from, in [0, R-1], or -1 for an empty row; and probs has M elements in any shape.
    restore_shape: with padded_mode, the shape of unpermuted_tokens_grad, or None.
    out: a pair of C-contiguous arrays to write to and return, with None as the second without probs.
    check_indices: False skips the check of the values of sorted_indices. Values out of range are then rows
        that do not exist, and of a repeated row one slot wins.

    Returns (permuted_tokens_grad, probs_grad): (M, H) of D, and the shape of probs of P or None without
    probs.
    Raises ValueError or TypeError before anything is written; see docs/operators.md for what is refused.
    """
    given = (permuted_tokens, unpermuted_tokens_grad, sorted_indices, probs)
    return _gradients(TOKEN_UNPERMUTE_GRAD, given, (padded_mode, restore_shape), out, check_indices)


def finalize_routing_v2_grad(
    grad_y: Any,
    expanded_row_idx: Any,
    expanded_x: Any = None,
    scales: Any = None,
    expert_idx: Any = None,
    bias: Any = None,
    drop_pad_mode: int = 0,
    active_num: int = 0,
    expert_num: int = 0,
    expert_capacity: int = 0,
    *,
    out: tuple[Any, Any] | None = None,
    check_indices: bool = True,
) -> tuple[Any, Any]:
    """Gradients of finalize_routing_v2: of the experts' outputs, and of the scales.

    Arguments are NumPy arrays (bfloat16 from ml_dtypes) or CPU arrays with DLPack such as torch tensors,
    read-only or strided as they please. D and P are float16, bfloat16 or float32. R tokens, K choices per
    token, N = R * K.

    grad_y: (R, H), D; gradient of the forward's output. Its kind of array is that of the results.
    expanded_row_idx: (N,), int32; the row of each slot (slot t * K + k is choice k of token t), distinct.
        drop_pad_mode 0: in [0, N-1]. drop_pad_mode 1: in [-1, E*C-1], where -1 is a dropped slot and may
            repeat.
    expanded_x: (M, H), or (E, C, H) with drop_pad_mode 1, D; the experts' outputs, needed with scales.
    scales: (R, K), P; without it every choice weighs one, and K = N / R.
    expert_idx: (R, K), int32; the expert of each choice, in [0, E-1], needed with bias.
    bias: (E, H), D; what the forward adds to the rows of each expert. It enters grad_scales, of dropped slots
        too.
    drop_pad_mode: 0 dropless, 1 every expert has room for C rows.
    active_num: with drop_pad_mode 0 and 0 < active_num < N, the number M of rows that exist; otherwise M = N.
    expert_num, expert_capacity: E and C, both positive with drop_pad_mode 1 and ignored without. M = E * C.
    out: a pair of C-contiguous arrays to write to and return, with None as the second without scales.
    check_indices: False skips the check of the values of expanded_row_idx and expert_idx. Values out of range
        are then rows that do not exist, and of a repeated row one slot wins.

    Returns (grad_expanded_x, grad_scales): the shape of expanded_x, D, and (R, K) of P or None without
    scales.
    Raises ValueError or TypeError before anything is written; see docs/operators.md for what is refused.
    """
    given = (grad_y, expanded_row_idx, expanded_x, scales, expert_idx, bias)
    attributes = (drop_pad_mode, active_num, expert_num, expert_capacity)
    return _gradients(FINALIZE_ROUTING_V2_GRAD, given, attributes, out, check_indices)


def _gradients(op: Operator, given: Given, attributes: Attributes, out: Any, check_indices: bool) -> tuple[Any, Any]:
    """Check everything, run the kernel, hand back what it wrote."""
    call, arrays, outputs = calls.prepare(op, given, attributes, out, check_indices)
    bad = _native.find_bad_values(arrays, call.values)
    if bad is not None:
        checks.refuse_values(op, arrays, call.values[bad[0]], bad[1])
    if outputs is None:
        outputs = tuple([_native.empty_aligned(shape, dtype) for shape, dtype in call.results])
        outputs = outputs if len(outputs) == 2 else (*outputs, None)
    elif not _native.fit_for_output(outputs, arrays):
        checks.output_memory(op, outputs, arrays)

    if call.kernel is None:
        outputs[0][...] = 0
    else:
        count = threads.for_bytes(call.nbytes)
        _native.launch(call.kernel, (*arrays, *outputs), call.tensors, call.sizes, count)
    if out is not None:
        return out[0], out[1]
    gradient = given[op.gradient]
    if type(gradient) is np.ndarray:
        return outputs
    return like(gradient, outputs[0]), None if outputs[1] is None else like(gradient, outputs[1])
