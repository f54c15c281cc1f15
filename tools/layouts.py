"""Layouts: how the rows of an enumerated case relate to its slots, and the sizes that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Layout", "layouts", "sizes"]


@dataclass(frozen=True)
class Layout:
    """How the rows of an enumerated case relate to its slots.

    Attributes:
        drop: as in Case.
        room: E * C as a multiple of N; 0 for layouts without capacity.
        no_limit: a value of active_num, relative to N, that limits nothing; None passes 0.
    """

    drop: str = "none"
    room: float = 0.0
    no_limit: Callable[[int], int] | None = None


_PADDED_LAYOUTS = tuple(
    Layout(drop, room)
    for drop, room in (("none", 1), ("some", 1.5), ("last", 0.5), ("all", 1), ("first", 2), ("none", 3))
)
_UNPERMUTE_LAYOUTS = (Layout(), Layout("some"), Layout("last"), Layout("first"), Layout("all"))
_FINALIZE_LAYOUTS = (
    Layout(),
    Layout("some", 1.5),
    Layout("some"),
    Layout("none", 2),
    Layout("last"),
    Layout("first", 1),
    Layout(no_limit=lambda slots: slots + 1),
    Layout("last", 4),
    Layout("first"),
    Layout("some", 0.5),
    Layout(no_limit=lambda slots: slots),
    Layout("all", 1.5),
    Layout(no_limit=lambda _slots: -1),
)


def layouts(operator: str, mode: str) -> tuple[Layout, ...]:
    """The layouts that the cases of a mode are dealt from."""
    if operator == "finalize_routing_v2_grad":
        return _FINALIZE_LAYOUTS
    return _PADDED_LAYOUTS if mode.startswith("padded") else _UNPERMUTE_LAYOUTS


def sizes(rng: np.random.Generator, operator: str, mode: str, layout: Layout, tokens: int, topk: int) -> dict[str, Any]:
    """The fields of Case that a layout decides, made to fit the number of slots."""
    slots = tokens * topk
    experts = int(rng.integers(2, 6))
    finalize = operator == "finalize_routing_v2_grad"
    if layout.room:
        capacity = max(1, int(layout.room * slots) // experts)
        drop = layout.drop
        if mode.startswith("padded"):
            drop = drop if tokens else "all"
        elif drop == "none" and slots > experts * capacity:
            capacity = -(-slots // experts)
        pad = {"drop_pad_mode": 1} if finalize else {}
        return {"experts": experts, "capacity": capacity, "drop": drop, **pad}
    if finalize:
        drop = layout.drop if slots > 1 else "none"
        limit = 0 if layout.no_limit is None else layout.no_limit(slots)
        if drop != "none":
            limit = max(1, slots * 2 // 3) if drop == "some" else slots - 1
        return {"experts": experts, "active_num": limit, "drop": drop}
    rows = {"none": slots, "all": 0, "some": slots * 2 // 3}.get(layout.drop, max(slots - 1, 0))
    drop = "none" if rows == slots else layout.drop if rows else "all"
    return {"rows": rows, "drop": drop}
