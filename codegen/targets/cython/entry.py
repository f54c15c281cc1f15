"""The Python entry of a single kernel: typed memoryviews, with their sizes checked against one another."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp

from ...dtypes import from_mlir
from ...signature import SLOTS, TOPK, Tensor, bound_sizes, signature, size_symbols, tokens_symbol
from .plan import Entry, KernelSource
from .scope import tensor_names


def python_entry(func: FuncOp, kernel: KernelSource) -> Entry:
    """The entry for a function after `plan-cpu` and the kernel printed from it."""
    tensors = signature(func)
    labels = tensor_names((tensor.name for tensor in tensors), size_symbols(func))
    pointers = {labels[t.name]: f"&{labels[t.name]}[{', '.join(['0'] * len(t.dims))}]" for t in tensors}
    return Entry(
        key=kernel.key,
        shape_key=kernel.shape_key,
        parameters=tuple(_memoryview(tensor, labels[tensor.name]) for tensor in tensors),
        outputs=sum(tensor.output for tensor in tensors),
        shapes=tuple(f"{labels[tensor.name]}: {_shape(tensor)}" for tensor in tensors),
        checks=("cdef int status", *_sizes_and_checks(func, labels)),
        arguments=tuple(pointers.get(parameter.name, parameter.name) for parameter in kernel.parameters),
    )


def _sizes_and_checks(func: FuncOp, labels: dict[str, str]) -> Iterator[str]:
    """Each size from the first dimension that shows it; every other dimension must agree."""
    bound, checks = bound_sizes(func), []
    sizes = {symbol: str(bound[symbol]) for symbol in size_symbols(func) if symbol in bound}
    for tensor in signature(func):
        for dimension, symbol in enumerate(tensor.dims):
            size = f"{labels[tensor.name]}.shape[{dimension}]"
            if symbol in sizes:
                checks += _check(labels[tensor.name], dimension, size, symbol, symbol)
            else:
                sizes[symbol] = size
    tokens = tokens_symbol(func)
    if TOPK in size_symbols(func) and TOPK not in sizes:
        sizes[TOPK] = f"{SLOTS} // {tokens} if {tokens} else 1"
    if SLOTS in sizes and TOPK in sizes:
        index = next(labels[tensor.name] for tensor in signature(func) if SLOTS in tensor.dims)
        checks += _check(index, 0, SLOTS, SLOTS, f"{tokens} * {TOPK}")
    yield from (f"cdef int64_t {symbol} = {size}" for symbol, size in sizes.items())
    yield from checks


def _check(name: str, dimension: int, size: str, symbol: str, expected: str) -> list[str]:
    message = f"{name}: expected {symbol} = {{{expected}}} in dimension {dimension}, got {{{size}}}"
    return [f"if {size} != {expected}:", f'    raise ValueError(f"{message}")']


def _memoryview(tensor: Tensor, label: str) -> str:
    assert isinstance(tensor.type, MemRefType)
    row = from_mlir(tensor.type.get_element_type())
    axes = ", ".join([":"] * (len(tensor.dims) - 1) + ["::1"])
    return f"{'' if tensor.output else 'const '}{row.c if row else 'int32_t'}[{axes}] {label}"


def _shape(tensor: Tensor) -> str:
    assert isinstance(tensor.type, MemRefType)
    row = from_mlir(tensor.type.get_element_type())
    kind = "int32" if row is None else row.tag if row.bytes == 4 else f"{row.tag} as uint16 bits"
    return f"({', '.join(tensor.dims)}{',' if len(tensor.dims) == 1 else ''}) {kind}"
