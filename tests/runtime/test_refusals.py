"""What is refused: the exception, its whole message, outputs as they were (field cases 11, 18, 19)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import moegrad

Array = npt.NDArray[Any]
Call = dict[str, Any]
F32 = np.dtype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def finalize(**changes: Any) -> Call:
    """A valid call with R=2 K=3 H=4 E=2, changed."""
    call = {
        "grad_y": np.ones((2, 4), F32),
        "expanded_row_idx": ints(5, 0, 2, 4, 1, 3),
        "expanded_x": np.ones((6, 4), F32),
        "scales": np.ones((2, 3), F32),
        "expert_idx": np.zeros((2, 3), np.int32),
        "bias": np.ones((2, 4), F32),
        "out": (np.full((6, 4), 7, F32), np.full((2, 3), 7, F32)),
    }
    return call | changes


def drop_pad(**changes: Any) -> Call:
    """A valid call in mode 1 with R=2 K=3 H=4 E=2 C=4, changed."""
    call = finalize(
        expanded_row_idx=ints(-1, 0, 7, -1, 3, 1),
        expanded_x=np.ones((2, 4, 4), F32),
        out=(np.full((2, 4, 4), 7, F32), np.full((2, 3), 7, F32)),
    )
    return call | {"drop_pad_mode": 1, "expert_num": 2, "expert_capacity": 4} | changes


def unpermute(**changes: Any) -> Call:
    """A valid call with R=2 K=3 H=4, changed."""
    call = {
        "permuted_tokens": np.ones((6, 4), F32),
        "unpermuted_tokens_grad": np.ones((2, 4), F32),
        "sorted_indices": ints(5, 0, 2, 4, 1, 3),
        "probs": np.ones((2, 3), F32),
        "out": (np.full((6, 4), 7, F32), np.full((2, 3), 7, F32)),
    }
    return call | changes


def padded(**changes: Any) -> Call:
    """A valid call in padded_mode with R=2 H=4 E=2 C=3, changed."""
    call = unpermute(sorted_indices=ints(0, 1, -1, 1, 0, 0))
    return call | {"padded_mode": True, "restore_shape": (2, 4)} | changes


FINALIZE, UNPERMUTE = "finalize_routing_v2_grad", "token_unpermute_grad"
Build = Callable[..., Call]
BASES: dict[Build, str] = {finalize: FINALIZE, drop_pad: FINALIZE, unpermute: UNPERMUTE, padded: UNPERMUTE}


def other_bytes() -> Array:
    return np.ones((2, 4), F32).astype(F32.newbyteorder())


def strided(shape: tuple[int, ...]) -> Array:
    return np.full((*shape[:-1], 2 * shape[-1]), 7, F32)[..., ::2]


def frozen(shape: tuple[int, ...]) -> Array:
    array = np.full(shape, 7, F32)
    array.flags.writeable = False
    return array


def unaligned(shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape)) * 4
    return np.zeros(size + 4, np.uint8)[1 : size + 1].view(F32).reshape(shape)


def masked() -> Any:
    return np.ma.masked_array(np.ones((2, 4), F32))


MISSING: list[tuple[Build, Call, str]] = [
    (finalize, {"grad_y": None}, "grad_y: expected an array, got None"),
    (finalize, {"expanded_row_idx": None}, "expanded_row_idx: expected an array, got None"),
    (finalize, {"expanded_x": None}, "expanded_x: expected an array with scales, got None"),
    (finalize, {"expert_idx": None}, "expert_idx: expected an array with bias, got None"),
    (unpermute, {"permuted_tokens": None}, "permuted_tokens: expected an array, got None"),
    (unpermute, {"unpermuted_tokens_grad": None}, "unpermuted_tokens_grad: expected an array, got None"),
    (unpermute, {"sorted_indices": None}, "sorted_indices: expected an array, got None"),
    (
        unpermute,
        {"out": (None, np.ones((2, 3), F32))},
        "permuted_tokens_grad in out: expected an array, got None",
    ),
    (
        unpermute,
        {"out": (np.full((6, 4), 7, F32), None)},
        "probs_grad in out: expected an array with probs, got None",
    ),
    (
        unpermute,
        {"probs": None},
        "probs_grad in out: expected None without probs, got ndarray",
    ),
]

TYPES: list[tuple[Build, Call, str]] = [
    (finalize, {"out": np.ones(2)}, "out: expected a pair (grad_expanded_x, grad_scales), got ndarray"),
    (finalize, {"out": (1,)}, "out: expected a pair (grad_expanded_x, grad_scales), got 1 elements"),
    (
        finalize,
        {"grad_y": [[1.0]]},
        "grad_y: expected an array (NumPy's, or one with DLPack), got list",
    ),
    (
        finalize,
        {"out": (3, np.full((2, 3), 7, F32))},
        "grad_expanded_x in out: expected an array (NumPy's, or one with DLPack), got int",
    ),
    (
        finalize,
        {"grad_y": masked()},
        "grad_y: expected a plain array, got a masked one (use value.filled(0))",
    ),
    (
        finalize,
        {"grad_y": np.ones((2, 4))},
        "grad_y: expected dtype float16, bfloat16 or float32, got float64",
    ),
    (
        finalize,
        {"grad_y": np.ones((2, 4), np.int32)},
        "grad_y: expected dtype float16, bfloat16 or float32, got int32",
    ),
    (
        finalize,
        {"grad_y": np.ones((2, 4), np.uint16)},
        "grad_y: expected dtype float16, bfloat16 or float32, got uint16"
        " (bits of bfloat16 need their dtype: use array.view(ml_dtypes.bfloat16))",
    ),
    (
        finalize,
        {"grad_y": other_bytes()},
        "grad_y: expected dtype float16, bfloat16 or float32, got >f4 (float32 in reverse byte order)"
        " (another byte order than this machine's; use array.astype('float32'))",
    ),
    (
        finalize,
        {"expanded_x": np.ones((6, 4), ml_dtypes.bfloat16)},
        "expanded_x: expected dtype float32, the dtype of grad_y, got bfloat16",
    ),
    (
        finalize,
        {"bias": np.ones((2, 4), np.float16)},
        "bias: expected dtype float32, the dtype of grad_y, got float16",
    ),
    (
        finalize,
        {"scales": np.ones((2, 3))},
        "scales: expected dtype float16, bfloat16 or float32, got float64",
    ),
    (
        finalize,
        {"expanded_row_idx": np.arange(6)},
        "expanded_row_idx: expected dtype int32, got int64 (use array.astype(numpy.int32))",
    ),
    (
        finalize,
        {"expanded_row_idx": np.array([2**31, 0, 1, 2, 3, 4])},
        "expanded_row_idx: expected dtype int32, got int64 (use array.astype(numpy.int32))",
    ),
    (
        finalize,
        {"expanded_row_idx": np.arange(6, dtype=F32)},
        "expanded_row_idx: expected dtype int32, got float32",
    ),
    (
        finalize,
        {"expert_idx": np.zeros((2, 3), np.uint32)},
        "expert_idx: expected dtype int32, got uint32 (use array.astype(numpy.int32))",
    ),
    (
        unpermute,
        {"permuted_tokens": np.ones((6, 4), np.float16)},
        "permuted_tokens: expected dtype float32, the dtype of unpermuted_tokens_grad, got float16",
    ),
    (
        unpermute,
        {"out": (np.ones((6, 4)), np.ones((2, 3), F32))},
        "permuted_tokens_grad in out: expected dtype float32, got float64",
    ),
    (
        unpermute,
        {"out": (np.full((6, 4), 7, F32), np.ones((2, 3), np.float16))},
        "probs_grad in out: expected dtype float32, got float16",
    ),
    (finalize, {"drop_pad_mode": True}, "drop_pad_mode: expected an integer, got True (bool)"),
    (finalize, {"drop_pad_mode": 0.0}, "drop_pad_mode: expected an integer, got 0.0 (float)"),
    (
        finalize,
        {"active_num": np.float32(1)},
        "active_num: expected an integer, got np.float32(1.0) (float32)",
    ),
    (finalize, {"expert_num": None}, "expert_num: expected an integer, got None (NoneType)"),
    (finalize, {"expert_capacity": "3"}, "expert_capacity: expected an integer, got '3' (str)"),
    (finalize, {"check_indices": 1}, "check_indices: expected True or False, got 1 (int)"),
    (unpermute, {"padded_mode": 1}, "padded_mode: expected True or False, got 1 (int)"),
    (unpermute, {"check_indices": None}, "check_indices: expected True or False, got None (NoneType)"),
    (
        padded,
        {"restore_shape": 2},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got 2",
    ),
    (
        padded,
        {"restore_shape": (2.0, 4)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (2.0, 4)",
    ),
]

SHAPES: list[tuple[Build, Call, str]] = [
    (finalize, {"drop_pad_mode": 2}, "drop_pad_mode: expected 0 (dropless) or 1 (drop/pad), got 2"),
    (finalize, {"drop_pad_mode": -1}, "drop_pad_mode: expected 0 (dropless) or 1 (drop/pad), got -1"),
    (drop_pad, {"expert_num": 0}, "expert_num: expected a positive integer with drop_pad_mode 1, got 0"),
    (
        drop_pad,
        {"expert_capacity": -4},
        "expert_capacity: expected a positive integer with drop_pad_mode 1, got -4",
    ),
    (
        drop_pad,
        {"expert_num": 2**40, "expert_capacity": 2**40},
        f"expert_capacity: expected expert_num * expert_capacity below 2**63, got {2**40} * {2**40}",
    ),
    (finalize, {"grad_y": np.ones((1, 2, 4), F32)}, "grad_y: expected shape (R, H), got shape (1, 2, 4)"),
    (
        finalize,
        {"expanded_row_idx": ints(5, 0, 2, 4, 1, 3).reshape(2, 3)},
        "expanded_row_idx: expected shape (N,), got shape (2, 3)",
    ),
    (
        finalize,
        {"expanded_x": np.ones((6, 5), F32)},
        "expanded_x: expected shape (M, H) = (6, 4), got shape (6, 5)",
    ),
    (
        finalize,
        {"expanded_x": np.ones((5, 4), F32)},
        "expanded_x: expected M = N = 6 rows, one for each slot, got shape (5, 4)",
    ),
    (
        finalize,
        {"active_num": 4},
        "expanded_x: expected M = active_num = 4 rows, got shape (6, 4)",
    ),
    (
        drop_pad,
        {"expanded_x": np.ones((8, 4), F32)},
        "expanded_x: expected shape (E, C, H) = (2, 4, 4), got shape (8, 4)",
    ),
    (
        drop_pad,
        {"expanded_x": np.ones((4, 2, 4), F32)},
        "expanded_x: expected shape (E, C, H) = (2, 4, 4), got shape (4, 2, 4)",
    ),
    (
        drop_pad,
        {"bias": np.ones((3, 4), F32)},
        "bias: expected shape (E, H) = (2, 4), got shape (3, 4)",
    ),
    (
        finalize,
        {"scales": np.ones((3, 2), F32)},
        "scales: expected shape (R, K) = (2, K), got shape (3, 2)",
    ),
    (
        finalize,
        {"scales": np.ones(6, F32)},
        "scales: expected shape (R, K) = (2, K), got shape (6,)",
    ),
    (
        finalize,
        {"expert_idx": np.zeros((2, 2), np.int32)},
        "expert_idx: expected shape (R, K) = (2, 3), got shape (2, 2)",
    ),
    (
        unpermute,
        {"probs": np.ones((2, 2), F32)},
        "probs: expected shape (R, K) = (2, 3) for the 6 elements of sorted_indices, got shape (2, 2)",
    ),
    (
        unpermute,
        {"sorted_indices": ints(0, 1, 2, 3, 4)},
        "sorted_indices: expected N = R * K = 6 elements for probs of shape (2, 3), got shape (5,)",
    ),
    (
        unpermute,
        {"sorted_indices": ints(0, 1, 2, 3, 4), "probs": None, "out": None},
        "sorted_indices: expected N = R * K elements, a multiple of R = 2, got shape (5,)",
    ),
    (
        unpermute,
        {"permuted_tokens": np.ones((7, 4), F32)},
        "permuted_tokens: expected at most N = 6 rows, one for each slot, got shape (7, 4)",
    ),
    (
        unpermute,
        {"unpermuted_tokens_grad": np.ones((2, 5), F32)},
        "unpermuted_tokens_grad: expected shape (R, H) = (2, 4), got shape (2, 5)",
    ),
    (
        unpermute,
        {"permuted_tokens": np.ones((6, 0), F32), "unpermuted_tokens_grad": np.ones((2, 0), F32)},
        "unpermuted_tokens_grad: expected a hidden size H of at least 1, got shape (2, 0)",
    ),
    (
        padded,
        {"sorted_indices": ints(0, 1, 0)},
        "sorted_indices: expected shape (M,) = (6,), got shape (3,)",
    ),
    (
        padded,
        {"probs": np.ones((2, 2), F32)},
        "probs: expected M = 6 elements in any shape, got shape (2, 2)",
    ),
    (
        padded,
        {"restore_shape": (4, 2)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (4, 2)",
    ),
    (
        padded,
        {"restore_shape": (2, 4, 1)},
        "restore_shape: expected (R, H) = (2, 4), the shape of unpermuted_tokens_grad, got (2, 4, 1)",
    ),
    (
        unpermute,
        {"out": (np.full((5, 4), 7, F32), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected shape (6, 4), got shape (5, 4)",
    ),
    (
        drop_pad,
        {"out": (np.full((8, 4), 7, F32), np.full((2, 3), 7, F32))},
        "grad_expanded_x in out: expected shape (2, 4, 4), got shape (8, 4)",
    ),
    (
        unpermute,
        {"out": (np.full((6, 4), 7, F32), np.full((3, 2), 7, F32))},
        "probs_grad in out: expected shape (2, 3), got shape (3, 2)",
    ),
]

VALUES: list[tuple[Build, Call, str]] = [
    (
        finalize,
        {"expanded_row_idx": ints(5, 0, 2, 4, 1, 6)},
        "expanded_row_idx: expected distinct values in [0, 5], got 6 at [5]",
    ),
    (
        finalize,
        {"expanded_row_idx": ints(5, 0, -1, 4, 1, 3)},
        "expanded_row_idx: expected distinct values in [0, 5], got -1 at [2]",
    ),
    (
        finalize,
        {"expanded_row_idx": ints(0, 0, 1, 2, 3, 4)},
        "expanded_row_idx: expected distinct values in [0, 5], got 0 at [0] and again at [1]",
    ),
    (
        drop_pad,
        {"expanded_row_idx": ints(-1, 0, 8, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got 8 at [2]",
    ),
    (
        drop_pad,
        {"expanded_row_idx": ints(-1, 0, -2, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got -2 at [2]",
    ),
    (
        drop_pad,
        {"expanded_row_idx": ints(-1, 3, 7, -1, 3, 1)},
        "expanded_row_idx: expected distinct values in [-1, 7], got 3 at [1] and again at [4]",
    ),
    (
        finalize,
        {"expert_idx": np.array([[0, 1, 0], [1, 2, 1]], np.int32)},
        "expert_idx: expected values in [0, 1], got 2 at [1, 1]",
    ),
    (
        finalize,
        {"expert_idx": np.array([[0, -1, 0], [1, 0, 1]], np.int32)},
        "expert_idx: expected values in [0, 1], got -1 at [0, 1]",
    ),
    (
        unpermute,
        {"sorted_indices": ints(-(2**31), 0, 2, 4, 1, 3)},
        "sorted_indices: expected distinct values in [0, 5], got -2147483648 at [0]",
    ),
    (
        unpermute,
        {"sorted_indices": ints(5, 0, 2, 4, 1, 5)},
        "sorted_indices: expected distinct values in [0, 5], got 5 at [0] and again at [5]",
    ),
    (
        padded,
        {"sorted_indices": ints(0, 1, -1, 2, 0, 0)},
        "sorted_indices: expected values in [-1, 1], got 2 at [3]",
    ),
]

MEMORY: list[tuple[Build, Call, str]] = [
    (
        unpermute,
        {"out": (strided((6, 4)), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected a C-contiguous array,"
        " got shape (6, 4), strides (32, 8), writeable=True",
    ),
    (
        unpermute,
        {"out": (np.full((6, 4), 7, F32), frozen((2, 3)))},
        "probs_grad in out: expected a writeable array, got shape (2, 3), strides (12, 4), writeable=False",
    ),
    (
        unpermute,
        {"out": (unaligned((6, 4)), np.full((2, 3), 7, F32))},
        "permuted_tokens_grad in out: expected an aligned array,"
        " got shape (6, 4), strides (16, 4), writeable=True",
    ),
]


def snapshot(out: Any) -> list[bytes]:
    return (
        [array.tobytes() for array in out if isinstance(array, np.ndarray)] if isinstance(out, tuple) else []
    )


@pytest.mark.parametrize(
    ("error", "base", "changes", "message"),
    [
        pytest.param(error, *row, id=f"{row[0].__name__}: {row[2][:60]}")
        for error, table in (
            (ValueError, MISSING),
            (TypeError, TYPES),
            (ValueError, SHAPES),
            (ValueError, VALUES),
            (ValueError, MEMORY),
        )
        for row in table
    ],
)
def test_refusal(error: type[Exception], base: Build, changes: Call, message: str) -> None:
    call = base(**changes)
    before = snapshot(call["out"])
    with pytest.raises(error) as refused:
        getattr(moegrad, BASES[base])(**call)
    assert str(refused.value) == f"{BASES[base]}: {message}"
    assert snapshot(call["out"]) == before, "outputs stay as they were"


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_the_unchanged_calls_are_fine(base: Build) -> None:
    call = base()
    rows, weights = getattr(moegrad, BASES[base])(**call)
    assert rows is call["out"][0]
    assert weights is call["out"][1]
    assert not (rows == 7).any()


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_outputs_may_not_overlap_any_other_array(base: Build) -> None:
    shared = np.ones(64, F32)
    call = base()
    inputs = [name for name, value in call.items() if isinstance(value, np.ndarray) and value.dtype == F32]
    for name, position in itertools.product(inputs, (0, 1)):
        call = base()
        view = shared[: call[name].size].reshape(call[name].shape)
        output = call["out"][position]
        start = min(call[name].size - 1, shared.size - output.size)
        out = list(call["out"])
        out[position] = shared[start : start + output.size].reshape(output.shape)
        call |= {name: view, "out": tuple(out)}
        with pytest.raises(
            ValueError, match=f"in out: expected memory of its own, got some shared with {name}$"
        ):
            getattr(moegrad, BASES[base])(**call)
        assert (shared == 1).all()


def test_outputs_may_not_overlap_each_other() -> None:
    shared = np.full(30, 7, F32)
    out = (shared[:24].reshape(6, 4), shared[23:29].reshape(2, 3))
    with pytest.raises(ValueError, match=r"probs_grad in out: .* shared with permuted_tokens_grad$"):
        moegrad.token_unpermute_grad(**unpermute(out=out))
    assert (shared == 7).all()


def test_an_output_in_the_gaps_of_an_input_is_fine() -> None:
    shared = np.zeros((2, 4), F32)
    shared[:, :1] = [[1], [2]]
    rows = shared[0, 1:3].reshape(2, 1)
    got, _ = moegrad.finalize_routing_v2_grad(shared[:, :1], ints(1, 0), out=(rows, None))
    assert got is rows
    assert rows.tolist() == [[2], [1]]


ORDER: list[Call] = [
    {"expanded_x": None},
    {"scales": np.ones((2, 3))},
    {"expert_idx": np.zeros((2, 2), np.int32)},
    {"expanded_row_idx": ints(9, 0, 2, 4, 1, 3)},
    {"out": (strided((6, 4)), np.full((2, 3), 7, F32))},
]
NAMES = ["expanded_x", "scales", "expert_idx", "expanded_row_idx", "grad_expanded_x"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_checks_come_in_the_order_of_the_contract(first: int) -> None:
    """All that is wrong from `first` on is wrong at once; the first is what is said."""
    call = finalize()
    for changes in ORDER[first:]:
        call |= changes
    with pytest.raises((ValueError, TypeError), match=f"^finalize_routing_v2_grad: {NAMES[first]}"):
        moegrad.finalize_routing_v2_grad(**call)


def test_check_indices_switches_off_nothing_but_values() -> None:
    rows, _ = moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(5, -7), check_indices=False)
    assert rows.tolist() == [[0], [0]]
    moegrad.token_unpermute_grad(
        **unpermute(sorted_indices=ints(0, 0, 0, 2**31 - 1, 6, -1), check_indices=False)
    )
    moegrad.finalize_routing_v2_grad(
        **finalize(expert_idx=np.array([[0, 2, -1], [1, 2**31 - 1, -(2**31)]], np.int32), check_indices=False)
    )
    with pytest.raises(TypeError, match="int64"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), np.arange(2), check_indices=False)
    shared = np.ones((2, 1), F32)
    with pytest.raises(ValueError, match="expected memory of its own"):
        moegrad.finalize_routing_v2_grad(shared, ints(1, 0), out=(shared, None), check_indices=False)


def test_integers_of_numpy_and_flags_of_numpy_are_welcome() -> None:
    call = drop_pad(drop_pad_mode=np.int8(1), expert_num=np.int64(2), expert_capacity=np.uint16(4))
    moegrad.finalize_routing_v2_grad(**call)
    moegrad.token_unpermute_grad(**padded(padded_mode=np.True_, check_indices=np.False_))


def test_arguments_without_a_use_are_checked_all_the_same() -> None:
    with pytest.raises(ValueError, match="expanded_x: expected shape"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(1, 0), np.ones((2, 2), F32))
    with pytest.raises(ValueError, match="expert_idx: expected an array with bias"):
        moegrad.finalize_routing_v2_grad(np.ones((2, 1), F32), ints(1, 0), bias=np.ones((2, 1), F32))
