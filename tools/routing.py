"""Real text routed to experts, and every call of both operators that such a routing gives.

A token is a word and, more faintly, the word before it. All tokens share a common direction, as the hidden
states of language models do; together with the frequencies of words it makes some experts much busier than
others. The router is a softmax top-k over a fixed random projection. What stands for an expert is a gate for each
channel, so that the forward pass and the gradient that comes back to it are those of a real layer.

Symbols: R tokens, K topk, N = R * K slots, H hidden, E experts, C rows an expert takes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .oracle import Array
from .text import embed, words
from .values import DTYPES

__all__ = ["Call", "Routing", "calls", "route"]

_Float32 = npt.NDArray[np.float32]
_Int32 = npt.NDArray[np.int32]

CONTEXT = 0.5
"""Weight of the word before."""

COMMON = 0.5
"""Weight of the direction that all tokens share."""

SHARPNESS = 2.0
"""Standard deviation of the router's logits."""

CAPACITY_FACTOR = 1.25
"""Rows that each expert takes, as a multiple of the mean load."""

ACTIVE_SHARE = 0.75
"""Rows that truncated layouts keep, as a share of N."""


@dataclass(frozen=True, eq=False)
class Routing:
    """Tokens, where they go, and what the layer's forward pass made of them."""

    words: tuple[str, ...]
    """R words."""
    experts: int
    """E."""
    expert_idx: _Int32
    """(R, K), best expert first."""
    scales: _Float32
    """(R, K), softmax over the chosen experts."""
    row_of_slot: _Int32
    """(N,), a permutation: slots sorted by expert, stable."""
    expanded_x: _Float32
    """(N, H), the experts' outputs in that order."""
    bias: _Float32
    """(E, H)."""
    grad_y: _Float32
    """(R, H), gradient of half the mean squared distance to the next word's vector."""

    @property
    def topk(self) -> int:
        """K."""
        return int(self.expert_idx.shape[1])

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.grad_y.shape[1])

    @cached_property
    def loads(self) -> npt.NDArray[np.int64]:
        """(E,), slots of each expert."""
        return np.bincount(self.expert_idx.reshape(-1), minlength=self.experts)

    @property
    def skew(self) -> float:
        """Load of the busiest expert over the mean load; 1 is balanced, E / K all that is possible."""
        return float(self.loads.max() / self.loads.mean())

    @property
    def capacity(self) -> int:
        """C, rows that each expert takes in layouts with capacity."""
        return max(1, int(np.ceil(CAPACITY_FACTOR * self.expert_idx.size / self.experts)))

    @cached_property
    def capacity_row_of_slot(self) -> _Int32:
        """(N,), expert * C + place among the expert's slots; -1 for slots past the capacity."""
        experts = self.expert_idx.reshape(-1)
        place = self.row_of_slot - (np.cumsum(self.loads) - self.loads)[experts]
        return np.where(place < self.capacity, experts * self.capacity + place, -1).astype(np.int32)

    @property
    def dropped(self) -> float:
        """Share of the slots that the capacity drops."""
        return float((self.capacity_row_of_slot < 0).mean())

    @property
    def text_in_common(self) -> list[tuple[str, int]]:
        """The most frequent words with their counts, most frequent first."""
        names, counts = np.unique(np.array(self.words), return_counts=True)
        return [(str(names[i]), int(counts[i])) for i in np.argsort(-counts, kind="stable")]


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operator on a routing."""

    operator: str
    mode: str
    layout: str
    """How rows and slots relate: dropless; truncated, rows past a limit do not exist; or capacity, C rows an expert."""
    topk: int
    """K of the kernel: 1 with padded_mode."""
    arguments: dict[str, Any]


def route(name: str, tokens: int, experts: int, topk: int, hidden: int) -> Routing:
    """Routes the first `tokens` words; the same arguments give the same routing."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    text = words(tokens + 2)
    vectors = embed(text, hidden)
    common = rng.standard_normal(hidden, np.float32)
    states = vectors[1:-1] + CONTEXT * vectors[:-2] + COMMON * common
    states /= np.sqrt(np.float32(1 + CONTEXT**2 + COMMON**2))
    projection = rng.standard_normal((hidden, experts), np.float32) / np.sqrt(np.float32(hidden))
    logits = SHARPNESS * (states.astype(np.float64) @ projection)  # so that no machine breaks a tie another way

    expert_idx = np.argsort(-logits, axis=1, kind="stable")[:, :topk].astype(np.int32)
    chosen = np.take_along_axis(logits, expert_idx, axis=1)
    scales = np.exp(chosen - chosen[:, :1])
    scales = (scales / scales.sum(axis=1, keepdims=True)).astype(np.float32)
    row_of_slot = np.empty(expert_idx.size, np.int32)
    order = np.argsort(expert_idx.reshape(-1), kind="stable")
    row_of_slot[order] = np.arange(expert_idx.size, dtype=np.int32)

    gates = rng.standard_normal((experts, hidden), np.float32)
    expanded_x = states[order // topk] * gates[expert_idx.reshape(-1)[order]]
    bias = 0.1 * rng.standard_normal((experts, hidden), np.float32)
    grad_y = -vectors[2:]
    for choice in range(topk):
        rows = expanded_x[row_of_slot.reshape(-1, topk)[:, choice]] + bias[expert_idx[:, choice]]
        grad_y += scales[:, choice, None] * rows
    return Routing(text[1:-1], experts, expert_idx, scales, row_of_slot, expanded_x, bias, grad_y / np.float32(tokens))


def calls(routing: Routing, data: str, weight: str) -> Iterator[Call]:
    """Every mode of both operators in every layout, in dtypes D and P."""
    given = _Arrays(routing, data, weight)
    yield from _finalize_calls(given)
    yield from _unpermute_calls(given)
    yield from _padded_calls(given)


class _Arrays:
    """The arrays of a routing in D and P."""

    def __init__(self, routing: Routing, data: str, weight: str) -> None:
        self.routing = routing
        self.topk = routing.topk
        self.grad: Array = routing.grad_y.astype(DTYPES[data])
        self.rows: Array = routing.expanded_x.astype(DTYPES[data])
        self.bias: Array = routing.bias.astype(DTYPES[data])
        self.scales: Array = routing.scales.astype(DTYPES[weight])
        self.active = max(1, int(ACTIVE_SHARE * routing.row_of_slot.size))

    @cached_property
    def capacity_rows(self) -> Array:
        """expanded_x of the capacity layout, (E * C, H), zero in empty rows."""
        slot_of_row = np.argsort(self.routing.row_of_slot)
        target = self.routing.capacity_row_of_slot[slot_of_row]
        rows = np.zeros((self.routing.experts * self.routing.capacity, self.routing.hidden), self.rows.dtype)
        rows[target[target >= 0]] = self.rows[target >= 0]
        return rows


def _finalize_calls(given: _Arrays) -> Iterator[Call]:
    routing = given.routing
    experts, capacity = routing.experts, routing.capacity
    padded_x = given.capacity_rows.reshape(experts, capacity, routing.hidden)
    room = {"drop_pad_mode": 1, "expert_num": experts, "expert_capacity": capacity}
    layouts: dict[str, tuple[Array, Array, dict[str, int]]] = {
        "dropless": (routing.row_of_slot, given.rows, {}),
        "truncated": (routing.row_of_slot, given.rows[: given.active], {"active_num": given.active}),
        "capacity": (routing.capacity_row_of_slot, padded_x, room),
    }
    with_bias = {"expert_idx": routing.expert_idx, "bias": given.bias}
    for layout, (index, expanded_x, numbers) in layouts.items():
        base = {"grad_y": given.grad, "expanded_row_idx": index} | numbers
        weighted = base | {"expanded_x": expanded_x, "scales": given.scales}
        modes = {"plain": base, "scales": weighted, "scales_bias": weighted | with_bias}
        for mode, arguments in modes.items():
            yield Call("finalize_routing_v2_grad", mode, layout, given.topk, arguments)


def _unpermute_calls(given: _Arrays) -> Iterator[Call]:
    for layout, rows in (("dropless", given.rows), ("truncated", given.rows[: given.active])):
        base = {
            "permuted_tokens": rows,
            "unpermuted_tokens_grad": given.grad,
            "sorted_indices": given.routing.row_of_slot,
        }
        for mode, arguments in (("plain", base), ("probs", base | {"probs": given.scales})):
            yield Call("token_unpermute_grad", mode, layout, given.topk, arguments)


def _padded_calls(given: _Arrays) -> Iterator[Call]:
    """padded_mode: the token of each of the E * C rows, or -1, and that row's probability."""
    routing = given.routing
    row_of_slot = routing.capacity_row_of_slot
    kept = np.flatnonzero(row_of_slot >= 0)
    token_of_row = np.full(routing.experts * routing.capacity, -1, np.int32)
    token_of_row[row_of_slot[kept]] = kept // given.topk
    probs = np.zeros(token_of_row.size, given.scales.dtype)
    probs[row_of_slot[kept]] = given.scales.reshape(-1)[kept]
    base = {
        "permuted_tokens": given.capacity_rows,
        "unpermuted_tokens_grad": given.grad,
        "sorted_indices": token_of_row,
        "padded_mode": True,
        "restore_shape": given.grad.shape,
    }
    yield Call("token_unpermute_grad", "padded", "capacity", 1, base)
    weighted = base | {"probs": probs.reshape(routing.experts, routing.capacity)}
    yield Call("token_unpermute_grad", "padded_probs", "capacity", 1, weighted)
