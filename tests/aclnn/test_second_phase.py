"""Second phases that are refused, and what still works after one: workspaces, executors, streams, memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from moegrad.aclnn import Session

from .calls import BF16, BOTH, FINALIZE, HIDDEN, INVALID, MISSING, UNPERMUTE, Arguments, finalize, names_of, unpermute
from .raw import SENTINEL_EXECUTOR, Raw, raw


def with_workspace(make: Callable[[], Arguments]) -> Arguments:
    """A call whose first input is strided, so that it needs a workspace to gather it."""
    arguments = make()
    first = next(iter(arguments))
    return arguments | {first: np.repeat(arguments[first], 2, axis=0)[::2]}


def ready(session: Session, name: str, make: Callable[[], Arguments]) -> tuple[Raw, int | None]:
    call = raw(session, name, with_workspace(make))
    assert call.first() == 0, session.recent_error()
    assert call.size.value > 0
    return call, session.malloc(call.size.value)


def finish(session: Session, call: Raw, workspace: int | None) -> None:
    """After a refused second phase nothing was written, and a right one still works."""
    assert call.unchanged()
    assert call.second(workspace, call.size.value) == 0, session.recent_error()
    session.call("aclrtSynchronizeStream", session.stream)
    assert not call.unchanged()
    session.free(workspace)
    call.close()


@BOTH
def test_workspace_that_is_null(name: str, make: Callable[[], Arguments], session: Session) -> None:
    call, workspace = ready(session, name, make)
    assert call.second(None, call.size.value) == MISSING
    assert f"workspace is null, the first phase asked for {call.size.value} bytes" in session.recent_error()
    finish(session, call, workspace)


@BOTH
def test_workspace_that_is_too_small(name: str, make: Callable[[], Arguments], session: Session) -> None:
    call, workspace = ready(session, name, make)
    assert call.second(workspace, call.size.value - 1) == INVALID
    expected = f"workspaceSize is {call.size.value - 1}, the first phase asked for {call.size.value}"
    assert expected in session.recent_error()
    small = session.malloc(call.size.value - 64)
    assert call.second(small, call.size.value) == INVALID
    assert f"covers {call.size.value} bytes from byte 0" in session.recent_error()
    session.free(small)
    finish(session, call, workspace)


@pytest.mark.parametrize("weighted", [True, False])
def test_ascend950_can_be_called_again_after_a_refused_second_phase(weighted: bool, session_950: Session) -> None:
    weights: Arguments = {} if weighted else {"probs": None, "probs_grad": None}
    call, workspace = ready(session_950, UNPERMUTE, lambda: unpermute(dtype=BF16, **weights))
    assert call.second(workspace, 0) == INVALID
    assert session_950.recent_error()
    finish(session_950, call, workspace)


@BOTH
def test_an_executor_runs_once(name: str, make: Callable[[], Arguments], session: Session) -> None:
    call, workspace = ready(session, name, make)
    assert call.second(workspace, call.size.value) == 0
    assert call.second(workspace, call.size.value) == INVALID
    assert "the second phase uses it up" in session.recent_error()
    session.call("aclrtSynchronizeStream", session.stream)
    session.free(workspace)
    call.close()


@BOTH
def test_an_executor_of_the_other_operator(name: str, make: Callable[[], Arguments], session: Session) -> None:
    call, workspace = ready(session, name, make)
    call.name = UNPERMUTE if name == FINALIZE else FINALIZE
    assert call.second(workspace, call.size.value) == INVALID
    assert "is one of" in session.recent_error()
    call.name = name
    finish(session, call, workspace)


def test_an_executor_of_the_other_operator_on_950(session_950: Session) -> None:
    """There the common modes are one operator: what its executor is for is what runs, whichever function is called."""
    call, workspace = ready(session_950, FINALIZE, lambda: finalize(dtype=BF16))
    call.name = UNPERMUTE
    assert call.second(workspace, call.size.value) == INVALID
    assert "is one of" in session_950.recent_error()
    call.name = FINALIZE
    finish(session_950, call, workspace)

    call, workspace = ready(session_950, UNPERMUTE, lambda: unpermute(dtype=BF16))
    call.name = FINALIZE
    assert call.second(workspace, call.size.value) == 0, session_950.recent_error()
    session_950.call("aclrtSynchronizeStream", session_950.stream)
    np.testing.assert_array_equal(call.read(-1), HIDDEN)
    session_950.free(workspace)
    call.close()


@pytest.mark.parametrize("what", [None, 0x1234, SENTINEL_EXECUTOR])
def test_an_executor_that_never_was(what: int | None, session: Session) -> None:
    call = Raw(session, FINALIZE)
    call.executor = ctypes.c_void_p(what)
    assert call.second() == (MISSING if what is None else INVALID)
    assert "executor" in session.recent_error()


@BOTH
def test_a_stream_that_was_destroyed(name: str, make: Callable[[], Arguments], session: Session) -> None:
    call, workspace = ready(session, name, make)
    gone = ctypes.c_void_p()
    session.call("aclrtCreateStream", ctypes.byref(gone))
    session.call("aclrtDestroyStream", gone)
    kept, session.stream = session.stream, gone.value
    assert call.second(workspace, call.size.value) == 361001
    assert "stream" in session.recent_error()
    session.stream = kept
    finish(session, call, workspace)


def test_the_null_stream_is_the_default_one(session: Session) -> None:
    call, workspace = ready(session, FINALIZE, finalize)
    kept, session.stream = session.stream, None
    assert call.second(workspace, call.size.value) == 0
    session.call("aclrtSynchronizeStream", ctypes.c_void_p())
    session.stream = kept
    assert (call.read(-2) == 1).all()
    session.free(workspace)
    call.close()


@pytest.mark.parametrize("which", [-1, -2, 0])
def test_memory_freed_before_the_second_phase(which: int, session: Session) -> None:
    call, workspace = ready(session, FINALIZE, finalize)
    session.free(call.blocks.pop(which)[0])
    assert call.second(workspace, call.size.value) == INVALID
    assert "which was freed" in session.recent_error()
    assert call.unchanged()
    session.call("aclDestroyAclOpExecutor", call.executor)
    session.free(workspace)
    call.close()


def test_a_tensor_destroyed_before_the_second_phase(session: Session) -> None:
    call, workspace = ready(session, FINALIZE, finalize)
    session.call("aclDestroyTensor", call.handles.pop())
    assert call.second(workspace, call.size.value) == INVALID
    assert "grad_scales was destroyed before the second phase" in session.recent_error()
    assert call.unchanged()
    session.call("aclDestroyAclOpExecutor", call.executor)
    session.free(workspace)
    call.close()


@pytest.mark.parametrize("argument", ["grad_y", "grad_expanded_x"])
def test_memory_too_small_for_its_tensor(argument: str, session: Session) -> None:
    arguments = finalize()
    call = Raw(session, FINALIZE)
    for each in [name for part in names_of(FINALIZE) for name in part]:
        value = arguments[each]
        if each == argument:
            memory = call.memory(value.reshape(-1)[:-1].copy())
            call.passed.append(ctypes.c_void_p(call.tensor(value, memory)))
        else:
            call.add(value)
    assert call.first() == 0
    workspace = session.malloc(call.size.value)
    assert call.second(workspace, call.size.value) == INVALID
    assert f"{argument} covers" in session.recent_error()
    assert call.unchanged()
    session.call("aclDestroyAclOpExecutor", call.executor)
    session.free(workspace)
    call.close()
