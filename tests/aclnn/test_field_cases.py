"""What went wrong for others, through the two-phase API: each case with the right values, outputs between guards."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from moegrad.aclnn import AclnnError, Session, Tensor
from moegrad.tools.cases import Case
from moegrad.tools.compare import explain

from .calls import FINALIZE, INVALID, TILING, UNPERMUTE, names_of
from .raw import Raw

Array = npt.NDArray[Any]

F16, F32, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
DTYPES = pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=["f16", "bf16", "f32"])
GUARD = 19
"""Elements before and behind an output: not a multiple of anything that kernels move."""


def between_guards(acl: Session, name: str, arguments: Sequence[Any], fill: float = np.nan) -> list[Array]:
    """Runs with each output inside a larger block; the outputs, once the guards were seen to be what they were.

    `arguments` hold the outputs as (shape, dtype) or None.
    """
    call = Raw(acl, name)
    inputs = len(arguments) - len(names_of(name)[2])
    for value in arguments[:inputs]:
        call.add(value)
    places = []
    for value in arguments[inputs:]:
        if value is None:
            call.add(None)
            continue
        shape, dtype = value
        block = np.full(int(np.prod(shape)) + 2 * GUARD, fill, dtype)
        places.append((len(call.blocks), shape))
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        call.passed.append(ctypes.c_void_p(call.tensor(block, call.memory(block), shape, strides, GUARD)))
    assert call.first() == 0, acl.recent_error()
    workspace = acl.malloc(call.size.value)
    assert call.second(workspace, call.size.value) == 0, acl.recent_error()
    acl.call("aclrtSynchronizeStream", acl.stream)
    found = []
    for number, shape in places:
        after, before = call.read(number), call.blocks[number][1]
        for part in (slice(None, GUARD), slice(-GUARD, None)):
            assert after[part].tobytes() == before[part].tobytes()
        found.append(after[GUARD:-GUARD].reshape(shape))
    acl.free(workspace)
    call.close()
    return found


def equal(got: Array, wanted: Any) -> None:
    """The same numbers; zeros have no sign."""
    np.testing.assert_array_equal(got.astype(np.float64), np.asarray(wanted, np.float64))
    assert not np.signbit(got.astype(np.float64)[got == 0]).any()


def array(values: Any, dtype: npt.DTypeLike = np.float32) -> Array:
    return np.asarray(values).astype(dtype)


def index(*values: int) -> Array:
    return np.array(values, np.int32)


ROWS_1, SCALES_1 = [[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], [[0, 50], [530, 0]]


def example_1(dtype: npt.DTypeLike, scales: Any = ((0.5, 0.25), (2, 1)), x_unread: float = 0) -> list[Any]:
    """Example 1 of the contract; `x_unread` is added to the rows that no slot names."""
    x = array([[[10, 20], [30 + x_unread, 40]], [[50 + x_unread, 60], [70, 80]]], dtype)
    given = [array([[1, 2], [3, 4]], dtype), index(-1, 0, 3, -1), x, array(scales)]
    return [*given, None, None, 1, 0, 2, 2, ((2, 2, 2), dtype), ((2, 2), F32)]


@DTYPES
def test_1_a_dropped_slot_is_no_row(dtype: npt.DTypeLike, session: Session) -> None:
    row, weight = between_guards(session, FINALIZE, example_1(dtype))
    equal(row, ROWS_1)
    equal(weight, SCALES_1)


@DTYPES
@pytest.mark.parametrize("dropped_weight", [0, 1, np.nan, np.inf])
def test_2_a_dropped_slot_does_not_reach_the_weight_gradient(
    dropped_weight: float, dtype: npt.DTypeLike, session: Session
) -> None:
    scales = ((dropped_weight, 0.25), (2, dropped_weight))
    row, weight = between_guards(session, FINALIZE, example_1(dtype, scales, x_unread=np.nan))
    equal(row, ROWS_1)
    equal(weight, SCALES_1)


@DTYPES
def test_3_the_bias_counts_for_a_dropped_slot(dtype: npt.DTypeLike, session: Session) -> None:
    call = example_1(dtype)
    call[4:6] = np.array([[1, 0], [1, 1]], np.int32), array([[1, 1], [2, 2]], dtype)
    row, weight = between_guards(session, FINALIZE, call)
    equal(row, ROWS_1)
    equal(weight, [[6, 53], [544, 14]])


@DTYPES
def test_4_rows_that_no_slot_names_are_zero_every_time(dtype: npt.DTypeLike, session: Session) -> None:
    row = np.full((2, 5, 33), np.nan, dtype)
    for first, second in ((9, 0), (3, 4), (0, 9)):
        grad = np.stack([np.full(33, 1, dtype), np.full(33, 2, dtype)])
        session.run(FINALIZE, grad, index(first, second), None, None, None, None, 1, 0, 2, 5, row, None)
        wanted = np.zeros((10, 33))
        wanted[first], wanted[second] = 1, 2
        equal(row.reshape(10, 33), wanted)


@pytest.mark.parametrize("weighted", [False, True])
def test_5_no_tokens(weighted: bool, session: Session) -> None:
    x, scales = (array(np.ones((4, 8, 64))), array(np.ones((0, 2)))) if weighted else (None, None)
    call: list[Any] = [array(np.ones((0, 64))), index(), x, scales, None, None, 1, 0, 4, 8, ((4, 8, 64), F32)]
    row, *weights = between_guards(session, FINALIZE, [*call, ((0, 2), F32) if weighted else None])
    equal(row, np.zeros((4, 8, 64)))
    assert [each.shape for each in weights] == [(0, 2)] * weighted


@DTYPES
def test_5_one_token_and_one_expert(dtype: npt.DTypeLike, session: Session) -> None:
    call = [array([[3, 4, 5]], dtype), index(0), array([[[1, 1, 2]]], dtype), array([[2]])]
    for slot, row_wanted, weight_wanted in ((0, [6, 8, 10], 17), (-1, [0, 0, 0], 0)):
        call[1] = index(slot)
        outputs = [((1, 1, 3), dtype), ((1, 1), F32)]
        row, weight = between_guards(session, FINALIZE, [*call, None, None, 1, 0, 1, 1, *outputs])
        equal(row, [[row_wanted]])
        equal(weight, [[weight_wanted]])


def example_3(dtype: npt.DTypeLike, limit: int, rows: int) -> list[Any]:
    grad = array([[1, 1], [2, 2], [3, 3]], dtype)
    x = array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]], dtype)[:rows]
    call = [grad, index(5, 0, 2, 4, 1, 3), x, array(np.ones((3, 2))), None, None, 0, limit, 0, 0]
    return [*call, ((rows, 2), dtype), ((3, 2), F32)]


@DTYPES
def test_6_a_limit_applies_to_both_outputs(dtype: npt.DTypeLike, session: Session) -> None:
    row, weight = between_guards(session, FINALIZE, example_3(dtype, 4, 4))
    equal(row, [[1, 1], [3, 3], [2, 2], [3, 3]])
    equal(weight, [[0, 3], [22, 0], [21, 45]])


@pytest.mark.parametrize("limit", [0, -1, 6, 7, 2**40])
def test_6_no_limit(limit: int, session: Session) -> None:
    row, weight = between_guards(session, FINALIZE, example_3(F32, limit, 6))
    equal(row, [[1, 1], [3, 3], [2, 2], [3, 3], [2, 2], [1, 1]])
    equal(weight, [[23, 3], [22, 38], [21, 45]])


def test_6_a_limit_means_nothing_in_capacity_mode(session: Session) -> None:
    call = example_1(F32)
    call[7] = 1
    row, weight = between_guards(session, FINALIZE, call)
    equal(row, ROWS_1)
    equal(weight, SCALES_1)


@pytest.mark.parametrize("chip", ["session", "session_950"])
def test_7_the_direction_of_the_map(chip: str, request: pytest.FixtureRequest) -> None:
    acl: Session = request.getfixturevalue(chip)
    grad = array([[1], [2], [3], [4]], BF16)
    tail: list[Any] = [((4, 1), BF16), None]
    (row,) = between_guards(acl, FINALIZE, [grad, index(1, 3, 0, 2), *[None] * 4, 0, 0, 0, 0, *tail])
    equal(row, [[3], [1], [4], [2]])
    (row,) = between_guards(acl, UNPERMUTE, [grad, grad, index(1, 3, 0, 2), None, False, None, *tail])
    equal(row, [[3], [1], [4], [2]])


@pytest.mark.parametrize("chip", ["session", "session_950"])
def test_8_slots_are_token_major(chip: str, request: pytest.FixtureRequest) -> None:
    acl: Session = request.getfixturevalue(chip)
    grad, tail = array([[1], [10]], BF16), [((4, 1), BF16), None]
    (row,) = between_guards(acl, FINALIZE, [grad, index(0, 1, 2, 3), *[None] * 4, 0, 0, 0, 0, *tail])
    equal(row, [[1], [1], [10], [10]])
    x = array(np.ones((4, 1)), BF16)
    (row,) = between_guards(acl, UNPERMUTE, [x, grad, index(0, 1, 2, 3), None, False, None, *tail])
    equal(row, [[1], [1], [10], [10]])


@DTYPES
def test_9_one_choice(dtype: npt.DTypeLike, session: Session) -> None:
    grad = array(np.arange(20).reshape(5, 4) % 7, dtype)
    x = array(np.arange(20).reshape(5, 4) % 5, dtype)
    where = index(2, 0, 4, 1, 3)
    wanted = (grad.astype(np.float64) * x.astype(np.float64)[where]).sum(axis=1, keepdims=True)
    tail: list[Any] = [((5, 4), dtype), ((5, 1), F32)]
    scales = array(np.ones((5, 1)))
    row, weight = between_guards(session, FINALIZE, [grad, where, x, scales, None, None, 0, 0, 0, 0, *tail])
    equal(row[where], grad)
    equal(weight, wanted)
    row, weight = between_guards(session, UNPERMUTE, [x, grad, where, scales, False, None, *tail])
    equal(row[where], grad)
    equal(weight, wanted)


@pytest.mark.parametrize("chip", ["session", "session_950"])
@pytest.mark.parametrize("operator", [FINALIZE, UNPERMUTE])
def test_10_fp32_weights_are_not_rounded_to_the_rows(operator: str, chip: str, request: pytest.FixtureRequest) -> None:
    acl: Session = request.getfixturevalue(chip)
    grad, x, scales = array([[100]], BF16), array([[1.0078125]], BF16), array([[0.3]])
    tail: list[Any] = [((1, 1), BF16), ((1, 1), F32)]
    calls: dict[str, list[Any]] = {
        FINALIZE: [grad, index(0), x, scales, None, None, 0, 0, 0, 0, *tail],
        UNPERMUTE: [x, grad, index(0), scales, False, None, *tail],
    }
    row, weight = between_guards(acl, operator, calls[operator])
    equal(row, [[30]])
    equal(weight, [[100.78125]])  # what bf16 does not hold


@pytest.mark.parametrize(
    ("change", "status", "argument"),
    [
        ({3: array(np.ones((3, 1)))}, TILING, "scalesOptional"),
        ({1: index(5, 0, 2, 4, 1)}, TILING, "expandedRowIdx"),
        ({1: np.arange(6)}, INVALID, "expandedRowIdx"),
        ({1: np.array([2**31, 0, 1, 2, 3, 4])}, INVALID, "expandedRowIdx"),
    ],
    ids=["fewer weights", "a slot short", "int64", "past int32"],
)
def test_11_what_does_not_fit_is_named(change: dict[int, Array], status: int, argument: str, session: Session) -> None:
    call = example_3(F32, 0, 6)[:-2]
    for place, value in change.items():
        call[place] = value
    row, weight = np.full((6, 2), np.nan, np.float32), np.full((3, 2), np.nan, np.float32)
    with pytest.raises(AclnnError) as caught:
        session.run(FINALIZE, *call, row, weight)
    assert caught.value.status == status
    assert caught.value.text.startswith(f"{FINALIZE}GetWorkspaceSize: {argument}: expected ")
    assert ", got " in caught.value.text
    assert np.isnan(row).all()
    assert np.isnan(weight).all()


OUT_OF_RANGE = pytest.mark.parametrize("bad", [6, 7, 2**31 - 1, -2, -6, -(2**31)])


@OUT_OF_RANGE
def test_11_an_index_out_of_range_is_a_dropped_slot(bad: int, session: Session) -> None:
    """Nobody checks values here; where rows may stay without a slot, such a slot has no row."""
    grad, x = array(np.ones((3, 5))), array(np.full((2, 3, 5), 2))
    where, scales = index(5, 0, bad, 4, 1, 3), array(np.ones((3, 2)))
    outputs = [((2, 3, 5), F32), ((3, 2), F32)]
    row, weight = between_guards(session, FINALIZE, [grad, where, x, scales, None, None, 1, 0, 2, 3, *outputs])
    equal(row.reshape(6, 5)[:, 0], [1, 1, 0, 1, 1, 1])
    equal(weight, [[10, 10], [0, 10], [10, 10]])


@OUT_OF_RANGE
@pytest.mark.parametrize("operator", [FINALIZE, UNPERMUTE])
def test_11_an_index_out_of_range_reaches_no_memory_of_others(operator: str, bad: int, session: Session) -> None:
    """Where every row has a slot, all that is wrong is the row that none names."""
    grad, x = array(np.ones((3, 5))), array(np.full((6, 5), 2))
    where, scales = index(5, 0, bad, 4, 1, 3), array(np.ones((3, 2)))
    row, weight = np.full((6, 5), np.nan, F32), np.full((3, 2), np.nan, F32)
    calls: dict[str, list[Any]] = {
        FINALIZE: [grad, where, x, scales, None, None, 0, 0, 0, 0, row, weight],
        UNPERMUTE: [x, grad, where, scales, False, None, row, weight],
    }
    with pytest.raises(AclnnError) as caught:
        session.run(operator, *calls[operator])
    assert caught.value.status == 361001
    assert "1 finding\n" in caught.value.text
    assert "[output-unwritten]" in caught.value.text
    assert "20 of 120 bytes" in caught.value.text


@pytest.mark.parametrize("dropped", [0, 0.5, 0.99])
def test_12_no_workspace_whatever_is_dropped(dropped: float, session: Session) -> None:
    tokens, topk, hidden = 4096, 8, 8
    slots = tokens * topk
    where = np.random.default_rng(0).permutation(slots).astype(np.int32)
    where[np.random.default_rng(1).random(slots) < dropped] = -1
    grad, x, scales = np.ones((tokens, hidden), F32), np.ones((8, tokens, hidden), F32), np.ones((tokens, topk), F32)
    row, weight = np.full_like(x, np.nan), np.full_like(scales, np.nan)
    inputs = [grad, where, x, scales, None, None, 1, 0, 8, tokens, row, weight]
    size, executor = session.aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(*inputs)
    assert size == 0
    session.aclnnMoeFinalizeRoutingV2Grad(None, 0, executor)
    wanted = np.zeros((slots, hidden))
    wanted[where[where >= 0]] = 1
    equal(row.reshape(slots, hidden), wanted)
    equal(weight.reshape(-1), np.where(where < 0, 0, hidden))


RAGGED = [("f32", 1), ("f32", 7), ("f32", 126), ("bf16", 1), ("bf16", 9), ("bf16", 17), ("bf16", 33), ("bf16", 100)]
RAGGED += [("f16", 9), ("f16", 100)]


@pytest.mark.parametrize(("data", "hidden"), RAGGED)
@pytest.mark.parametrize("mode", ["plain", "scales", "scales_bias"])
def test_13_rows_that_are_no_multiple_of_32_bytes(mode: str, data: str, hidden: int, session: Session) -> None:
    weight_dtype = None if mode == "plain" else "f32"
    case = Case("finalize_routing_v2_grad", mode, data, weight_dtype, 3, 2, hidden, experts=2, seed=hidden)
    given = case.arguments()
    inputs = [given.get(name) for name in names_of(FINALIZE)[0]]
    outputs = [((6, hidden), given["grad_y"].dtype), ((3, 2), F32) if weight_dtype else None]
    row, *weight = between_guards(session, FINALIZE, [*inputs, 0, 0, 0, 0, *outputs])
    assert explain(row, weight[0] if weight else None, case.expected()) is None


@pytest.mark.parametrize(("data", "hidden"), RAGGED)
@pytest.mark.parametrize("mode", ["padded", "padded_probs"])
def test_13_rows_that_are_no_multiple_of_32_bytes_padded(mode: str, data: str, hidden: int, session: Session) -> None:
    weight_dtype = None if mode == "padded" else "f32"
    sizes: dict[str, Any] = {"experts": 2, "capacity": 3, "drop": "some"}
    case = Case("token_unpermute_grad", mode, data, weight_dtype, 3, 2, hidden, seed=hidden, **sizes)
    given = case.arguments()
    inputs = [given.get(name) for name in names_of(UNPERMUTE)[0]]
    outputs = [((6, hidden), given["permuted_tokens"].dtype), ((2, 3), F32) if weight_dtype else None]
    row, *weight = between_guards(session, UNPERMUTE, [*inputs, True, [3, hidden], *outputs])
    assert explain(row, weight[0] if weight else None, case.expected()) is None


@DTYPES
def test_18_views_of_inputs(dtype: npt.DTypeLike, session: Session) -> None:
    """Every input another kind of view, at once."""
    grad = array(np.arange(24).reshape(6, 4), dtype)[::2]
    x = array(np.arange(24).reshape(4, 6) % 5, dtype).T
    where = np.repeat(index(5, 0, 2, 4, 1, 3), 3)[::3]
    scales = array([[1, 2], [3, 4], [5, 6]])[::-1]
    experts = np.broadcast_to(index(1, 0), (3, 2))
    bias = np.broadcast_to(array([[1]], dtype), (2, 4))
    call = [grad, where, x, scales, experts, bias]
    for each in call:
        each.flags.writeable = False
    results = []
    for inputs in (call, [np.ascontiguousarray(each) for each in call]):
        row, weight = np.full((6, 4), np.nan, dtype), np.full((3, 2), np.nan, F32)
        session.run(FINALIZE, *inputs, 0, 0, 0, 0, row, weight)
        results.append((row.tobytes(), weight.tobytes()))
    assert results[0] == results[1]


def test_18_views_as_outputs_are_refused(session: Session) -> None:
    for output in (np.zeros((12, 2), F32)[::2], np.zeros((2, 6), F32).T, np.zeros((6, 4), F32)[:, :2]):
        with pytest.raises(AclnnError, match="gradExpandedXOut: expected a contiguous tensor, got shape") as caught:
            session.run(FINALIZE, *example_3(F32, 0, 6)[:-2], output, np.zeros((3, 2), F32))
        assert caught.value.status == INVALID


def test_18_another_format_is_refused(session: Session) -> None:
    call = example_3(F32, 0, 6)[:-2]
    call[0] = Tensor(call[0], 3)
    with pytest.raises(AclnnError, match="gradY: expected format ND"):
        session.run(FINALIZE, *call, np.zeros((6, 2), F32), np.zeros((3, 2), F32))
