"""What is refused, in which order, and in which words (docs/operators.md).

Every function reads the tables of `contract` and returns quickly when all is well, which is why messages are
put together in functions of their own. Messages say operator, argument, what was expected and what came:
ValueError for missing arguments, shapes and values, TypeError for types and dtypes.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from . import _native
from .arrays import Array, as_array
from .contract import DATA, FINALIZE_ROUTING_V2_GRAD, INDEX, TOKEN_UNPERMUTE_GRAD, Argument, Operator

Given = tuple[Any, ...]
Arrays = tuple[Any, ...]
"""NumPy arrays in the order of a table, None where an argument is absent."""
Sizes = dict[str, int]
Attributes = tuple[Any, ...]
"""The arguments that are no arrays, in the order of `Operator.attributes`."""


# ---- first: what is missing ----


def require(op: Operator, given: Given) -> None:
    """ValueError when a necessary input is None."""
    missing = _native.first_missing(op.needs, given)
    if missing >= 0:
        need = op.needs[missing]
        condition = "" if need == missing else f" with {op.inputs[need].name}"
        raise ValueError(f"{op.name}: {op.inputs[missing].name}: expected an array{condition}, got None")


def output_pair(op: Operator, out: Any, given: Given) -> tuple[Any, Any]:
    """The two outputs the caller brought; the second is None in modes without weights.

    TypeError: `out` is not a pair. ValueError: an output is missing, or given where there is none.
    """
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        names = ", ".join(argument.name for argument in op.outputs)
        got = f"{len(out)} elements" if isinstance(out, (tuple, list)) else type(out).__name__
        raise TypeError(f"{op.name}: out: expected a pair ({names}), got {got}")
    first, second = out
    weighted = given[op.weights] is not None
    if first is None or (second is None) is weighted:
        _refuse_pair(op, first, second)
    return first, second


def _refuse_pair(op: Operator, first: Any, second: Any) -> NoReturn:
    rows, weights = op.outputs
    if first is None:
        raise ValueError(f"{op.name}: {rows.name} in out: expected an array, got None")
    where = f"{op.name}: {weights.name} in out"
    if second is None:
        raise ValueError(f"{where}: expected an array with {weights.needed}, got None")
    raise ValueError(f"{where}: expected None without {weights.needed}, got {type(second).__name__}")


# ---- second: types and dtypes ----


def integer(op: Operator, name: str, value: Any) -> int:
    """`value` as a Python int; NumPy's integers are welcome, bools are not."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{op.name}: {name}: expected an integer, got {value!r} ({type(value).__name__})")
    return operators.index(value)


def flag(op: Operator, name: str, value: Any) -> bool:
    """`value` as a bool; integers and strings are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{op.name}: {name}: expected True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def attributes(op: Operator, values: Attributes) -> Attributes:
    """The attributes as Python's own ints and bools; TypeError for other types. Rules look at sequences of ints."""
    check = {"int": integer, "bool": flag}
    named = zip(op.attributes, values, strict=True)
    return tuple([check[kind](op, name, value) if kind in check else value for (name, kind), value in named])


def read(op: Operator, given: Given) -> Arrays:
    """The inputs as NumPy arrays, None where absent; TypeError unless the dtypes are those of their roles."""
    arrays = given if _native.all_numpy(given) else _convert(op, op.inputs, given, "")
    data = arrays[op.gradient].dtype
    allowed = op.dtypes.get(data)
    if allowed is None:
        _refuse_dtype(op, op.inputs[op.gradient], data, data)
    odd = _native.first_odd_dtype(arrays, allowed)
    if odd >= 0:
        _refuse_dtype(op, op.inputs[odd], arrays[odd].dtype, data)
    return arrays


def read_outputs(op: Operator, pair: tuple[Any, Any], arrays: Arrays) -> Arrays:
    """The caller's outputs as NumPy arrays on the same memory; TypeError unless of the results' dtypes."""
    outputs = pair if _native.all_numpy(pair) else _convert(op, op.outputs, pair, " in out")
    sources = (arrays[op.gradient], arrays[op.weights])
    for argument, output, source in zip(op.outputs, outputs, sources, strict=True):
        if output is not None and source is not None and output.dtype != source.dtype:
            where = f"{op.name}: {argument.name} in out"
            raise TypeError(f"{where}: expected dtype {source.dtype}, got {_spell_dtype(output.dtype)}")
    return outputs


def _convert(op: Operator, arguments: tuple[Argument, ...], given: Given, place: str) -> tuple[Any, ...]:
    return tuple([
        None if value is None else as_array(f"{op.name}: {argument.name}{place}", value)
        for argument, value in zip(arguments, given, strict=True)
    ])  # fmt: skip


def _refuse_dtype(op: Operator, argument: Argument, dtype: np.dtype[Any], data: np.dtype[Any]) -> NoReturn:
    """TypeError for an input of `dtype` in a call whose data dtype is `data`."""
    gradient, hint = op.inputs[op.gradient], ""
    if argument.role == INDEX:
        expected = "int32"
        hint = " (use array.astype(numpy.int32))" if dtype.kind in "iu" else ""
    elif argument.role == DATA and argument is not gradient:
        expected = f"{data}, the dtype of {gradient.name}"
    else:
        expected = "float16, bfloat16 or float32"
    if not dtype.isnative:
        hint = f" (another byte order than this machine's; use array.astype({dtype.name!r}))"
    elif dtype == np.uint16 and argument.role != INDEX:
        hint = " (bits of bfloat16 need their dtype: use array.view(ml_dtypes.bfloat16))"
    got = _spell_dtype(dtype)
    raise TypeError(f"{op.name}: {argument.name}: expected dtype {expected}, got {got}{hint}")


def _spell_dtype(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, with its byte order where that is the point."""
    return dtype.name if dtype.isnative else f"{dtype.str} ({dtype.name} in reverse byte order)"


# ---- third: ranks and shapes ----


def settle(op: Operator, column: int, attributes: Attributes, arrays: Arrays) -> Sizes:
    """Every size of a call, by the rules of its operator and mode in their order.

    `column` is 0 in ordinary and 1 in capacity mode. All rules have the same parameters; each reads what it needs,
    and adds sizes or refuses the call.
    """
    sizes: Sizes = {}
    for rule in _STEPS[op][column]:
        rule(op, column, attributes, arrays, sizes)
    return sizes


def bind(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """Read the sizes off the shapes of the inputs; ValueError where two of them disagree, or H or E is 0."""
    odd = _native.first_odd_shape(arrays, op.shapes[column], sizes)
    if odd >= 0:
        _refuse_odd_shape(op, op.inputs[odd].name, op.shapes[column][odd], arrays[odd].shape, sizes)
    if sizes["H"] == 0:
        _refuse_shape(op, op.inputs[op.gradient].name, "a hidden size H of at least 1", (sizes["R"], 0))
    if sizes.get("E") == 0:
        _refuse_shape(op, "bias", "at least one expert", (0, sizes["H"]))


def slots(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """Settle K from the weights, or as N / R without them; ValueError unless N = R * K."""
    tokens, count = sizes["R"], sizes["N"]
    topk = sizes.get("K")
    if topk is None:
        topk, rest = divmod(count, tokens) if tokens else (1, count)
        if rest:
            indices = op.inputs[op.indices].name
            _refuse_shape(op, indices, f"N = R * K elements, a multiple of R = {tokens}", (count,))
        sizes["K"] = topk
    elif tokens * topk != count:
        _refuse_slots(op, tokens, topk, count)


def one_slot(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """Settle K where every row is one slot."""
    sizes["K"] = 1


def truncation(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """ValueError when token_unpermute_grad has more permuted rows than slots."""
    if sizes["M"] > sizes["N"]:
        shape = (sizes["M"], sizes["H"])
        _refuse_shape(op, "permuted_tokens", f"at most N = {sizes['N']} rows, one for each slot", shape)


def restored(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """ValueError unless restore_shape, the second attribute, is None or two integers, (R, H)."""
    shape = attributes[1]
    if shape is None:
        return
    expected = f"(R, H) = {(sizes['R'], sizes['H'])}, the shape of unpermuted_tokens_grad"
    try:
        extents = tuple([integer(op, "restore_shape", extent) for extent in shape])
    except TypeError as error:
        raise TypeError(f"{op.name}: restore_shape: expected {expected}, got {shape!r}") from error
    if extents != (sizes["R"], sizes["H"]):
        raise ValueError(f"{op.name}: restore_shape: expected {expected}, got {extents}")


def capacity(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """Settle E, C and M = E * C for drop_pad_mode 1; ValueError for any other mode and for E or C below 1."""
    drop_pad_mode, _, experts, rows = attributes
    if drop_pad_mode != 1:
        raise ValueError(f"{op.name}: drop_pad_mode: expected 0 (dropless) or 1 (drop/pad), got {drop_pad_mode}")
    for name, value in (("expert_num", experts), ("expert_capacity", rows)):
        if value < 1:
            raise ValueError(f"{op.name}: {name}: expected a positive integer with drop_pad_mode 1, got {value}")
    if experts * rows >= 2**63:
        got = f"got {experts} * {rows}"
        raise ValueError(f"{op.name}: expert_capacity: expected expert_num * expert_capacity below 2**63, {got}")
    sizes["E"], sizes["C"], sizes["M"] = experts, rows, experts * rows


def active_rows(op: Operator, column: int, attributes: Attributes, arrays: Arrays, sizes: Sizes) -> None:
    """Settle M for drop_pad_mode 0; ValueError when expanded_x has another number of rows."""
    active_num, count = attributes[1], sizes["N"]
    limited = 0 < active_num < count
    rows = active_num if limited else count
    if sizes.setdefault("M", rows) != rows:
        reason = f"M = active_num = {rows} rows" if limited else f"M = N = {rows} rows, one for each slot"
        _refuse_shape(op, "expanded_x", reason, (sizes["M"], sizes["H"]))


_RULES: dict[str, Callable[[Operator, int, Attributes, Arrays, Sizes], None]] = {
    rule.__name__: rule for rule in (bind, slots, one_slot, truncation, restored, capacity, active_rows)
}
"""The rules that tables name."""

_STEPS = {
    op: tuple(tuple(_RULES[name] for name in names) for names in op.rules)
    for op in (TOKEN_UNPERMUTE_GRAD, FINALIZE_ROUTING_V2_GRAD)
}


def output_shapes(op: Operator, column: int, sizes: Sizes, arrays: Arrays) -> tuple[tuple[int, ...], ...]:
    """The shape of each result: one, and that of the weights where there are any."""
    rows, weights = op.result_shape[column](sizes), arrays[op.weights]
    return (rows,) if weights is None else (rows, weights.shape)


def output_fits(op: Operator, outputs: Arrays, shapes: tuple[tuple[int, ...], ...]) -> None:
    """ValueError when an output of the caller has another shape than the result."""
    for argument, output, shape in zip(op.outputs, outputs, shapes, strict=False):
        if output is not None and output.shape != shape:
            _refuse_shape(op, f"{argument.name} in out", f"shape {shape}", output.shape)


def _refuse_odd_shape(
    op: Operator, name: str, symbols: tuple[str, ...] | None, shape: tuple[int, ...], sizes: Sizes
) -> NoReturn:
    rows = f"M = {sizes['M']} elements in any shape" if symbols is None else ""
    _refuse_shape(op, name, rows or _spell_shape(symbols or (), sizes), shape)


def _refuse_shape(op: Operator, name: str, expected: str, shape: tuple[int, ...]) -> NoReturn:
    raise ValueError(f"{op.name}: {name}: expected {expected}, got shape {shape}")


def _refuse_slots(op: Operator, tokens: int, topk: int, count: int) -> NoReturn:
    """Name the weights when the indices fit the tokens, and the indices otherwise."""
    indices, weights = op.inputs[op.indices].name, op.inputs[op.weights].name
    if tokens and count % tokens == 0:
        expected = f"shape (R, K) = {(tokens, count // tokens)} for the {count} elements of {indices}"
        _refuse_shape(op, weights, expected, (tokens, topk))
    expected = f"N = R * K = {tokens * topk} elements for {weights} of shape {(tokens, topk)}"
    _refuse_shape(op, indices, expected, (count,))


def _spell_shape(symbols: tuple[str, ...], sizes: Sizes) -> str:
    """`shape (R, K) = (4, K)`: the symbols, and what is known of them."""
    names, known = ", ".join(symbols), ", ".join(str(sizes.get(symbol, symbol)) for symbol in symbols)
    comma = "," if len(symbols) == 1 else ""
    return f"shape ({names}{comma})" + (f" = ({known}{comma})" if names != known else "")


# ---- fourth: values of indices ----


def values(op: Operator, column: int, arrays: Arrays, sizes: Sizes) -> tuple[tuple[int, int, int, bool], ...]:
    """Which values the index arguments that are there may have: rows (position, low, high, distinct).

    Those are in [low, high) and, where they have to be distinct, not twice; negative ones in range (-1) may repeat.
    """
    return tuple(
        [
            (position, low, sizes[symbol], distinct)
            for position, low, symbol, distinct in op.values[column]
            if arrays[position] is not None and symbol in sizes
        ]
    )


def refuse_values(op: Operator, arrays: Arrays, wanted: tuple[int, int, int, bool], bad: tuple[int, int]) -> NoReturn:
    """ValueError for an index array that `wanted` is a row of `values` for, and `bad` what `find_bad_index` found."""
    position, low, high, distinct = wanted
    outside, repeated = bad
    name, array = op.inputs[position].name, arrays[position]
    found = array.reshape(-1)
    expected = f"{'distinct ' if distinct else ''}values in [{low}, {high - 1}]"
    if outside >= 0:
        got = f"{found[outside]} at {_place(array, outside)}"
    else:
        first = int(np.flatnonzero(found == found[repeated])[0])
        got = f"{found[repeated]} at {_place(array, first)} and again at {_place(array, repeated)}"
    raise ValueError(f"{op.name}: {name}: expected {expected}, got {got}")


def _place(array: Array, flat: int) -> str:
    """`[3]` or `[1, 0]`: a position in C order as an index of `array`."""
    return str([int(index) for index in np.unravel_index(flat, array.shape)])


# ---- last: the memory of the outputs ----


def output_memory(op: Operator, outputs: Arrays, inputs: Arrays) -> None:
    """ValueError for outputs not contiguous, aligned and writeable, or sharing memory with another array."""
    others = inputs
    for argument, output in zip(op.outputs, outputs, strict=True):
        if output is None:
            continue
        expected = _native.unfit_for_output(output)
        if expected is not None:
            got = f"shape {output.shape}, strides {output.strides}, writeable={output.flags.writeable}"
            raise ValueError(f"{op.name}: {argument.name} in out: expected {expected}, got {got}")
        for position in _native.overlapping_bounds(output, others):
            _refuse_shared(op, argument, output, position, others[position])
        others = (*others, output)


def _refuse_shared(op: Operator, argument: Argument, output: Array, position: int, other: Array | None) -> None:
    """ValueError when the two arrays have an element in common, not only intertwined addresses."""
    if other is not None and np.shares_memory(output, other):
        name = (*op.inputs, *op.outputs)[position].name
        expected = f"expected memory of its own, got some shared with {name}"
        raise ValueError(f"{op.name}: {argument.name} in out: {expected}")
