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

DTYPES = {dtype: dtype for dtype in FLOATS}
"""Each dtype of data and weights as the object that results have: a caller's own may carry metadata."""

MOST = 4096
"""So many calls are remembered; then all are forgotten."""

_remembered: dict[tuple[str, str, bytes], Call] = {}
"""By operator, forced variant and `_native.signature`; calls that have none are examined each time."""


class Call(NamedTuple):
    """How to run a call whose types, dtypes, shapes and attributes are sound."""

    values: tuple[tuple[int, int, int, bool], ...]
    """What to hold indices against: rows of `checks.values`; empty where the caller asked for no check."""
    results: Results
    kernel: object = None
    """Capsule for `_native.launch`; None without slots, where the row gradient is zero."""
    tensors: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    nbytes: int = 0
    """Bytes of the arrays that the kernel reads or writes."""


def prepare(
    op: Operator, given: Given, attributes: Attributes, out: Any, check_indices: bool
) -> tuple[Call, Arrays, Arrays | None]:
    """How to run a call, its inputs and its outputs as NumPy arrays; no outputs where the caller brought none.

    ValueError and TypeError for whatever is wrong with types, dtypes, shapes and attributes; then ImportError,
    RuntimeError and ValueError of `kernels.find`.
    """
    variant = kernels.forced_variant
    arrays = _native.exchange_views(given, DLPACK_DTYPES)
    outputs = _native.exchange_views(tuple(out), DLPACK_DTYPES) if isinstance(out, (tuple, list)) else out
    signature = _native.signature((*attributes, check_indices), arrays, outputs)
    if signature is None:
        return examine(op, arrays, attributes, out, check_indices, variant)
    key = op.name, variant, signature
    call = _remembered.get(key)
    if call is None:
        call, arrays, outputs = examine(op, arrays, attributes, out, check_indices, variant)
        if len(_remembered) >= MOST:
            _remembered.clear()
        _remembered[key] = call
    return call, arrays, outputs


def examine(
    op: Operator, given: Given, attributes: Attributes, out: Any, check_indices: bool, variant: str = ""
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
    values = checks.values(op, column, arrays, sizes) if check_indices else ()
    dtypes = [DTYPES[arrays[position].dtype] for position in (op.gradient, op.weights) if arrays[position] is not None]
    call = Call(values, tuple(zip(shapes, dtypes, strict=True)))
    if sizes.get("N") != 0:  # without slots no row is named, there are no weights, and K may be anything
        call = _with_kernel(call, op, column, arrays, sizes, variant)
    return call, arrays, outputs


def _with_kernel(call: Call, op: Operator, column: int, arrays: Arrays, sizes: Sizes, variant: str) -> Call:
    """The call with the kernel of its mode for its dtypes and for K and H."""
    mode = op.modes[column, arrays[op.weights] is not None, arrays[op.also] is not None]
    data, *weight = [FLOATS[dtype] for _, dtype in call.results]
    found = kernels.find(op, mode, data, "".join(weight), variant)
    nbytes = [0 if array is None else array.nbytes for array in arrays]
    nbytes += [math.prod(shape) * dtype.itemsize for shape, dtype in call.results]
    return call._replace(
        kernel=found.specialised.get((sizes["K"], sizes["H"]), found.generic),
        tensors=found.tensors,
        sizes=tuple([sizes[symbol] for symbol in found.sizes]),
        nbytes=sum(nbytes[position] for position in found.tensors),
    )
