"""Hypothesis strategies: valid Cases of every operator, mode and dtype, small enough to shrink well."""

from __future__ import annotations

from hypothesis import strategies as st

from moegrad.tools.cases import DROPS, DTYPES, MODES, VALUES, Case

__all__ = ["cases"]

_tags = st.sampled_from(sorted(DTYPES))


@st.composite
def cases(
    draw: st.DrawFn,
    operator: str | None = None,
    mode: str | None = None,
    max_tokens: int = 6,
    max_topk: int = 5,
    max_hidden: int = 70,
) -> Case:
    """Any valid case; `operator` and `mode` fix what they name."""
    operators = [name for name, modes in MODES.items() if mode is None or mode in modes]
    operator = operator or draw(st.sampled_from(operators))
    mode = mode or draw(st.sampled_from(MODES[operator]))
    weighted = mode not in ("plain", "padded")
    tokens = draw(st.integers(0, max_tokens))
    topk = draw(st.integers(1, max_topk))
    slots = tokens * topk
    padded = mode.startswith("padded")
    finalize = operator == "finalize_routing_v2_grad"
    drop_pad_mode = draw(st.integers(0, 1)) if finalize else 0
    experts = draw(st.integers(1, 4))
    capacity = draw(st.integers(1, 12)) if padded or drop_pad_mode else 0
    active_num = draw(st.integers(-1, slots + 2)) if finalize else 0
    rows = -1
    if capacity:
        rows = experts * capacity
    elif finalize:
        rows = active_num if 0 < active_num < slots else slots
    else:
        rows = draw(st.integers(0, slots))
    return Case(
        operator,
        mode,
        draw(_tags),
        draw(_tags) if weighted else None,
        tokens,
        topk,
        draw(st.integers(1, max_hidden)),
        rows=rows,
        experts=experts,
        capacity=capacity,
        drop_pad_mode=drop_pad_mode,
        active_num=active_num,
        drop=draw(st.sampled_from(_drops(padded, bool(capacity), tokens, slots, rows))),
        values=draw(st.sampled_from(VALUES)),
        extra=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31 - 1)),
    )


def _drops(padded: bool, capacity: bool, tokens: int, slots: int, rows: int) -> tuple[str, ...]:
    """Which kinds of drop Case allows."""
    if padded:
        return DROPS if tokens else ("all",)
    if capacity:
        return DROPS if slots <= rows else DROPS[1:]
    if rows == slots:
        return ("none",)
    return ("first", "last", "some") if rows else ("all",)
