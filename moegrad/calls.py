"""What follows from the types, dtypes, shapes and attributes of a call, found by the checks once and then remembered.

A step of training makes the same calls as the step before. Nothing is remembered of values and memory: those are
looked at in every call.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _native, checks, kernels
from .arrays import DLPACK_DTYPES
from .checks import Arrays, Attributes, Given, Sizes
from .contract import FLOATS, Operator

Results = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shape and dtype of the row gradient and, where there are weights, of the weight gradient."""

MOST = 4096
"""So many calls are remembered; then all are forgotten."""

_remembered: dict[tuple[str, str, bytes], Call] = {}
"""By operator, forced variant and `_native.signature`."""


class Call(NamedTuple):
    """How to run a call whose types, dtypes, shapes and attributes are sound."""

    values: tuple[tuple[int, int, int, bool], ...]
    """What to hold indices against: rows of `checks.values`; empty where the caller asked for no check."""
    results: Results
    kernel: object | None
    """Capsule for `_native.launch`; None without slots, where the row gradient is zero."""
    tensors: tuple[int, ...]
    sizes: tuple[int, ...]
    nbytes: int
    """Bytes of the arrays that the kernel reads or writes."""


def prepare(
    op: Operator, given: Given, attributes: Attributes, out: Any, check_indices: bool
) -> tuple[Call, Arrays, Arrays | None]:
    """How to run a call, its inputs and its outputs as NumPy arrays; no outputs where the caller brought none.

    ValueError and TypeError for whatever is wrong with types, dtypes, shapes and attributes.
    """
    arrays, outputs, options = given, out, (*attributes, check_indices)
    signature = _native.signature(options, given, out)
    if signature is None:
        views = _native.exchange_views(given, out, DLPACK_DTYPES)
        signature = None if views is None else _native.signature(options, *views)
        if views is None or signature is None:
            return check(op, given, attributes, out, check_indices)
        arrays, outputs = views
    key = op.name, kernels.only, signature
    call = _remembered.get(key)
    if call is not None:
        return call, arrays, outputs
    call, arrays, outputs = check(op, given, attributes, out, check_indices)
    if len(_remembered) >= MOST:
        _remembered.clear()
    _remembered[key] = call
    return call, arrays, outputs


def check(
    op: Operator, given: Given, attributes: Attributes, out: Any, check_indices: bool
) -> tuple[Call, Arrays, Arrays | None]:
    """`prepare` as for a call that was not seen before."""
    checks.require(op, given)
    pair = None if out is None else checks.output_pair(op, out, given)
    attributes = checks.attributes(op, attributes)
    check_indices = checks.flag(op, "check_indices", check_indices)
    arrays = checks.read(op, given)
    outputs = None if pair is None else checks.read_outputs(op, pair, arrays)

    column = 1 if attributes[0] else 0
    sizes = checks.settle(op, column, attributes, arrays)
    shapes = checks.output_shapes(op, column, sizes, arrays)
    if outputs is not None:
        checks.output_fits(op, outputs, shapes)
    dtypes = [arrays[position].dtype for position in (op.gradient, op.weights) if arrays[position] is not None]
    results = tuple(zip(shapes, dtypes, strict=True))
    values = checks.values(op, column, arrays, sizes) if check_indices else ()
    return Call(values, results, *_kernel(op, column, arrays, sizes, results)), arrays, outputs


def _kernel(
    op: Operator, column: int, arrays: Arrays, sizes: Sizes, results: Results
) -> tuple[object | None, tuple[int, ...], tuple[int, ...], int]:
    """The kernel of the call's mode for its dtypes and for K and H, and what it works on: the end of a `Call`."""
    if sizes.get("N") == 0:  # no slots at all: no row is named, there are no weights, and K may be anything
        return None, (), (), 0
    data, weights = arrays[op.gradient].dtype, arrays[op.weights]
    mode = op.modes[column, weights is not None, arrays[op.also] is not None]
    found = kernels.find(op, mode, FLOATS[data], "" if weights is None else FLOATS[weights.dtype])
    kernel = found.specialised.get((sizes["K"], sizes["H"]), found.generic)
    nbytes = [0 if array is None else array.nbytes for array in arrays]
    nbytes += [math.prod(shape) * dtype.itemsize for shape, dtype in results]
    touched = sum(nbytes[position] for position in found.tensors)
    return kernel, found.tensors, tuple([sizes[symbol] for symbol in found.sizes]), touched
