"""The two operators on arrays: check everything, choose the kernel, run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, checks, kernels, threads
from .arrays import Array, like
from .checks import Arrays, Sizes
from .contract import FINALIZE_ROUTING_V2_GRAD, FLOATS, TOKEN_UNPERMUTE_GRAD, Operator


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
    op = TOKEN_UNPERMUTE_GRAD
    given = (permuted_tokens, unpermuted_tokens_grad, sorted_indices, probs)
    checks.require(op, given)
    pair = None if out is None else checks.output_pair(op, out, given)
    if padded_mode is not True and padded_mode is not False:
        padded_mode = checks.flag(op, "padded_mode", padded_mode)
    if check_indices is not True and check_indices is not False:
        check_indices = checks.flag(op, "check_indices", check_indices)
    arrays = checks.read(op, given)
    outputs = None if pair is None else checks.read_outputs(op, pair, arrays)

    sizes = checks.settle(op, int(padded_mode), (padded_mode, restore_shape), arrays)
    results = _results(op, int(padded_mode), sizes, arrays, outputs, check_indices)
    _run(op, int(padded_mode), arrays, results, sizes)
    return _hand_back(given[op.gradient], results, pair)


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
    op = FINALIZE_ROUTING_V2_GRAD
    given = (grad_y, expanded_row_idx, expanded_x, scales, expert_idx, bias)
    checks.require(op, given)
    pair = None if out is None else checks.output_pair(op, out, given)
    numbers = (drop_pad_mode, active_num, expert_num, expert_capacity)
    for number in numbers:
        if type(number) is not int:
            drop_pad_mode, active_num, expert_num, expert_capacity = checks.integers(op, numbers)
            break
    if check_indices is not True and check_indices is not False:
        check_indices = checks.flag(op, "check_indices", check_indices)
    arrays = checks.read(op, given)
    outputs = None if pair is None else checks.read_outputs(op, pair, arrays)

    column = 1 if drop_pad_mode else 0
    sizes = checks.settle(op, column, (drop_pad_mode, active_num, expert_num, expert_capacity), arrays)
    results = _results(op, column, sizes, arrays, outputs, check_indices)
    _run(op, column, arrays, results, sizes)
    return _hand_back(given[op.gradient], results, pair)


def _results(
    op: Operator, column: int, sizes: Sizes, arrays: Arrays, outputs: Arrays | None, check_indices: bool
) -> tuple[Array, Array | None]:
    """Check values, and say where the kernel writes: the caller's outputs, found fit for that, or new arrays."""
    shapes = checks.output_shapes(op, column, sizes, arrays)
    if outputs is not None:
        checks.output_fits(op, outputs, shapes)
    if check_indices:
        checks.indices(op, column, arrays, sizes)
    gradient, weights = arrays[op.gradient], arrays[op.weights]
    if outputs is not None:
        checks.output_memory(op, outputs, arrays)
        return outputs
    rows = _native.empty_aligned(shapes[0], gradient.dtype)
    return rows, None if weights is None else _native.empty_aligned(shapes[1], weights.dtype)


def _run(op: Operator, column: int, arrays: Arrays, results: tuple[Array, Array | None], sizes: Sizes) -> None:
    """Launch the kernel of the call's mode, for the dtypes of checked `arrays` and for K and H of `sizes`."""
    rows, weight_grad = results
    if sizes.get("N") == 0:  # no slots at all: no row is named, there are no weights, and K may be anything
        rows[...] = 0
        return
    weight = "" if weight_grad is None else FLOATS[weight_grad.dtype]
    mode = op.modes[column, weight_grad is not None, arrays[op.also] is not None]
    kernel = kernels.find(op, mode, FLOATS[rows.dtype], weight)
    tensors = _native.dense(kernel.tensors((*arrays, *results)))
    capsule = kernel.specialised.get((sizes["K"], sizes["H"]), kernel.generic)
    _native.launch(capsule, tensors, kernel.sizes(sizes), threads.for_bytes(_native.nbytes(tensors)))


def _hand_back(gradient: Any, results: tuple[Array, Array | None], pair: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """The caller's own `out`, or the results as the kind of array that the gradient is."""
    if pair is not None:
        return pair
    if type(gradient) is np.ndarray:
        return results
    rows, weight_grad = results
    return like(gradient, rows), None if weight_grad is None else like(gradient, weight_grad)
