"""Programs that are neither operator, with their NumPy meaning, and short cuts shared by the compiler's tests.

Their inputs are small integers, so every sum is exact and results agree bit for bit in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from moegrad.codegen.operators import OPERATORS
from moegrad.codegen.parsing import function, parse_program
from moegrad.codegen.pipeline import stages
from moegrad.codegen.signature import bound_sizes
from moegrad.codegen.spec import KernelSpec

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = dict[str, Array]

NUMPY = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
MODES = [(name, mode.name) for name, operator in OPERATORS.items() for mode in operator.modes]
MODE_IDS = [f"{name}-{mode}" for name, mode in MODES]

_HEAD = '!D = !moe.dtype<"D">\n!P = !moe.dtype<"P">\n'


@dataclass(frozen=True)
class Program:
    """A program that is neither operator."""

    name: str
    text: str
    inputs: Callable[[np.random.Generator, np.dtype[Any], np.dtype[Any]], Inputs]
    """Arrays by name for D and P."""
    expected: Callable[[Inputs, np.dtype[Any], np.dtype[Any]], Inputs]
    """Outputs by name, in rows or weights of D and P."""
    sizes: dict[str, int]
    """What no input shows."""
    row_loops: int
    """Passes over the hidden dimension of its busiest loop body."""
    weighted: bool = True

    def parsed(self) -> ModuleOp:
        """The program, fresh."""
        return parse_program(self.text, f"{self.name}.mlir")

    def spec(self, data: str = "f32", weight: str = "f32", topk: int = 0, hidden: int = 0) -> KernelSpec:
        """A spec of it."""
        return KernelSpec(self.name, data, weight if self.weighted else "", topk, hidden)


R, K, H, M, S = 5, 3, 70, 11, 6


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Small integers: exact in every dtype, and so is a sum of a few hundred products."""
    return rng.integers(-2, 3, shape).astype(dtype)


def slot_map(rng: np.random.Generator, slots: int, rows: int) -> Array:
    """Distinct rows for the slots, some of them -1."""
    index = rng.permutation(max(slots, rows))[:slots]
    return np.where(index < rows, index, -1).astype(np.int32)


def _wide(array: Array) -> Array:
    return array.astype(np.float32)


def _scattered(rows: Array, index: Array, extent: int) -> Array:
    out = np.zeros((extent, rows.shape[1]), rows.dtype)
    for row, at in zip(rows, index.reshape(-1), strict=True):
        if 0 <= at < extent:
            out[at] = row
    return out


def _gathered(table: Array, index: Array) -> Array:
    rows = [table[at] if 0 <= at < len(table) else np.zeros_like(table[0]) for at in index.reshape(-1)]
    return np.stack(rows)


def _token_inputs(*names: str) -> Callable[[np.random.Generator, np.dtype[Any], np.dtype[Any]], Inputs]:
    return lambda rng, data, _: {name: integers(rng, (R, H), data) for name in names}


DOT_THEN_SCALE = Program(
    "dot_then_scale",
    _HEAD
    + """
func.func @dot_then_scale(%x: tensor<?x?x!D> {moe.dims = ["R", "H"]}, %g: tensor<?x?x!D> {moe.dims = ["R", "H"]})
    -> (tensor<?x?x!D> {moe.dims = ["R", "H"], moe.name = "out"}) {
  %dot = moe.row_dot %x, %g : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?xf32>
  %out = moe.scale_rows %x by %dot : (tensor<?x?x!D>, tensor<?xf32>) -> tensor<?x?x!D>
  func.return %out : tensor<?x?x!D>
}
""",
    _token_inputs("x", "g"),
    lambda i, data, _: {"out": (_wide(i["x"]) * (_wide(i["x"]) * _wide(i["g"])).sum(1, keepdims=True)).astype(data)},
    {},
    row_loops=2,
    weighted=False,
)

TOKEN_ROWS = Program(
    "token_rows",
    _HEAD
    + """
func.func @token_rows(%x: tensor<?x?x!D> {moe.dims = ["R", "H"]}, %y: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                      %z: tensor<?x?x!D> {moe.dims = ["R", "H"]})
    -> (tensor<?x?x!D> {moe.dims = ["R", "H"], moe.name = "out"}) {
  %product = moe.mul_rows %x, %y : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?xf32>
  %out = moe.sub_rows %product, %z : (tensor<?x?xf32>, tensor<?x?x!D>) -> tensor<?x?x!D>
  func.return %out : tensor<?x?x!D>
}
""",
    _token_inputs("x", "y", "z"),
    lambda i, data, _: {"out": (_wide(i["x"]) * _wide(i["y"]) - _wide(i["z"])).astype(data)},
    {},
    row_loops=1,
    weighted=False,
)

SLOT_CHAIN = Program(
    "slot_chain",
    _HEAD
    + """
func.func @slot_chain(%x: tensor<?x?x!D> {moe.dims = ["M", "H"]}, %g: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                      %idx: tensor<?x?xi32> {moe.dims = ["R", "K"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "out"},
        tensor<?x?xf32> {moe.dims = ["R", "K"], moe.name = "second"}) {
  %rows = moe.gather_rows %x at %idx : (tensor<?x?x!D>, tensor<?x?xi32>) -> tensor<?x?x!D>
  %grad = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %first = moe.row_dot %rows, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?xf32>
  %scaled = moe.scale_rows %grad by %first : (tensor<?x?x!D>, tensor<?xf32>) -> tensor<?x?xf32>
  %second = moe.row_dot %scaled, %grad : (tensor<?x?xf32>, tensor<?x?x!D>) -> tensor<?x?xf32>
  %sum = moe.add_rows %scaled, %rows : (tensor<?x?xf32>, tensor<?x?x!D>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %sum to %idx rows "M" : (tensor<?x?x!D>, tensor<?x?xi32>) -> tensor<?x?x!D>
  func.return %out, %second : tensor<?x?x!D>, tensor<?x?xf32>
}
""",
    lambda rng, data, _: {
        "x": integers(rng, (M, H), data),
        "g": integers(rng, (R, H), data),
        "idx": slot_map(rng, R * K, M).reshape(R, K),
    },
    lambda i, data, _: _slot_chain(i, data),
    {},
    row_loops=2,
    weighted=False,
)


def _slot_chain(i: Inputs, data: np.dtype[Any]) -> Inputs:
    rows, grad = _wide(_gathered(i["x"], i["idx"])), _wide(np.repeat(i["g"], K, 0))
    scaled = grad * (rows * grad).sum(1, keepdims=True)
    out = _scattered((scaled + rows).astype(data), i["idx"], M)
    return {"out": out, "second": (scaled * grad).sum(1).reshape(R, K)}


TOKEN_GATHER = Program(
    "token_gather",
    _HEAD
    + """
func.func @token_gather(%src: tensor<?x?x!D> {moe.dims = ["S", "H"]}, %pick: tensor<?xi32> {moe.dims = ["R"]},
                        %idx: tensor<?xi32> {moe.dims = ["N"]}, %p: tensor<?x?x!P> {moe.dims = ["R", "K"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "out"}) {
  %grad = moe.gather_rows %src at %pick : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %rows = moe.repeat_rows %grad : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %scaled = moe.scale_rows %rows by %p : (tensor<?x?x!D>, tensor<?x?x!P>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %scaled to %idx rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %out : tensor<?x?x!D>
}
""",
    lambda rng, data, weight: {
        "src": integers(rng, (S, H), data),
        "pick": np.array([4, -1, 0, 6, 4], np.int32),
        "idx": slot_map(rng, R * K, M),
        "p": integers(rng, (R, K), weight),
    },
    lambda i, data, _: {
        "out": _scattered(
            (_wide(np.repeat(_gathered(i["src"], i["pick"]), K, 0)) * _wide(i["p"].reshape(-1, 1))).astype(data),
            i["idx"],
            M,
        )
    },
    {"M": M},
    row_loops=1,
)

TWO_SCATTERS = Program(
    "two_scatters",
    _HEAD
    + """
func.func @two_scatters(%g: tensor<?x?x!D> {moe.dims = ["R", "H"]}, %first: tensor<?xi32> {moe.dims = ["N"]},
                        %other: tensor<?xi32> {moe.dims = ["N"]}, %p: tensor<?x!P> {moe.dims = ["N"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "plain"},
        tensor<?x?x!D> {moe.dims = ["L", "H"], moe.name = "scaled"}) {
  %rows = moe.repeat_rows %g : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %plain = moe.scatter_rows %rows to %first rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %weighed = moe.scale_rows %rows by %p : (tensor<?x?x!D>, tensor<?x!P>) -> tensor<?x?x!D>
  %scaled = moe.scatter_rows %weighed to %other rows "L" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %plain, %scaled : tensor<?x?x!D>, tensor<?x?x!D>
}
""",
    lambda rng, data, weight: {
        "g": integers(rng, (R, H), data),
        "first": slot_map(rng, R * K, M),
        "other": slot_map(rng, R * K, 20),
        "p": integers(rng, (R * K,), weight),
    },
    lambda i, data, _: {
        "plain": _scattered(np.repeat(i["g"], K, 0), i["first"], M),
        "scaled": _scattered(
            (_wide(np.repeat(i["g"], K, 0)) * _wide(i["p"].reshape(-1, 1))).astype(data), i["other"], 20
        ),
    },
    {"M": M, "L": 20},
    row_loops=1,
)

PROGRAMS = [DOT_THEN_SCALE, TOKEN_ROWS, SLOT_CHAIN, TOKEN_GATHER, TWO_SCATTERS]


def names(pairs: Iterable[Any]) -> list[str]:
    """Test ids of things with a name."""
    return [each.name for each in pairs]


def stage(module: ModuleOp, spec: KernelSpec, after: str, target: str = "cython") -> ModuleOp:
    """A copy of the program after one pass."""
    for name, lowered in stages(module, spec, target):
        if name == after:
            return lowered.clone()
    raise AssertionError(after)


def ops(module: ModuleOp, *kinds: type[Operation]) -> list[Operation]:
    """All operations of the kinds, in order, at any depth."""
    return [op for op in module.walk() if isinstance(op, kinds)]


def sizes_of(module: ModuleOp) -> dict[str, int]:
    """Bound sizes of a program."""
    return bound_sizes(function(module))


def assert_same(got: Inputs, expected: Inputs) -> None:
    """Equal names, dtypes, shapes and bits."""
    assert got.keys() == expected.keys()
    for name, want in expected.items():
        assert got[name].dtype == want.dtype, name
        assert got[name].shape == want.shape, name
        np.testing.assert_array_equal(got[name].astype(np.float64), want.astype(np.float64), err_msg=name)
        np.testing.assert_array_equal(np.signbit(got[name]), np.signbit(want), err_msg=name)
