"""The two operators as tables: every argument with its dtype, its shape and when it has to be there.

This is the whole contract that can be written as data; `checks` reads it and says what is wrong, `operators`
adds the few rules that are arithmetic. Symbols are those of docs/operators.md: R tokens, K choices per token,
N = R * K slots, M rows of the permuted array, H hidden size, E experts, C rows per expert.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

DATA = "D"
"""Role: the data dtype, which the gradient of the forward's output fixes for all arguments of this role."""
WEIGHT = "P"
"""Role: the weight dtype, any of FLOATS, whatever D is."""
INDEX = "index"
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
    the name kernels know it by: both operators share one program for their common modes.
    """

    name: str
    role: str
    needed: str
    shapes: tuple[Shape, Shape]
    tensor: str


class Operator:
    """An operator: its inputs in order of the signature, its outputs, and the kernel of each mode.

    `roles` names the gradient, the indices and the weights among the inputs; the attributes `gradient`,
    `indices` and `weights` are their positions. The rest is worked out once from the rows, in the form that
    the functions of `_native` take: a call must not spend time on that.
    """

    def __init__(
        self,
        name: str,
        roles: tuple[str, str, str],
        inputs: tuple[Argument, ...],
        outputs: tuple[Argument, Argument],
        kernels: dict[str, str],
    ) -> None:
        self.name, self.inputs, self.outputs, self.kernels = name, inputs, outputs, kernels
        self.positions = {row.name: i for i, row in enumerate(inputs)}
        self.gradient, self.indices, self.weights = (self.positions[role] for role in roles)
        self.needs = tuple(
            i if row.needed == ALWAYS else -1 if row.needed == OPTIONAL else self.positions[row.needed]
            for i, row in enumerate(inputs)
        )
        self.shapes = tuple(tuple(row.shapes[column] for row in inputs) for column in (0, 1))
        self.result_shape = tuple(itemgetter(*(outputs[0].shapes[column] or ())) for column in (0, 1))
        self.dtypes = {data: tuple(allowed(row.role, data) for row in inputs) for data in FLOATS}


def allowed(role: str, data: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes of an argument of `role` when the data dtype is `data`."""
    return {DATA: (data,), WEIGHT: tuple(FLOATS), INDEX: (INT32,)}[role]


def argument(name: str, role: str, needed: str, ordinary: Shape, capacity: Shape, tensor: str = "") -> Argument:
    """A row of a table below."""
    return Argument(name, role, needed, (ordinary, capacity), tensor or name)


R_H, R_K, M_H, E_H, E_C_H = ("R", "H"), ("R", "K"), ("M", "H"), ("E", "H"), ("E", "C", "H")

TOKEN_UNPERMUTE_GRAD = Operator(
    "token_unpermute_grad",
    ("unpermuted_tokens_grad", "sorted_indices", "probs"),
    inputs=(
        #        name                      role    needed    shape   padded  name in the shared program
        argument("permuted_tokens",        DATA,   ALWAYS,   M_H,    M_H,    "expanded_x"),
        argument("unpermuted_tokens_grad", DATA,   ALWAYS,   R_H,    R_H,    "grad_y"),
        argument("sorted_indices",         INDEX,  ALWAYS,   ("N",), ("M",), "expanded_row_idx"),
        argument("probs",                  WEIGHT, OPTIONAL, R_K,    None,   "scales"),
    ),
    outputs=(
        argument("permuted_tokens_grad",   DATA,   ALWAYS,   M_H,    M_H,    "grad_expanded_x"),
        argument("probs_grad",             WEIGHT, "probs",  R_K,    None,   "grad_scales"),
    ),
    kernels={
        "plain": "finalize_routing_v2_grad__plain",
        "probs": "finalize_routing_v2_grad__scales",
        "padded": "token_unpermute_grad__padded",
        "padded_probs": "token_unpermute_grad__padded_probs",
    },
)  # fmt: skip

FINALIZE_ROUTING_V2_GRAD = Operator(
    "finalize_routing_v2_grad",
    ("grad_y", "expanded_row_idx", "scales"),
    inputs=(
        #        name               role    needed    shape by drop_pad_mode: 0, 1
        argument("grad_y",           DATA,   ALWAYS,   R_H,    R_H),
        argument("expanded_row_idx", INDEX,  ALWAYS,   ("N",), ("N",)),
        argument("expanded_x",       DATA,   "scales", M_H,    E_C_H),
        argument("scales",           WEIGHT, OPTIONAL, R_K,    R_K),
        argument("expert_idx",       INDEX,  "bias",   R_K,    R_K),
        argument("bias",             DATA,   OPTIONAL, E_H,    E_H),
    ),
    outputs=(
        argument("grad_expanded_x",  DATA,   ALWAYS,   M_H,    E_C_H),
        argument("grad_scales",      WEIGHT, "scales", R_K,    R_K),
    ),
    kernels={
        "plain": "finalize_routing_v2_grad__plain",
        "scales": "finalize_routing_v2_grad__scales",
        "scales_bias": "finalize_routing_v2_grad__scales_bias",
    },
)  # fmt: skip
