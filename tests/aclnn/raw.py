"""First and second phases called directly: every tensor, and every byte of its memory, is the test's own."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moegrad.aclnn import DTYPES, Session, Tensor

from .calls import Arguments, Array, ordered

SENTINEL_SIZE, SENTINEL_EXECUTOR = 0x5EED, 0xABCD


@dataclass
class Raw:
    """A first phase on tensors that the test makes itself, in memory that it can read back."""

    acl: Session
    name: str
    handles: list[int] = field(default_factory=list)
    lists: list[int] = field(default_factory=list)
    blocks: list[tuple[int | None, Array]] = field(default_factory=list)
    passed: list[Any] = field(default_factory=list)
    size: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(SENTINEL_SIZE))
    executor: ctypes.c_void_p = field(default_factory=lambda: ctypes.c_void_p(SENTINEL_EXECUTOR))

    def tensor(
        self,
        array: Array,
        memory: int | None,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        storage: tuple[int, ...] | None = None,
        format: int = 2,
    ) -> int:
        """A tensor on device memory; like `array`, or a view of it in elements."""
        dims = array.shape if shape is None else shape
        steps = tuple(each // array.itemsize for each in array.strides) if strides is None else strides
        stored = (array.size,) if storage is None else storage
        handle = self.acl.library.aclCreateTensor(
            _ints(dims),
            len(dims),
            DTYPES[array.dtype],
            _ints(steps),
            offset,
            format,
            _ints(stored),
            len(stored),
            memory,
        )
        assert handle, self.acl.recent_error()
        self.handles.append(handle)
        return int(handle)

    def memory(self, array: Array) -> int | None:
        """Device memory with the bytes of a contiguous array."""
        block = self.acl.malloc(array.nbytes)
        if block is not None:
            self.acl.call("aclrtMemcpy", block, array.nbytes, array.ctypes.data, array.nbytes, 1)
        self.blocks.append((block, array))
        return block

    def add(self, value: Any) -> None:
        """One argument more."""
        if value is None:
            self.passed.append(ctypes.c_void_p())
        elif isinstance(value, bool):
            self.passed.append(ctypes.c_bool(value))
        elif isinstance(value, int):
            self.passed.append(ctypes.c_int64(value))
        elif isinstance(value, list):
            self.lists.append(self.acl.library.aclCreateIntArray(_ints(value), len(value)))
            self.passed.append(ctypes.c_void_p(self.lists[-1]))
        elif isinstance(value, ctypes.c_void_p):
            self.passed.append(value)
        else:
            given, format = (value.array, value.format) if isinstance(value, Tensor) else (value, 2)
            whole = given if given.base is None else given.base
            offset = (given.ctypes.data - whole.ctypes.data) // given.itemsize
            handle = self.tensor(
                whole,
                self.memory(whole),
                given.shape,
                tuple(each // given.itemsize for each in given.strides),
                offset,
                format=format,
            )
            self.passed.append(ctypes.c_void_p(handle))

    def first(self) -> int:
        function = self.acl.library[f"{self.name}GetWorkspaceSize"]
        return int(function(*self.passed, ctypes.byref(self.size), ctypes.byref(self.executor)))

    def second(self, workspace: int | None = None, size: int = 0) -> int:
        function = self.acl.library[self.name]
        return int(
            function(ctypes.c_void_p(workspace), ctypes.c_uint64(size), self.executor, ctypes.c_void_p(self.acl.stream))
        )

    def untouched(self) -> bool:
        return self.size.value == SENTINEL_SIZE and self.executor.value == SENTINEL_EXECUTOR

    def read(self, number: int) -> Array:
        """What a block holds now."""
        block, array = self.blocks[number]
        found = np.empty_like(array)
        if block is not None:
            self.acl.call("aclrtMemcpy", found.ctypes.data, array.nbytes, block, array.nbytes, 2)
        return found

    def unchanged(self) -> bool:
        return all(self.read(i).tobytes() == array.tobytes() for i, (_, array) in enumerate(self.blocks))

    def close(self) -> None:
        for handle in self.handles:
            self.acl.call("aclDestroyTensor", handle)
        for each in self.lists:
            self.acl.call("aclDestroyIntArray", each)
        for block, _ in self.blocks:
            self.acl.free(block)


def _ints(values: Any) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def raw(acl: Session, name: str, arguments: Arguments) -> Raw:
    call = Raw(acl, name)
    for value in ordered(name, arguments):
        call.add(value)
    return call


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a tensor without gaps."""
    return tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
