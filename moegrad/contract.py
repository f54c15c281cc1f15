"""The two operators as tables: every argument with its dtype, its shape and when it has to be there.

The rows are the compiler's, written to `moegrad.generated.contract`; `checks` reads them and says what is wrong.
Symbols are those of docs/operators.md: R tokens, K choices per token, N = R * K slots, M rows of the permuted
array, H hidden size, E experts, C rows per expert.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from .generated import contract as tables

DATA = "D"
"""Role: the data dtype, which the gradient of the forward's output fixes for all arguments of this role."""
WEIGHT = "P"
"""Role: the weight dtype, any of FLOATS, whatever D is."""
INDEX = "int32"
"""Role: int32."""

FLOATS: dict[np.dtype[Any], str] = {
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32",
}
"""The dtypes of data and weights, with their tags in kernel names."""
INT32 = np.dtype(np.int32)

ALWAYS = "always"
OPTIONAL = "optional"

Shape = tuple[str, ...] | None
"""Symbols of a shape; None: any shape with as many elements as there are rows (M)."""


class Argument(NamedTuple):
    """One array that an operator reads or writes.

    `needed` is ALWAYS, OPTIONAL or the name of the argument that makes this one necessary. `shapes` holds the
    shape in the operator's ordinary mode and in its capacity mode (padded_mode, drop_pad_mode 1). `tensor` is
    the name kernels know it by: both operators share one program for their common modes. `values`, of indices, is
    for each of the two modes the lowest value, the symbol of the size that values are below, and whether a value
    that names something may not come twice.
    """

    name: str
    role: str
    needed: str
    shapes: tuple[Shape, Shape]
    tensor: str
    values: tuple[tuple[int, str, bool], tuple[int, str, bool]] | None = None


class Operator:
    """An operator: its inputs in order of the signature, its attributes, its outputs, and the kernel of each mode.

    `roles` names the gradient, the indices and the weights among the inputs; the attributes `gradient`,
    `indices` and `weights` are their positions, `also` that of another input that makes a mode of its own. `modes`
    are by column, whether weights are there, and whether that input is. `rules` are names of functions in `checks`,
    in the order they apply to the ordinary and to the capacity mode. The rest is worked out once from the rows, in
    the form that the functions of `_native` take: a call must not spend time on that.
    """

    def __init__(
        self,
        name: str,
        api: str,
        roles: tuple[str, str, str],
        inputs: tuple[tuple[Any, ...], ...],
        attributes: tuple[tuple[str, str], ...],
        outputs: tuple[tuple[Any, ...], tuple[Any, ...]],
        rules: tuple[tuple[str, ...], tuple[str, ...]],
        modes: tuple[tuple[str, bool | None, bool, str], ...],
        kernels: dict[str, str],
    ) -> None:
        self.name, self.api, self.attributes, self.rules, self.kernels = name, api, attributes, rules, kernels
        self.inputs = tuple(Argument(*row) for row in inputs)
        self.outputs = (Argument(*outputs[0]), Argument(*outputs[1]))
        self.positions = {row.name: i for i, row in enumerate(self.inputs)}
        self.gradient, self.indices, self.weights = (self.positions[role] for role in roles)
        self.also = max((self.positions[also] for *_, also in modes if also), default=self.gradient)
        self.modes = {
            (column, weighted, more): mode
            for mode, capacity, weighted, also in sorted(modes, key=itemgetter(3))
            for column in (0, 1)
            for more in (False, True)
            if capacity in (None, bool(column)) and (more or not also)
        }
        self.needs = tuple(
            i if row.needed == ALWAYS else -1 if row.needed == OPTIONAL else self.positions[row.needed]
            for i, row in enumerate(self.inputs)
        )
        self.shapes = tuple(tuple(row.shapes[column] for row in self.inputs) for column in (0, 1))
        self.values = tuple(
            tuple((i, *row.values[column]) for i, row in enumerate(self.inputs) if row.values) for column in (0, 1)
        )
        self.result_shape = tuple(itemgetter(*(self.outputs[0].shapes[column] or ())) for column in (0, 1))
        self.dtypes = {data: tuple(allowed(row.role, data) for row in self.inputs) for data in FLOATS}


def allowed(role: str, data: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes of an argument of `role` when the data dtype is `data`."""
    return {DATA: (data,), WEIGHT: tuple(FLOATS), INDEX: (INT32,)}[role]


TOKEN_UNPERMUTE_GRAD = Operator(**tables.TOKEN_UNPERMUTE_GRAD)
FINALIZE_ROUTING_V2_GRAD = Operator(**tables.FINALIZE_ROUTING_V2_GRAD)
