"""Outputs in memory that is not theirs alone, or that nobody has."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from moegrad.aclnn import Session

from .calls import FINALIZE, HIDDEN, INVALID, SLOTS, TILING, finalize, ints, names_of, ones, plain
from .raw import Raw, dense


def overlap(session: Session, output: str, argument: str, shift: int) -> tuple[Raw, int]:
    """finalize_routing_v2_grad with an output that starts `shift` elements into the memory of an argument."""
    arguments = finalize()
    call = Raw(session, FINALIZE)
    sizes = arguments[argument].size + arguments[output].size + abs(shift)
    shared = np.zeros(sizes, arguments[argument].dtype)
    memory = call.memory(shared)
    for each in [name for part in names_of(FINALIZE) for name in part]:
        value = arguments[each]
        if each == argument:
            handle = call.tensor(shared, memory, value.shape, dense(value.shape), 0)
            call.passed.append(ctypes.c_void_p(handle))
        elif each == output:
            handle = call.tensor(shared, memory, value.shape, dense(value.shape), shift)
            call.passed.append(ctypes.c_void_p(handle))
        else:
            call.add(value)
    return call, call.first()


OVERLAPS = [
    (output, spelled, argument, c_name)
    for output, spelled in (("grad_expanded_x", "gradExpandedXOut"), ("grad_scales", "gradScalesOut"))
    for argument, c_name in (
        ("grad_y", "gradY"),
        ("expanded_x", "expandedXOptional"),
        ("scales", "scalesOptional"),
        ("bias", "biasOptional"),
    )
]


@pytest.mark.parametrize(("output", "spelled", "argument", "c_name"), OVERLAPS)
@pytest.mark.parametrize("where", ["first", "last", "behind"])
def test_an_output_in_the_memory_of_an_input(
    output: str, spelled: str, argument: str, c_name: str, where: str, session: Session
) -> None:
    size = finalize()[argument].size
    call, status = overlap(session, output, argument, {"first": 0, "last": size - 1, "behind": size}[where])
    if where == "behind":
        assert status == 0, session.recent_error()
        session.call("aclDestroyAclOpExecutor", call.executor)
    else:
        assert status == INVALID
        expected = f"{spelled}: expected memory of its own, got some shared with {c_name}"
        assert session.recent_error() == f"{FINALIZE}GetWorkspaceSize: {expected}"
        assert call.untouched()
        assert call.unchanged()
    call.close()


def test_outputs_in_the_memory_of_each_other(session: Session) -> None:
    arguments = finalize()
    call = Raw(session, FINALIZE)
    shared = np.zeros(SLOTS * HIDDEN + SLOTS, np.float32)
    memory = call.memory(shared)
    for each in [name for part in names_of(FINALIZE) for name in part]:
        if each in ("grad_expanded_x", "grad_scales"):
            shape = arguments[each].shape
            offset = SLOTS * HIDDEN - 1 if each == "grad_scales" else 0
            call.passed.append(ctypes.c_void_p(call.tensor(shared, memory, shape, dense(shape), offset)))
        else:
            call.add(arguments[each])
    assert call.first() == INVALID
    expected = "gradScalesOut: expected memory of its own, got some shared with gradExpandedXOut"
    assert session.recent_error() == f"{FINALIZE}GetWorkspaceSize: {expected}"
    assert call.untouched()
    call.close()


@pytest.mark.parametrize("column", [0, HIDDEN])
def test_an_output_between_the_rows_of_an_input(column: int, session: Session) -> None:
    """What lies in the gaps of a strided input is no part of it; what lies in a row of it is."""
    call = Raw(session, FINALIZE)
    shared = np.arange(3 * 2 * HIDDEN, dtype=np.float32)
    memory = call.memory(shared)
    arguments = plain(grad_y=None, expanded_row_idx=np.array([0, 1, 2], np.int32), active_num=1)
    arguments |= {"grad_expanded_x": None}
    grad = call.tensor(shared, memory, (3, HIDDEN), (2 * HIDDEN, 1), 0)
    out = call.tensor(shared, memory, (1, HIDDEN), (HIDDEN, 1), 2 * HIDDEN + column)
    placed = {"grad_y": ctypes.c_void_p(grad), "grad_expanded_x": ctypes.c_void_p(out)}
    for each in [name for part in names_of(FINALIZE) for name in part]:
        call.add(placed.get(each, arguments[each]))
    if column == 0:
        assert call.first() == INVALID
        assert call.untouched()
        assert call.unchanged()
        call.close()
        return
    assert call.first() == 0, session.recent_error()
    workspace = session.malloc(call.size.value)
    assert call.second(workspace, call.size.value) == 0
    session.call("aclrtSynchronizeStream", session.stream)
    expected = shared.copy()
    expected[3 * HIDDEN : 4 * HIDDEN] = shared[:HIDDEN]
    np.testing.assert_array_equal(call.read(0), expected)
    session.free(workspace)
    call.close()


@pytest.mark.parametrize("capacity", [2**29, 2**30, 2**31], ids=["2**62", "2**63", "2**64"])
def test_an_output_of_more_bytes_than_there_can_be(capacity: int, session: Session) -> None:
    """2**31 experts of that many rows of one fp32 each: its size in bytes must not wrap to one that fits."""
    call = Raw(session, FINALIZE)
    memory = call.memory(np.zeros(16, np.float32))
    for value in (ones(1, 1), ints(1), None, None, None, None, 1, 0, 2**31, capacity):
        call.add(value)
    shape = (2**31, capacity, 1)
    whole = call.tensor(ones(1), memory, shape, (capacity, 1, 1), storage=(2**31 * capacity,))
    call.passed += [ctypes.c_void_p(whole), ctypes.c_void_p()]
    status, text = call.first(), ""
    if status == 0:
        status = call.second(None, 0)
        text = session.recent_error()
        if status == 0:
            session.call("aclrtSynchronizeStream", session.stream)
        else:
            session.call("aclDestroyAclOpExecutor", call.executor)
    call.close()
    assert status in (INVALID, TILING)
    assert text == "" or f"grad_expanded_x covers {2**33 * capacity} bytes" in text
