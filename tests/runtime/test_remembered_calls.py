"""Calls seen before skip the checks of dtypes, shapes and attributes: never a check that would have refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import moegrad
from moegrad import _native, calls, checks, kernels

from ..strategies import cases

F32 = np.dtype(np.float32)
GRAD, INDEX = np.ones((2, 4), F32), np.array([1, 0, 3, 2], np.int32)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    calls._remembered.clear()
    yield
    calls._remembered.clear()


# ---- signatures ----

attributes = st.recursive(
    st.sampled_from([None, False, True, 0, 1, 2, -1, -(2**63), 2**63 - 1]),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
dtypes = st.sampled_from([np.float16, np.float32, np.int32, np.int64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
arrays = st.one_of(
    st.none(), st.builds(np.zeros, st.lists(st.integers(0, 3), max_size=3).map(tuple), dtypes)
)  # fmt: skip
signed = st.tuples(
    st.lists(attributes, max_size=3).map(tuple),
    st.lists(arrays, max_size=3).map(tuple),
    st.one_of(st.none(), st.tuples(arrays, arrays)),
)


def told(attributes: Any, arrays: Any, out: Any) -> str:
    """What a signature has to tell apart, in full."""
    shown = [[None if array is None else (array.dtype.str, array.dtype.name, array.shape) for array in group]
             for group in (arrays, out or ())]  # fmt: skip
    return repr((attributes, shown, out is None))


@given(signed, signed)
@example(((), (np.zeros(5, F32), np.zeros((), F32)), None), ((), (np.zeros((), F32), np.zeros(11, np.int32)), None))
@example(((), (GRAD,), (None, None)), ((), (GRAD, None, None), None))
def test_signatures_are_equal_just_where_calls_look_alike(one: Any, other: Any) -> None:
    for call in (one, other):
        assert _native.signature(*call) == _native.signature(*call)
    assert (_native.signature(*one) == _native.signature(*other)) is (told(*one) == told(*other))


class Odd(np.ndarray[Any, Any]):
    """A subclass may mean anything."""


@pytest.mark.parametrize("attribute", [2**63, -(2**63) - 1, np.int64(1), np.True_, 1.0, "1", [1], (1, [1])])
def test_odd_attributes_have_no_signature(attribute: Any) -> None:
    assert _native.signature((0, attribute), (GRAD,), None) is None


@pytest.mark.parametrize("array", [GRAD.tolist(), GRAD.view(Odd), GRAD.astype(">f4"), np.ma.array(GRAD), np.float32(1)])
def test_odd_arrays_have_no_signature(array: Any) -> None:
    assert _native.signature((), (GRAD, array), None) is None
    assert _native.signature((), (GRAD,), (array, None)) is None


@pytest.mark.parametrize("out", [[GRAD, GRAD], (GRAD,), (GRAD,) * 3, GRAD, "ab"])
def test_odd_outputs_have_no_signature(out: Any) -> None:
    assert _native.signature((), (GRAD,), out) is None


def test_what_does_not_fit_has_no_signature() -> None:
    deep: tuple[Any, ...] = ()
    for _ in range(10_000):
        deep = (deep,)
    many = np.zeros((1,) * 32, F32)
    assert _native.signature((deep,), (), None) is None
    assert _native.signature((tuple(range(100)),), (), None) is None
    assert _native.signature((), (many,) * 3, None) is not None
    assert _native.signature((), (many,) * 4, None) is None
    fitting = [n for n in range(200) if _native.signature((tuple([None] * n),), (), None) is not None]
    assert len({_native.signature((tuple([None] * n),), (), None) for n in fitting}) == len(fitting)


# ---- calls ----


def outcome(operator: str, arguments: dict[str, Any]) -> Any:
    """Bits of the results, or the error."""
    try:
        rows, weights = getattr(moegrad, operator)(**arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return [(array.shape, array.dtype, array.tobytes()) for array in (rows, weights) if array is not None]


def changed(value: Any, how: int) -> Any:
    """Another argument in place of one: of another type, dtype or shape, or with other values."""
    if not isinstance(value, np.ndarray):
        number = value if isinstance(value, int) else 0
        return [None, True, 0.0, np.int64(number), number + 1, (value, value), -1, [2, 4]][how]
    others: list[Callable[[], Any]] = [
        lambda: None,
        lambda: value.astype(np.float64),
        lambda: value.astype(value.dtype.newbyteorder()),
        lambda: value[..., None],
        lambda: value[:-1],
        lambda: value.reshape(-1)[::-1].reshape(value.shape),
        lambda: value * 2,
        lambda: value.tolist(),
    ]
    with np.errstate(invalid="ignore", over="ignore"):
        return others[how]()


@given(cases(max_hidden=9), st.data())
def test_a_call_ends_as_if_no_other_had_been_before(case: Any, data: st.DataObject) -> None:
    arguments = case.arguments()
    name = data.draw(st.sampled_from(sorted(arguments)))
    other = arguments | {name: changed(arguments[name], data.draw(st.integers(0, 7)))}
    calls._remembered.clear()
    cold = outcome(case.operator, other)
    calls._remembered.clear()
    first = outcome(case.operator, arguments)
    assert outcome(case.operator, other) == cold
    assert outcome(case.operator, other) == cold
    assert outcome(case.operator, arguments) == first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drop_pad_mode": False}, "drop_pad_mode: expected an integer, got False (bool)"),
        ({"active_num": 0.0}, "active_num: expected an integer, got 0.0 (float)"),
        ({"check_indices": 1}, "check_indices: expected True or False, got 1 (int)"),
    ],
)
def test_equal_attributes_of_other_types_are_refused_still(changes: dict[str, Any], message: str) -> None:
    moegrad.finalize_routing_v2_grad(GRAD, INDEX)
    with pytest.raises(TypeError) as refusal:
        moegrad.finalize_routing_v2_grad(GRAD, INDEX, **changes)
    assert str(refusal.value) == f"finalize_routing_v2_grad: {message}"


def test_values_and_memory_are_looked_at_each_time() -> None:
    out = (np.zeros((4, 4), F32), None)
    for _ in range(2):
        moegrad.finalize_routing_v2_grad(GRAD, INDEX, out=out)
        with pytest.raises(ValueError, match=r"got 1 at \[0\] and again at \[3\]$"):
            moegrad.finalize_routing_v2_grad(GRAD, np.array([1, 0, 3, 1], np.int32), out=out)
        with pytest.raises(ValueError, match="expected a C-contiguous array"):
            moegrad.finalize_routing_v2_grad(GRAD, INDEX, out=(np.zeros((4, 4), F32).T, None))
        with pytest.raises(ValueError, match=r"got some shared with grad_y$"):
            moegrad.finalize_routing_v2_grad(out[0][:2], INDEX, out=out)
    assert len(calls._remembered) == 1


def test_no_check_of_indices_is_remembered_as_such() -> None:
    twice = np.array([1, 1, 3, 2], np.int32)
    moegrad.finalize_routing_v2_grad(GRAD, twice, check_indices=False)
    with pytest.raises(ValueError, match=r"got 1 at \[0\] and again at \[1\]$"):
        moegrad.finalize_routing_v2_grad(GRAD, twice)
    moegrad.finalize_routing_v2_grad(GRAD, twice, check_indices=False)


def test_the_checks_of_shapes_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    settle = checks.settle

    def counted(*call: Any) -> Any:
        checked.append(call)
        return settle(*call)

    monkeypatch.setattr(checks, "settle", counted)
    for _ in range(3):
        moegrad.finalize_routing_v2_grad(GRAD, INDEX)
    assert len(checked) == 1
    moegrad.finalize_routing_v2_grad(GRAD[:, :3], INDEX)
    assert len(checked) == 2


def test_a_forced_variant_has_calls_of_its_own() -> None:
    moegrad.finalize_routing_v2_grad(GRAD, INDEX)
    (widest,) = calls._remembered.values()
    with kernels.forced("baseline"):
        moegrad.finalize_routing_v2_grad(GRAD, INDEX)
    one, two = calls._remembered.values()
    assert one is widest
    assert (one.kernel is two.kernel) is (kernels.usable()[0] == "baseline")


def test_memory_for_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST", 3)
    for hidden in range(1, 9):
        rows, _ = moegrad.finalize_routing_v2_grad(np.full((2, hidden), hidden, F32), INDEX)
        assert (rows == hidden).all()
        assert 1 <= len(calls._remembered) <= 3
