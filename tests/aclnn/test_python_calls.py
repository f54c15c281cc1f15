"""moegrad.aclnn itself: what it refuses before the C API sees it, what it copies, how sessions begin and end."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from moegrad.aclnn import AclnnError, Session, build_library
from moegrad.codegen.targets.project.hostlib import HostLibrary

from .calls import (
    BOTH,
    FINALIZE,
    HIDDEN,
    SLOTS,
    TILING,
    TOKENS,
    TOPK,
    UNPERMUTE,
    Arguments,
    Array,
    finalize,
    names_of,
    nans,
    ones,
    ordered,
    plain,
    unpermute,
)

HBM = 1
KNOWN = "float32, float16, int8, int32, uint8, int16, uint16, uint32, int64, uint64, float64, bool, complex64, bfloat16"
STREAM_IS_GONE, ALREADY_INITIALISED = 107017, 100002

OUTPUTS = pytest.mark.parametrize(
    ("name", "make", "output"),
    [
        (FINALIZE, finalize, "grad_expanded_x"),
        (FINALIZE, finalize, "grad_scales"),
        (UNPERMUTE, unpermute, "permuted_tokens_grad"),
        (UNPERMUTE, unpermute, "probs_grad"),
    ],
)
Make = Callable[[], Arguments]


def free_memory(session: Session) -> int:
    """Bytes of device memory that nobody has."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    session.call("aclrtGetMemInfo", ctypes.c_int(HBM), ctypes.byref(free), ctypes.byref(total))
    return free.value


def refused(session: Session, name: str, arguments: Arguments, error: type[Exception]) -> str:
    """What a refused call says; it wrote nothing and keeps no memory."""
    outputs = [each for part in names_of(name)[2] if isinstance(each := arguments[part], np.ndarray)]
    before, free = [each.tobytes() for each in outputs], free_memory(session)
    with pytest.raises(error) as caught:
        session.run(name, *ordered(name, arguments))
    assert [each.tobytes() for each in outputs] == before
    assert free_memory(session) == free
    return str(caught.value)


def packed(array: Array) -> Array:
    """The same elements, one byte in front of each."""
    records = np.zeros(array.shape, [("gap", np.int8), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


def assert_works(session: Session) -> None:
    arguments = plain()
    session.run(FINALIZE, *ordered(FINALIZE, arguments))
    assert (arguments["grad_expanded_x"] == 1).all()


# ---- outputs ----


@OUTPUTS
def test_a_read_only_output(name: str, make: Make, output: str, session: Session) -> None:
    arguments = make()
    arguments[output].flags.writeable = False
    expected = "aclnn: an output: expected a writeable array, got a read-only one"
    assert refused(session, name, arguments, ValueError) == expected


UNFIT: dict[str, Callable[[Array], Array]] = {
    "negative rows": lambda array: array[::-1],
    "negative columns": lambda array: array[:, ::-1],
    "no multiple of the item size": packed,
}


@OUTPUTS
@pytest.mark.parametrize("view", UNFIT)
def test_an_output_with_strides_that_no_tensor_has(
    name: str, make: Make, output: str, view: str, session: Session
) -> None:
    arguments = make()
    arguments[output] = UNFIT[view](arguments[output])
    expected = f"aclnn: an output: expected strides that a tensor can have, got {arguments[output].strides} bytes"
    assert refused(session, name, arguments, ValueError) == expected


@BOTH
def test_results_come_with_the_second_phase(name: str, make: Make, session: Session) -> None:
    arguments = make()
    outputs = [arguments[each] for each in names_of(name)[2]]
    free = free_memory(session)
    size, executor = getattr(session, f"{name}GetWorkspaceSize")(*ordered(name, arguments))
    assert all(np.isnan(each).all() for each in outputs)
    workspace = session.malloc(size)
    getattr(session, name)(workspace, size, executor)
    assert not any(np.isnan(each).any() for each in outputs)
    session.free(workspace)
    assert free_memory(session) == free


# ---- inputs ----


@pytest.mark.parametrize("view", UNFIT)
def test_inputs_are_straightened(view: str, session: Session) -> None:
    """The elements count as NumPy sees them, and the caller's array stays as it is."""
    grad = UNFIT[view](np.arange(TOKENS * HIDDEN, dtype=np.float32).reshape(TOKENS, HIDDEN))
    weights = UNFIT[view](np.arange(1, SLOTS + 1, dtype=np.float32).reshape(TOKENS, TOPK))
    index = np.array([3, 1, 4, 2, 0, 5], np.int32)[::-1]
    assert any(stride < 0 or stride % 4 for stride in grad.strides)
    before = grad.tobytes(), weights.tobytes()
    rows, gradient = nans(SLOTS, HIDDEN), nans(TOKENS, TOPK)
    session.run(FINALIZE, grad, index, ones(SLOTS, HIDDEN), weights, None, None, 0, 0, 0, 0, rows, gradient)
    expected = weights[:, :, None] * grad[:, None, :]
    np.testing.assert_array_equal(rows[index], expected.reshape(SLOTS, HIDDEN))
    np.testing.assert_array_equal(gradient, np.repeat(grad.sum(axis=1, keepdims=True), TOPK, axis=1))
    assert (grad.tobytes(), weights.tobytes()) == before


@pytest.mark.parametrize("argument", ["grad_y", "expanded_row_idx", "bias", "grad_expanded_x", "grad_scales"])
def test_a_list_is_no_array(argument: str, session: Session) -> None:
    arguments = finalize()
    arguments[argument] = arguments[argument].tolist()
    assert refused(session, FINALIZE, arguments, TypeError) == "aclnn: expected a NumPy array or None, got list"


@pytest.mark.parametrize("argument", ["grad_y", "grad_scales"])
@pytest.mark.parametrize("dtype", ["complex128", ">f4", "object", "datetime64[s]"])
def test_a_dtype_that_no_tensor_has(argument: str, dtype: str, session: Session) -> None:
    arguments = finalize()
    arguments[argument] = np.zeros(arguments[argument].shape, dtype)
    expected = f"aclnn: dtype {dtype}: expected one of {KNOWN}"
    assert refused(session, FINALIZE, arguments, TypeError) == expected


# ---- attributes, names, and how many ----


@pytest.mark.parametrize(("name", "make", "count"), [(FINALIZE, finalize, 12), (UNPERMUTE, unpermute, 8)])
@pytest.mark.parametrize("change", [-1, 1])
def test_the_number_of_arguments(name: str, make: Make, count: int, change: int, session: Session) -> None:
    arguments = [*ordered(name, make()), None][: count + change]
    expected = f"{name}GetWorkspaceSize: expected {count} arguments, got {count + change}"
    first_phase = getattr(session, f"{name}GetWorkspaceSize")
    for function in (first_phase, partial(session.run, name)):
        with pytest.raises(TypeError) as caught:
            function(*arguments)
        assert str(caught.value) == expected


@pytest.mark.parametrize("attribute", names_of(FINALIZE)[1])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64])
def test_an_attribute_of_more_than_64_bits(attribute: str, value: int, session: Session) -> None:
    text = refused(session, FINALIZE, finalize() | {attribute: value}, ValueError)
    assert text == f"aclnn: expected an integer of 64 bits, got {value}"


@pytest.mark.parametrize("value", [2**64 + TOKENS, TOKENS - 2**64])
def test_a_list_with_more_than_64_bits(value: int, session: Session) -> None:
    """Numbers that would be the right ones, were they cut off."""
    text = refused(session, UNPERMUTE, unpermute(True, restore_shape=[value, HIDDEN]), ValueError)
    assert text == f"aclnn: expected an integer of 64 bits, got {value}"


@pytest.mark.parametrize("name", ["aclnnAdd", f"{FINALIZE}GetWorkspaceSize", ""])
def test_an_unknown_operator(name: str, session: Session) -> None:
    with pytest.raises(ValueError, match=r"^aclnn: ") as caught:
        session.run(name, *ordered(FINALIZE, finalize()))
    assert str(caught.value) == f"aclnn: expected one of {UNPERMUTE}, {FINALIZE}, got {name!r}"


@pytest.mark.parametrize("name", ["aclnnAdd", "aclnnAddGetWorkspaceSize", f"{FINALIZE}GetWorkspaceSize" * 2])
def test_an_unknown_function(name: str, session: Session) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(session, name)
    assert str(caught.value) == f"Session has no {name!r}; operators: {UNPERMUTE}, {FINALIZE}"


# ---- errors ----


def test_an_error_carries_status_and_text(session: Session) -> None:
    with pytest.raises(AclnnError) as caught:
        session.run(FINALIZE, *ordered(FINALIZE, finalize(drop_pad_mode=2)))
    text = f"{FINALIZE}GetWorkspaceSize: dropPadMode: expected 0 (dropless) or 1 (drop/pad), got 2"
    assert (caught.value.status, caught.value.text) == (TILING, text)
    assert str(caught.value) == f"{FINALIZE}GetWorkspaceSize returned {TILING}: {text}"
    assert session.recent_error() == "(no message)"
    assert_works(session)


# ---- sessions ----


@pytest.mark.parametrize("count", [1, 3])
def test_leaving_with_a_pending_executor_and_memory(
    count: int, library: HostLibrary, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither a refusal of aclFinalize nor a note on stderr about what it found."""
    arguments = unpermute(True)
    with Session(str(library.path)) as acl:
        for _ in range(count):
            acl.malloc(100)
            getattr(acl, f"{UNPERMUTE}GetWorkspaceSize")(*ordered(UNPERMUTE, arguments))
    assert capfd.readouterr() == ("", "")
    assert all(np.isnan(arguments[each]).all() for each in names_of(UNPERMUTE)[2])
    with Session(str(library.path)) as acl:
        assert_works(acl)


def test_what_a_session_did_not_make_it_does_not_clear_away(library: HostLibrary) -> None:
    with pytest.raises(AclnnError, match="not released: int array #") as caught, Session(str(library.path)) as acl:
        acl.library.aclCreateIntArray((ctypes.c_int64 * 1)(3), 1)
    assert str(caught.value).startswith("aclFinalize returned ")
    with Session(str(library.path)) as acl:
        assert_works(acl)


def leave_a_call_and_no_stream(session: Session) -> None:
    session.malloc(100)
    getattr(session, f"{FINALIZE}GetWorkspaceSize")(*ordered(FINALIZE, finalize()))
    session.call("aclrtDestroyStream", session.stream)


def test_leaving_after_a_stream_was_destroyed(library: HostLibrary, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AclnnError) as caught, Session(str(library.path)) as acl:
        leave_a_call_and_no_stream(acl)
    assert caught.value.status == STREAM_IS_GONE
    assert str(caught.value).startswith(f"aclrtDestroyStream returned {STREAM_IS_GONE}: aclrtDestroyStream: stream")
    assert capfd.readouterr() == ("", "")
    with Session(str(library.path)) as acl:
        assert_works(acl)


def test_what_went_wrong_inside_comes_before_what_is_wrong_on_leaving(library: HostLibrary) -> None:
    def go_wrong(session: Session) -> None:
        leave_a_call_and_no_stream(session)
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"), Session(str(library.path)) as acl:
        go_wrong(acl)
    with Session(str(library.path)) as acl:
        assert_works(acl)


def test_a_session_inside_a_session(session: Session, library: HostLibrary) -> None:
    """There is one device in a library: the second session is refused, the first one goes on."""
    with pytest.raises(AclnnError) as caught, Session(str(library.path)):
        pass
    assert caught.value.status == ALREADY_INITIALISED
    assert str(caught.value) == f"aclInit returned {ALREADY_INITIALISED}: aclInit: the ACL is initialised already"
    assert_works(session)


# ---- libraries ----


@pytest.mark.parametrize("chosen", ["argument", "environment"])
@pytest.mark.parametrize("other", ["libm.so.6", "libc.so.6"])
def test_a_library_that_is_something_else(chosen: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen == "environment":
        monkeypatch.setenv("MOEGRAD_HOSTACL_LIBRARY", other)
    with pytest.raises(ValueError, match=r"^aclnn: ") as caught:
        Session(other if chosen == "argument" else "")
    assert str(caught.value) == f"aclnn: library: expected one of `moegrad hostacl --library`, got {other}"


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"libnone\.so"):
        Session(str(tmp_path / "libnone.so"))


def test_the_library_of_the_environment(library: HostLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOEGRAD_HOSTACL_LIBRARY", str(library.path))
    assert build_library() == build_library("ascend950") == str(library.path)
    with Session() as acl:
        assert_works(acl)


def stand_in(folder: Path, script: str) -> str:
    """A program to run in place of the interpreter."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o700)
    return str(program)


def test_the_command_that_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output is the path; an empty variable names no library."""
    monkeypatch.setenv("MOEGRAD_HOSTACL_LIBRARY", "")
    monkeypatch.setattr(sys, "executable", stand_in(tmp_path, 'shift 2; echo "/built by $*"'))
    assert build_library("ascend950") == "/built by hostacl --library --soc ascend950"


def test_a_chip_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOEGRAD_HOSTACL_LIBRARY", raising=False)
    with pytest.raises(RuntimeError) as caught:
        build_library("ascend9000")
    text = str(caught.value)
    assert text.startswith("moegrad hostacl --library --soc ascend9000: error: chip: expected one of ascend910b, ")
    assert text.endswith("got 'ascend9000'")


def test_a_compiler_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOEGRAD_HOSTACL_LIBRARY", raising=False)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError) as caught:
        Session()
    expected = "build: CXX: expected a C++17 compiler, got 'no-such-compiler': no-such-compiler is not found"
    assert str(caught.value) == f"moegrad hostacl --library --soc ascend910b: error: {expected}"
