"""Cases: seeded, readable inputs for both operators, with the oracle's answer.

A Case is a frozen set of numbers; its arrays are made on demand from its seed, so the same case is the same
bytes everywhere. Index maps are random and not their own inverse wherever the shape allows it, because a
self-inverse map (identity, reversal, swaps) cannot tell a map from its inverse.

Symbols: R tokens, K topk, N = R * K slots, H hidden, M rows, E experts, C capacity, D data dtype, P weight
dtype, as in operators.md.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from . import oracle
from .layouts import layouts, sizes
from .maps import DROPS, is_self_inverse, padded_map, slot_map
from .oracle import Array, Expected
from .values import DTYPES, VALUES, fill

__all__ = [
    "DROPS",
    "DTYPES",
    "MODES",
    "VALUES",
    "Case",
    "enumerate_cases",
    "is_self_inverse",
]

MODES: dict[str, tuple[str, ...]] = {
    "token_unpermute_grad": ("plain", "probs", "padded", "padded_probs"),
    "finalize_routing_v2_grad": ("plain", "scales", "scales_bias"),
}

_WEIGHTED_MODES = frozenset({"probs", "padded_probs", "scales", "scales_bias"})


@dataclass(frozen=True)
class Case:
    """One call of a gradient operator; its arrays are derived from these numbers alone.

    Attributes:
        operator: a key of MODES.
        mode: one of the operator's modes.
        data_dtype: D, a key of DTYPES.
        weight_dtype: P, a key of DTYPES in modes with weights, otherwise None.
        tokens: R.
        topk: K. The padded modes have no K; it only scales their row count in enumerate_cases.
        hidden: H.
        rows: M. Left out it follows from the other fields: N, active_num or experts * capacity.
            Only token_unpermute_grad without padding can choose fewer.
        experts: E; needed with capacity and with bias.
        capacity: C; with padding and in drop_pad_mode 1.
        drop_pad_mode: finalize_routing_v2_grad only.
        active_num: finalize_routing_v2_grad only, passed on as it is.
        drop: one of DROPS: which slots are inactive; in padded modes, which rows are empty. "first" and
            "last" name one that is among them, and the only one where M leaves the choice.
        values: one of VALUES.
        extra: also pass optional arguments that the mode does not read or could do without; padded probs
            come flat.
        seed: of np.random.default_rng.

    Raises:
        ValueError: the fields contradict each other; the message says which.
    """

    operator: str
    mode: str
    data_dtype: str
    weight_dtype: str | None
    tokens: int
    topk: int
    hidden: int
    rows: int = -1
    experts: int = 0
    capacity: int = 0
    drop_pad_mode: int = 0
    active_num: int = 0
    drop: str = "none"
    values: str = "normal"
    extra: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _check_names(self)
        natural = self.slots
        if self.has_capacity:
            natural = self.experts * self.capacity
        elif self.is_finalize and 0 < self.active_num < self.slots:
            natural = self.active_num
        if self.rows == -1:
            object.__setattr__(self, "rows", natural)
        _check_sizes(self, natural)
        _check_drop(self)

    @property
    def slots(self) -> int:
        """N = R * K."""
        return self.tokens * self.topk

    @property
    def is_finalize(self) -> bool:
        """Whether the operator is finalize_routing_v2_grad."""
        return self.operator == "finalize_routing_v2_grad"

    @property
    def is_padded(self) -> bool:
        """Whether the index map goes from rows to tokens (padded_mode)."""
        return self.mode.startswith("padded")

    @property
    def has_capacity(self) -> bool:
        """Whether every expert has C rows, so that M = E * C."""
        return self.is_padded or self.drop_pad_mode == 1

    @property
    def has_weights(self) -> bool:
        """Whether the mode multiplies by probs / scales and returns their gradient."""
        return self.mode in _WEIGHTED_MODES

    @property
    def id(self) -> str:
        """Readable and unique: the kernel's fields, then what the case adds."""
        dtypes = self.data_dtype if self.weight_dtype is None else f"{self.data_dtype}_{self.weight_dtype}"
        parts = [self.operator, self.mode, dtypes, f"k{self.topk}", f"h{self.hidden}", f"t{self.tokens}"]
        parts.append(f"m{self.rows}")
        if self.experts:
            parts.append(f"e{self.experts}")
        if self.has_capacity:
            parts.append(f"c{self.capacity}")
        if self.drop_pad_mode:
            parts.append(f"pad{self.drop_pad_mode}")
        if self.active_num:
            parts.append(f"active{self.active_num}")
        if self.drop != "none":
            parts.append(f"drop_{self.drop}")
        parts += [self.values] + ["extra"] * self.extra + [f"s{self.seed}"]
        return "__".join(parts)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for moegrad.token_unpermute_grad or moegrad.finalize_routing_v2_grad.

        Fresh NumPy arrays at each call, always the same bytes.
        """
        rng = np.random.default_rng(self.seed)
        if self.is_padded:
            index = padded_map(rng, self.tokens, self.rows, self.drop)
        else:
            index = slot_map(rng, self.slots, self.rows, self.drop, self.has_capacity)
        expert_idx = rng.integers(0, max(self.experts, 1), (self.tokens, self.topk)).astype(np.int32)
        grad = fill(rng, (self.tokens, self.hidden), self.data_dtype, self.values, "grad")
        rows = fill(rng, (self.rows, self.hidden), self.data_dtype, self.values, "rows")
        bias = fill(rng, (self.experts, self.hidden), self.data_dtype, self.values, "rows")
        weights = None
        if self.weight_dtype is not None:
            weights_shape = (self.experts, self.capacity) if self.is_padded else (self.tokens, self.topk)
            weights = fill(rng, weights_shape, self.weight_dtype, self.values, "weights")
        if self.values == "special":
            _poison(self, index, grad, rows, weights)
        if self.is_finalize:
            return _finalize_arguments(self, index, grad, rows, weights, expert_idx, bias)
        return _unpermute_arguments(self, index, grad, rows, weights)

    def expected(self) -> Expected:
        """The oracle's answer to this case."""
        if self.is_finalize:
            return oracle.finalize_routing_v2_grad(**self.arguments())
        return oracle.token_unpermute_grad(**self.arguments())


def _check_names(case: Case) -> None:
    if case.operator not in MODES:
        raise ValueError(f"operator: expected one of {list(MODES)}, got {case.operator!r}")
    modes = MODES[case.operator]
    if case.mode not in modes:
        raise ValueError(f"mode of {case.operator}: expected one of {modes}, got {case.mode!r}")
    if case.data_dtype not in DTYPES:
        raise ValueError(f"data_dtype: expected one of {list(DTYPES)}, got {case.data_dtype!r}")
    allowed = list(DTYPES) if case.has_weights else [None]
    if case.weight_dtype not in allowed:
        raise ValueError(f"weight_dtype of {case.mode}: expected one of {allowed}, got {case.weight_dtype!r}")
    if case.drop not in DROPS:
        raise ValueError(f"drop: expected one of {DROPS}, got {case.drop!r}")
    if case.values not in VALUES:
        raise ValueError(f"values: expected one of {VALUES}, got {case.values!r}")


def _check_sizes(case: Case, natural: int) -> None:
    if case.tokens < 0 or case.topk < 1 or case.hidden < 1:
        raise ValueError(f"expected tokens >= 0, topk >= 1 and hidden >= 1, got {case}")
    if case.drop_pad_mode not in (0, 1) or (case.drop_pad_mode and not case.is_finalize):
        raise ValueError(f"drop_pad_mode of {case.operator}: got {case.drop_pad_mode}")
    if case.has_capacity and not (case.experts > 0 and case.capacity > 0):
        raise ValueError(f"expected positive experts and capacity, got {case.experts} and {case.capacity}")
    if case.mode == "scales_bias" and case.experts < 1:
        raise ValueError(f"experts: expected at least 1 with bias, got {case.experts}")
    least = natural if case.is_finalize or case.has_capacity else 0
    if not least <= case.rows <= natural:
        raise ValueError(f"rows: expected {least} to {natural}, got {case.rows}")


def _check_drop(case: Case) -> None:
    allowed: tuple[str, ...]
    if case.is_padded:
        allowed = DROPS if case.tokens else ("all",)
    elif case.has_capacity:
        allowed = DROPS if case.slots <= case.rows else DROPS[1:]
    elif case.rows == case.slots:
        allowed = ("none",)
    else:
        allowed = ("first", "last", "some") if case.rows else ("all",)
    if case.drop not in allowed:
        sizes = f"{case.slots} slots and {case.rows} rows"
        raise ValueError(f"drop with {sizes}: expected one of {allowed}, got {case.drop!r}")


def _poison(case: Case, index: Array, grad: Array, rows: Array, weights: Array | None) -> None:
    """NaN in every row, weight and gradient that no output may depend on."""
    if case.is_padded:
        unread_rows = inactive = index < 0
        used_tokens = index[~inactive]
    else:
        inactive = (index < 0) | (index >= case.rows)
        unread_rows = ~np.isin(np.arange(case.rows), index[~inactive])
        used_tokens = np.flatnonzero(~inactive) // case.topk
    rows[unread_rows] = np.nan
    if weights is not None:
        weights.reshape(-1)[inactive] = np.nan
    if case.mode != "scales_bias":
        grad[~np.isin(np.arange(case.tokens), used_tokens)] = np.nan


def _unpermute_arguments(case: Case, index: Array, grad: Array, rows: Array, weights: Array | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "permuted_tokens": rows,
        "unpermuted_tokens_grad": grad,
        "sorted_indices": index,
    }
    if weights is not None:
        arguments["probs"] = weights.reshape(-1) if case.is_padded and case.extra else weights
    if case.is_padded:
        arguments["padded_mode"] = True
    if case.extra:
        arguments["restore_shape"] = (case.tokens, case.hidden)
    return arguments


def _finalize_arguments(
    case: Case, index: Array, grad: Array, rows: Array, weights: Array | None, expert_idx: Array, bias: Array
) -> dict[str, Any]:
    arguments: dict[str, Any] = {"grad_y": grad, "expanded_row_idx": index}
    if weights is not None or case.extra:
        shape = (case.experts, case.capacity, case.hidden) if case.has_capacity else rows.shape
        arguments["expanded_x"] = rows.reshape(shape)
    if weights is not None:
        arguments["scales"] = weights
    if case.mode == "scales_bias" or (case.extra and case.experts):
        arguments["expert_idx"] = expert_idx
    if case.mode == "scales_bias" or (case.extra and case.experts and weights is None):
        arguments["bias"] = bias
    arguments["drop_pad_mode"] = case.drop_pad_mode
    arguments["active_num"] = case.active_num
    if case.has_capacity:
        arguments["expert_num"] = case.experts
        arguments["expert_capacity"] = case.capacity
    return arguments


def enumerate_cases(
    operator: str | None = None,
    mode: str | None = None,
    data: str | None = None,
    weight: str | None = None,
    topks: Sequence[int] = (1, 2, 8),
    hiddens: Sequence[int] = (1, 7, 9, 17, 33, 64, 100, 126, 257, 1024),
    tokens: Sequence[int] = (0, 1, 3, 5, 16),
    cases_per_combination: int = 8,
    seed: int = 0,
) -> Iterator[Case]:
    """A deterministic mix of cases for every operator x mode x D x P, or for those the filters keep.

    Layouts (full, limited, padded; nothing, one, some or all slots dropped), values and shapes are dealt
    from shuffled decks that the combinations of a mode share. A combination yields the same cases whatever
    the filters are, and asking for more of them only adds to the end.

    Args:
        operator: keep one operator, a key of MODES.
        mode: keep one mode.
        data: keep one D, a key of DTYPES.
        weight: keep one P; drops the modes without weights.
        topks: values of K.
        hiddens: values of H.
        tokens: values of R.
        cases_per_combination: how many cases of each combination.
        seed: of everything.

    Raises:
        ValueError: a filter that names nothing known.
    """
    modes = tuple(dict.fromkeys(itertools.chain.from_iterable(MODES.values())))
    wanted = {"operator": operator, "mode": mode, "data": data, "weight": weight}
    known = {"operator": tuple(MODES), "mode": modes, "data": tuple(DTYPES), "weight": tuple(DTYPES)}
    for name, value in wanted.items():
        if value is not None and value not in known[name]:
            raise ValueError(f"{name}: expected one of {known[name]}, got {value!r}")
    for key, start in _combinations():
        if all(value in (None, part) for value, part in zip(wanted.values(), key, strict=True)):
            mixed = _mix(key, start, topks, hiddens, tokens, seed)
            yield from itertools.islice(mixed, cases_per_combination)


_Key: TypeAlias = tuple[str, str, str, str | None]

# How far the combinations of one mode start apart, so that together they see every layout and shape.
_STRIDE = 8


def _combinations() -> Iterator[tuple[_Key, int]]:
    """Every (operator, mode, D, P) with the place in its mode's decks where it starts."""
    for operator, modes in MODES.items():
        for mode in modes:
            weights = tuple(DTYPES) if mode in _WEIGHTED_MODES else (None,)
            for number, (data, weight) in enumerate(itertools.product(DTYPES, weights)):
                yield (operator, mode, data, weight), _STRIDE * number


def _mix(
    key: _Key, start: int, topks: Sequence[int], hiddens: Sequence[int], tokens: Sequence[int], seed: int
) -> Iterator[Case]:
    """Endless cases of one combination."""
    operator, mode, data, weight = key
    rng = _stable_rng(seed, key)
    decks = [
        _deal(_stable_rng(seed, (operator, mode, name)), items)
        for name, items in (
            ("layout", layouts(operator, mode)),
            ("values", ("normal", "special", "normal", "special", "level")),
            ("tokens", tokens),
            ("topk", topks),
            ("hidden", hiddens),
        )
    ]
    dealt = itertools.islice(zip(*decks, strict=True), start, None)
    for layout, values, case_tokens, topk, hidden in dealt:
        yield Case(
            operator,
            mode,
            data,
            weight,
            case_tokens,
            topk,
            hidden,
            values=values,
            extra=bool(rng.integers(2)),
            seed=int(rng.integers(2**31)),
            **sizes(rng, operator, mode, layout, case_tokens, topk),
        )


def _stable_rng(seed: int, names: Sequence[str | None]) -> np.random.Generator:
    """A generator for a name: the same on every machine, whatever else is drawn."""
    return np.random.default_rng([seed, zlib.crc32("/".join(map(str, names)).encode())])


def _deal(rng: np.random.Generator, items: Sequence[Any]) -> Iterator[Any]:
    """Endless items, each once before any comes again."""
    while True:
        for number in rng.permutation(len(items)):
            yield items[number]
