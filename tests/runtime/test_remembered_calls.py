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


class Backwards(tuple[Any, ...]):
    """A tuple that is not what it holds."""

    def __iter__(self) -> Any:
        return reversed(self[:])


class Size(tuple[int, ...]):
    """As torch names its shapes."""


def test_lists_and_plain_subclasses_of_tuples_are_as_good_as_tuples() -> None:
    expected = _native.signature((True, (2, 4)), (GRAD,), None)
    assert expected is not None
    for shape in ([2, 4], Size((2, 4))):
        assert _native.signature((True, shape), (GRAD,), None) == expected


@given(signed)
def test_the_memory_of_arrays_is_no_part_of_a_signature(call: Any) -> None:
    attributes, arrays, out = call

    def other(array: Any) -> Any:
        if array is None:
            return None
        wide = np.ones((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (), array.dtype)
        return wide[..., ::2] if array.ndim else wide

    copies = None if out is None else tuple([other(array) for array in out])
    found = _native.signature(attributes, tuple([other(array) for array in arrays]), copies)
    assert found == _native.signature(*call)


ODD = [2**63, -(2**63) - 1, np.int64(1), np.True_, 1.0, "1", np.ones(1, int), (1, [1.0]), Backwards((1, 2))]


@pytest.mark.parametrize("attribute", ODD, ids=repr)
def test_odd_attributes_have_no_signature(attribute: Any) -> None:
    assert _native.signature((0, attribute), (GRAD,), None) is None


def test_metadata_of_a_dtype_is_not_handed_on() -> None:
    told = np.dtype(np.float32, metadata={"unit": "m"})
    for data in (GRAD.astype(told), GRAD):
        rows, _ = moegrad.finalize_routing_v2_grad(data, INDEX)
        assert rows.dtype.metadata is None


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


def first_results(case: Any) -> tuple[Any, Any]:
    """What a call without outputs gives."""
    rows, weights = getattr(moegrad, case.operator)(**case.arguments())
    return rows, weights


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
    arguments["out"] = tuple([None if array is None else array.copy() for array in first_results(case)])
    name = data.draw(st.sampled_from(sorted(arguments)))
    how = data.draw(st.integers(0, 7))
    if name == "out":
        position = data.draw(st.integers(0, 1))
        out = [changed(array, how) if i == position else array for i, array in enumerate(arguments["out"])]
        other = arguments | {"out": data.draw(st.sampled_from([tuple(out), out, out[:1], None]))}
    else:
        other = arguments | {name: changed(arguments[name], how)}
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


def test_a_build_without_the_kernel_is_told_after_shapes_and_before_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_call: Any) -> Any:
        raise ImportError("no such kernel")

    monkeypatch.setattr(kernels, "find", missing)
    with pytest.raises(ValueError, match="expanded_row_idx: expected N = R"):
        moegrad.finalize_routing_v2_grad(GRAD, INDEX[:3])
    with pytest.raises(ImportError, match="no such kernel"):
        moegrad.finalize_routing_v2_grad(GRAD, INDEX * 0)
    assert not calls._remembered


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
