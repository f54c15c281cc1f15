"""The two-phase C API of the operators on NumPy arrays, on the host model of a device.

    with aclnn.Session() as acl:
        size, executor = acl.aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
            grad_y, expanded_row_idx, expanded_x, scales, None, None, 0, 0, 0, 0, grad_expanded_x, grad_scales)
        acl.aclnnMoeFinalizeRoutingV2Grad(acl.malloc(size), size, executor)

Names and order of arguments are those of the operator pages; arrays stand for tensors, None for null. Inputs are copied
to device memory as they are, strides and all (negative strides, which tensors cannot have, are straightened); results
are copied to the output arrays once the second phase is done. The library is the one that `moegrad hostacl --library`
builds, which needs the compiler extra and a C++ compiler the first time. For tests, and for code on its way to or from
a device.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .contract import FINALIZE_ROUTING_V2_GRAD, TOKEN_UNPERMUTE_GRAD, Operator

Array = npt.NDArray[Any]

ND = 2
"""Format of a tensor without a layout of its own: the only one the operators take."""

DTYPES: dict[np.dtype[Any], int] = {
    np.dtype(name): code
    for name, code in (
        ("float32", 0), ("float16", 1), ("int8", 2), ("int32", 3), ("uint8", 4), ("int16", 6), ("uint16", 7),
        ("uint32", 8), ("int64", 9), ("uint64", 10), ("float64", 11), ("bool", 12), ("complex64", 16),
    )
} | {np.dtype(ml_dtypes.bfloat16): 27}  # fmt: skip
"""dtype -> aclDataType."""

_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_HUGE_FIRST = 0

FUNCTIONS = {op.api: op for op in (TOKEN_UNPERMUTE_GRAD, FINALIZE_ROUTING_V2_GRAD)}
"""Second phase -> its operator."""


class AclnnError(RuntimeError):
    """A call that did not return 0. `status` is what it returned, the text is that of aclGetRecentErrMsg."""

    def __init__(self, function: str, status: int, text: str) -> None:
        super().__init__(f"{function} returned {status}: {text}")
        self.status, self.text = status, text


@dataclass(frozen=True)
class Tensor:
    """An array as a tensor of another format than ND: none that an operator takes."""

    array: Array
    format: int = ND


@dataclass
class Executor:
    """What a first phase returns and its second phase uses up."""

    handle: int
    tensors: list[_DeviceTensor]
    lists: list[int]


class _DeviceTensor:
    """A tensor in device memory with the elements and strides of an array."""

    def __init__(self, session: Session, given: Array | Tensor, output: bool) -> None:
        array, self.format = (given.array, given.format) if isinstance(given, Tensor) else (given, ND)
        if not isinstance(array, np.ndarray):
            raise TypeError(f"aclnn: expected a NumPy array or None, got {type(array).__name__}")
        if array.dtype not in DTYPES:
            raise TypeError(f"aclnn: dtype {array.dtype}: expected one of {', '.join(map(str, DTYPES))}")
        if output and not array.flags.writeable:
            raise ValueError("aclnn: an output: expected a writeable array, got a read-only one")
        if any(stride < 0 or stride % array.itemsize for stride in array.strides):
            if output:
                raise ValueError(
                    f"aclnn: an output: expected strides that a tensor can have, got {array.strides} bytes"
                )
            array = np.ascontiguousarray(array)
        self.array, self.session, self.output = array, session, output
        itemsize = array.itemsize
        reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
        self.low, self.bytes = array.ctypes.data, reach + itemsize if array.size else 0
        self.memory = session.malloc(self.bytes)
        if self.bytes:
            session.call("aclrtMemcpy", self.memory, self.bytes, self.low, self.bytes, _HOST_TO_DEVICE)
        strides = [stride // itemsize for stride in array.strides]
        storage = list(array.shape) if array.flags.c_contiguous else [self.bytes // itemsize]
        self.handle: int | None = session.library.aclCreateTensor(
            _ints(array.shape), array.ndim, DTYPES[array.dtype], _ints(strides), 0, self.format, _ints(storage),
            len(storage), self.memory,
        )  # fmt: skip
        if not self.handle:
            session.free(self.memory)
            raise AclnnError("aclCreateTensor", -1, session.recent_error())

    def release(self, copy_back: bool) -> None:
        """Frees it, with what was written to an output copied to its array before."""
        if copy_back and self.output and self.bytes:
            copy = (self.session, "aclrtMemcpy", self.low, self.bytes, self.memory, self.bytes, _DEVICE_TO_HOST)
            Session.call(*copy)
        self.session.call("aclDestroyTensor", self.handle)
        self.session.free(self.memory)


def _int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:  # which ctypes would wrap around
        raise ValueError(f"aclnn: expected an integer of 64 bits, got {value}")
    return value


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*map(_int64, values))


def build_library(soc: str = "ascend910b") -> str:
    """Path of the library for a chip, which is built where it is not: MOEGRAD_HOSTACL_LIBRARY names another.

    RuntimeError: `moegrad hostacl` did not build it.
    """
    chosen = os.environ.get("MOEGRAD_HOSTACL_LIBRARY")
    if chosen:
        return chosen
    command = [sys.executable, "-c", "from moegrad.tools.cli import main; main()", "hostacl", "--library", "--soc", soc]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode != 0:
        raise RuntimeError(f"moegrad hostacl --library --soc {soc}: {done.stderr.strip()}")
    return done.stdout.strip()


class Session:
    """Device 0 of the host model with one stream, from aclInit to aclFinalize.

    `library` is a path; without one, that of `build_library(soc)`. Each array has device memory of its own, so arrays
    that share memory do not share it on the device. Leaving the session raises AclnnError where something is wrong with
    what is left, such as a stream that was destroyed.
    """

    def __init__(self, library: str = "", soc: str = "ascend910b") -> None:
        path = library or build_library(soc)
        self.library = ctypes.CDLL(path)
        if not hasattr(self.library, "aclGetRecentErrMsg"):
            raise ValueError(f"aclnn: library: expected one of `moegrad hostacl --library`, got {path}")
        self.library.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("aclCreateTensor", "aclCreateIntArray"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.aclCreateTensor.argtypes = (
            ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int,
            ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p,
        )  # fmt: skip
        self.library.aclCreateIntArray.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        self._pending: list[Executor] = []
        self._memory: set[int] = set()

    def __enter__(self) -> Session:
        self.call("aclInit", None)
        self.call("aclrtSetDevice", ctypes.c_int32(0))
        stream = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(stream))
        self.stream = stream.value
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        problems: list[AclnnError] = []

        def attempt(name: str, *arguments: Any) -> None:
            try:
                self.call(name, *arguments)
            except AclnnError as problem:
                problems.append(problem)

        for executor in self._pending:
            attempt("aclDestroyAclOpExecutor", executor.handle)
            for tensor in executor.tensors:
                attempt("aclDestroyTensor", tensor.handle)
            for handle in executor.lists:
                attempt("aclDestroyIntArray", handle)
        for memory in self._memory:
            attempt("aclrtFree", memory)
        attempt("aclrtDestroyStream", self.stream)
        attempt("aclrtResetDevice", ctypes.c_int32(0))
        attempt("aclFinalize")
        self._pending, self._memory = [], set()
        if problems and error is None:
            raise problems[0]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in FUNCTIONS:
            return partial(self._second_phase, name)
        stem = name.removesuffix("GetWorkspaceSize")
        if stem in FUNCTIONS and stem != name:
            return partial(self._first_phase, stem)
        raise AttributeError(f"Session has no {name!r}; operators: {', '.join(FUNCTIONS)}")

    def recent_error(self) -> str:
        """What aclGetRecentErrMsg says, once."""
        text = self.library.aclGetRecentErrMsg()
        return text.decode() if text else "(no message)"

    def call(self, name: str, *arguments: Any) -> None:
        """Calls an ACL function by name; Python integers are pointers and sizes. AclnnError unless it returns 0."""
        passed = [ctypes.c_void_p(each) if isinstance(each, int) else each for each in arguments]
        status = getattr(self.library, name)(*passed)
        if status != 0:
            raise AclnnError(name, status, self.recent_error())

    def malloc(self, size: int) -> int | None:
        """Device memory of `size` bytes; None for none."""
        if size == 0:
            return None
        memory = ctypes.c_void_p()
        self.call("aclrtMalloc", ctypes.byref(memory), size, ctypes.c_int(_HUGE_FIRST))
        assert memory.value is not None
        self._memory.add(memory.value)
        return memory.value

    def free(self, memory: int | None) -> None:
        """Gives memory of `malloc` back; leaving the session does, too."""
        if memory is not None:
            self._memory.discard(memory)
            self.call("aclrtFree", memory)

    def run(self, name: str, *arguments: Any) -> None:
        """Both phases of the operator whose second phase is `name`, with a workspace of the size they ask for."""
        size, executor = self._first_phase(name, *arguments)
        workspace = self.malloc(size)
        try:
            self._second_phase(name, workspace, size, executor)
        finally:
            self.free(workspace)

    def _first_phase(self, name: str, *arguments: Any) -> tuple[int, Executor]:
        if name not in FUNCTIONS:
            raise ValueError(f"aclnn: expected one of {', '.join(FUNCTIONS)}, got {name!r}")
        op = FUNCTIONS[name]
        count = len(op.inputs) + len(op.attributes) + len(op.outputs)
        if len(arguments) != count:
            raise TypeError(f"{name}GetWorkspaceSize: expected {count} arguments, got {len(arguments)}")
        executor = Executor(0, [], [])
        size, handle = ctypes.c_uint64(0), ctypes.c_void_p()
        try:
            passed = self._passed(op, arguments, executor)
            self.call(f"{name}GetWorkspaceSize", *passed, ctypes.byref(size), ctypes.byref(handle))
        except BaseException:
            self._release(executor, copy_back=False)
            raise
        assert handle.value is not None
        executor.handle = handle.value
        self._pending.append(executor)
        return size.value, executor

    def _passed(self, op: Operator, arguments: tuple[Any, ...], executor: Executor) -> list[Any]:
        """The arguments in C; what has to be freed is noted in `executor`."""
        inputs, attributes = len(op.inputs), len(op.attributes)
        passed: list[Any] = []
        for number, argument in enumerate(arguments):
            if inputs <= number < inputs + attributes:
                passed.append(self._attribute(op.attributes[number - inputs][1], argument, executor))
            elif argument is None:
                passed.append(ctypes.c_void_p())
            else:
                tensor = _DeviceTensor(self, argument, output=number >= inputs + attributes)
                executor.tensors.append(tensor)
                passed.append(tensor.handle)
        return passed

    def _attribute(self, kind: str, value: Any, executor: Executor) -> Any:
        if kind == "bool":
            return ctypes.c_bool(value)
        if kind == "int":
            return ctypes.c_int64(_int64(value))
        if value is None:
            return ctypes.c_void_p()
        handle: int = self.library.aclCreateIntArray(_ints(value), len(value))
        executor.lists.append(handle)
        return handle

    def _second_phase(
        self, name: str, workspace: int | None, size: int, executor: Executor, stream: int | None = None
    ) -> None:
        """Runs, waits, and copies the results to the output arrays."""
        chosen = self.stream if stream is None else stream
        arguments = (ctypes.c_void_p(workspace), ctypes.c_uint64(size), executor.handle, chosen)
        self.call(name, *arguments)
        if executor in self._pending:
            self._pending.remove(executor)
        try:
            self.call("aclrtSynchronizeStream", chosen)
        except AclnnError:
            self._release(executor, copy_back=False)
            raise
        self._release(executor, copy_back=True)

    def _release(self, executor: Executor, copy_back: bool) -> None:
        for tensor in executor.tensors:
            tensor.release(copy_back)
        for handle in executor.lists:
            self.call("aclDestroyIntArray", handle)
        executor.tensors, executor.lists = [], []
