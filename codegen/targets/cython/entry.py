"""The Python entry of a single kernel: typed memoryviews, with their sizes checked against one another."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp

from ...dtypes import from_mlir
from ...signature import SLOTS, TOPK, Tensor, bound_sizes, signature, size_symbols, tokens_symbol
from .plan import Entry, EntryArgument, KernelSource, SizeCheck


def python_entry(func: FuncOp, kernel: KernelSource) -> Entry:
    """The entry for a function after `plan-cpu` and the kernel printed from it."""
    tensors = signature(func)
    bound = bound_sizes(func)
    sizes = {symbol: str(bound[symbol]) for symbol in size_symbols(func) if symbol in bound}
    checks = []
    for tensor in tensors:
        for dimension, symbol in enumerate(tensor.dims):
            size = f"{tensor.name}.shape[{dimension}]"
            if symbol in sizes:
                checks.append(SizeCheck(tensor.name, size, symbol, dimension))
            else:
                sizes[symbol] = size
    if TOPK in size_symbols(func) and TOPK not in sizes:
        tokens = tokens_symbol(func)
        sizes[TOPK] = f"{SLOTS} // {tokens} if {tokens} else 1"
    return Entry(
        key=kernel.key,
        shape_key=kernel.shape_key,
        arguments=tuple(_argument(tensor) for tensor in tensors),
        outputs=sum(tensor.output for tensor in tensors),
        sizes=tuple(sizes.items()),
        checks=(*checks, *_slot_check(func, sizes)),
        call=", ".join(_pointer(parameter.name, tensors) for parameter in kernel.parameters),
    )


def _slot_check(func: FuncOp, sizes: dict[str, str]) -> list[SizeCheck]:
    """N = tokens * topK, which no dimension says."""
    if SLOTS not in sizes or TOPK not in sizes:
        return []
    index = next(tensor for tensor in signature(func) if SLOTS in tensor.dims)
    return [SizeCheck(index.name, f"{tokens_symbol(func)} * {TOPK}", SLOTS, 0)]


def _argument(tensor: Tensor) -> EntryArgument:
    assert isinstance(tensor.type, MemRefType)
    row = from_mlir(tensor.type.get_element_type())
    scalar = row.c if row else "int32_t"
    axes = ", ".join([":"] * (len(tensor.dims) - 1) + ["::1"])
    declaration = f"{'' if tensor.output else 'const '}{scalar}[{axes}] {tensor.name}"
    kind = "int32" if row is None else row.tag if row.bytes == 4 else f"{row.tag} as uint16 bits"
    dims = ", ".join(tensor.dims) + ("," if len(tensor.dims) == 1 else "")
    return EntryArgument(tensor.name, declaration, f"({dims}) {kind}")


def _pointer(name: str, tensors: list[Tensor]) -> str:
    tensor = next((tensor for tensor in tensors if tensor.name == name), None)
    return name if tensor is None else f"&{name}[{', '.join(['0'] * len(tensor.dims))}]"
