"""The kernels of a device project: which there are, under what tiling key, in which compilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dtypes import DTYPES
from ...generate import ascend_kernel
from ...naming import camel, pascal
from ...operators import Mode, Operator, kernel_of, make_spec
from ...parsing import function
from ...passes.ascend_names import KernelNames
from ...signature import signature
from ...spec import ANY, KernelSpec
from ..ascendc.emit import AscendKernel

KEYS_A_MODE = 100
"""Tiling keys of one mode: its number times this, plus the number of the shape, 0 for any shape."""


@dataclass(frozen=True)
class ProjectKernel:
    """One kernel in the tables of tiling function and entry."""

    mode_name: str
    mode: str
    """Constant of the mode in the tiling function."""
    key: int
    spec: KernelSpec
    per_row: bool
    emitted: AscendKernel
    arguments: str
    """What the entry hands on to it."""
    positions: tuple[int, ...]
    """The same by position among inputs and outputs of the operator."""

    @property
    def file(self) -> str:
        """Name of its header, without extension."""
        return self.spec.key

    @property
    def scope(self) -> str:
        """Its namespace."""
        return self.emitted.source.scope

    @property
    def alias(self) -> str:
        """Its name in the entry, whatever the data types are."""
        shape = "" if self.key % KEYS_A_MODE == 0 else f"_{self.spec.shape_key}"
        return pascal(self.mode_name + shape)

    @property
    def data(self) -> str:
        """Data type of its rows, in a tiling function."""
        return f"ge::{DTYPES[self.spec.data].graph}"

    @property
    def weight(self) -> str:
        """Data type of its weights."""
        return f"ge::{DTYPES[self.spec.weight].graph}" if self.spec.weight else "-1"

    @property
    def contract_data(self) -> str:
        """Data type of its rows, in tables that know no toolkit."""
        return f"contract::k{pascal(DTYPES[self.spec.data].numpy)}"

    @property
    def contract_weight(self) -> str:
        """Data type of its weights there."""
        return f"contract::k{pascal(DTYPES[self.spec.weight].numpy)}" if self.spec.weight else "-1"

    @property
    def symbol(self) -> str:
        """Start of the names of its functions."""
        return self.emitted.source.symbol

    @property
    def places(self) -> list[str]:
        """Its arguments, from those of the operator by position."""
        return [f"launch.at[{place}]" for place in self.positions]

    @property
    def shape(self) -> str:
        """K and H that it was compiled for."""
        topk = ANY if self.per_row else self.spec.topk
        return ", ".join(str(size) if size else "kAny" for size in (topk, self.spec.hidden))

    @property
    def sizes(self) -> list[str]:
        """Initialisers of the sizes that its tiling function takes."""
        names = KernelNames.of(function(self.emitted.module)).sizes
        symbols = {name: symbol for symbol, name in names.items()}
        return [f"sizes['{symbols[field.name]}']" for field in self.emitted.source.sizes]


@dataclass(frozen=True)
class Column:
    """One combination of data types that kernels are compiled for."""

    number: int
    data_tag: str
    weight_tag: str
    kernels: tuple[ProjectKernel, ...]

    @property
    def data(self) -> str:
        """Value of the macro of the gradient's data type."""
        return DTYPES[self.data_tag].graph

    @property
    def weight(self) -> str:
        """Value of the macro of the weights' data type."""
        return DTYPES[self.weight_tag].graph

    @property
    def acl_data(self) -> str:
        """Data type of rows in a client."""
        return self.data.replace("DT_", "ACL_")

    @property
    def acl_weight(self) -> str:
        """Data type of weights in a client."""
        return self.weight.replace("DT_", "ACL_")

    @property
    def text(self) -> str:
        """For comments."""
        return f"rows of {DTYPES[self.data_tag].numpy}, weights of {DTYPES[self.weight_tag].numpy}"


@dataclass(frozen=True)
class Branch:
    """One branch of the entry: the kernel of a key, whatever the data types are."""

    key: int
    alias: str
    arguments: str
    text: str


def project_kernels(
    operator: Operator,
    pairs: Sequence[tuple[str, str]],
    shapes: Sequence[tuple[int, int]],
    chip: str,
) -> tuple[ProjectKernel, ...]:
    """Kernels of all modes for dtype pairs (D, P) and for shapes (K, H), then for any shape."""
    found = []
    numbers = {mode.name: number for number, mode in enumerate(operator.modes, 1)}
    for number, (topk, hidden) in [*enumerate(shapes, 1), (0, (ANY, ANY))]:
        for mode in operator.modes:
            key = numbers[mode.name] * KEYS_A_MODE + number
            for data, weight in dict.fromkeys((data, weight if mode.weighted else "") for data, weight in pairs):
                wanted = make_spec(operator.name, mode.name, data, weight, 1 if mode.per_row else topk, hidden)
                found.append(_kernel(operator, mode, key, kernel_of(wanted), chip))
    return tuple(found)


def _kernel(operator: Operator, mode: Mode, key: int, spec: KernelSpec, chip: str) -> ProjectKernel:
    emitted = ascend_kernel(spec, chip)
    face = operator.interface
    rows = (*face.inputs, *face.outputs)
    place = {name: number for number, row in enumerate(rows) for name in (row.name, row.program_name)}
    positions = tuple(place[tensor.name] for tensor in signature(function(emitted.module)))
    arguments = ", ".join(camel(rows[position].name) for position in positions)
    return ProjectKernel(mode.name, f"k{pascal(mode.name)}", key, spec, mode.per_row, emitted, arguments, positions)


def columns_of(kernels: Sequence[ProjectKernel], pairs: Sequence[tuple[str, str]]) -> tuple[Column, ...]:
    """The compilations of an operator: one for each pair, with the kernels that may run in it."""
    return tuple(
        Column(number, data, weight, tuple(k for k in kernels if k.spec.data == data and k.spec.weight in ("", weight)))
        for number, (data, weight) in enumerate(pairs)
    )


def branches_of(columns: Sequence[Column]) -> tuple[Branch, ...]:
    """The branches of an entry, which are those of each of its columns."""
    return tuple(
        Branch(
            kernel.key,
            kernel.alias,
            kernel.arguments,
            kernel.mode_name + (f", {kernel.spec.shape_key}" if kernel.key % KEYS_A_MODE else ", any shape"),
        )
        for kernel in sorted(columns[0].kernels, key=lambda kernel: kernel.key)
    )
