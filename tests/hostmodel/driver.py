"""Compiling kernels against the host model and driving them through its C interface."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "hostmodel" / "include"
KERNELS = Path(__file__).resolve().parent / "kernels"
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fwrapv", "-ffp-contract=off"]
SHARED = ["-shared", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"]

Array = npt.NDArray[Any]

INPUT, OUTPUT, INOUT, WORKSPACE, TILING, ABSENT = range(6)
VIRTUAL, PARTIAL = 1, 2
SATURATE, NO_AUTO_SYNC, STRICT_UB, FUSED_MAC, MIX_KERNEL = 1, 2, 4, 8, 16


class ArrayStruct(ctypes.Structure):
    """MoegradArray."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("role", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("window_offset", ctypes.c_uint64),
        ("window_bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
    )


class LaunchStruct(ctypes.Structure):
    """MoegradLaunch."""

    _fields_ = (
        ("struct_bytes", ctypes.c_uint32),
        ("block_count", ctypes.c_uint32),
        ("arrays", ctypes.POINTER(ArrayStruct)),
        ("array_count", ctypes.c_uint32),
        ("switches", ctypes.c_uint32),
        ("workspace_bytes", ctypes.c_uint64),
        ("tiling", ctypes.c_char_p),
        ("tiling_bytes", ctypes.c_uint64),
        ("tiling_key", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("max_diagnostics", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Argument:
    """One array argument; `virtual_bytes` and `window_offset` make it a window on a larger array."""

    array: Array | None
    role: int = INPUT
    partial: bool = False
    virtual_bytes: int = 0
    window_offset: int = 0


def put(array: Array) -> Argument:
    return Argument(np.ascontiguousarray(array))


def out(array: Array, partial: bool = False) -> Argument:
    return Argument(array, OUTPUT, partial)


@dataclass(frozen=True)
class Result:
    """What a launch gave back."""

    status: int
    report: dict[str, Any] = field(repr=False)

    @property
    def names(self) -> set[str]:
        return {finding["name"] for finding in self.report["diagnostics"]}

    def finding(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(f for f in self.report["diagnostics"] if f["name"] == name)
        return found

    @property
    def counters(self) -> dict[str, float]:
        counters: dict[str, float] = self.report["counters"]
        return counters


def struct_of(argument: Argument) -> ArrayStruct:
    if argument.array is None:
        return ArrayStruct(None, 0, ABSENT, 0, 0, 0, None)
    data, size = argument.array.ctypes.data, argument.array.nbytes
    if argument.virtual_bytes:
        return ArrayStruct(data, argument.virtual_bytes, argument.role, VIRTUAL, argument.window_offset, size, None)
    return ArrayStruct(data, size, argument.role, PARTIAL if argument.partial else 0, 0, 0, None)


class Library:
    """A shared library of kernels, compiled for one chip."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.moegrad_hostmodel_free.argtypes = [ctypes.c_void_p]
        self._library.moegrad_hostmodel_describe.restype = ctypes.c_char_p

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = json.loads(self._library.moegrad_hostmodel_describe())
        return described

    def tiling_bytes(self, kernel: str) -> int:
        function = self._library[f"moegrad_tiling_bytes_{kernel}"]
        function.restype = ctypes.c_uint64
        return int(function())

    def run(
        self,
        kernel: str,
        *arguments: Argument,
        blocks: int = 1,
        tiling: bytes = b"",
        workspace: int = 0,
        key: int = 0,
        seed: int = 0,
        switches: int = 0,
    ) -> Result:
        structs: Sequence[ArrayStruct] = [struct_of(argument) for argument in arguments]
        launch = LaunchStruct(
            ctypes.sizeof(LaunchStruct),
            blocks,
            (ArrayStruct * len(structs))(*structs),
            len(structs),
            switches,
            workspace,
            tiling,
            len(tiling),
            key,
            seed,
            0,
        )
        text = ctypes.c_void_p()
        status = int(self._library[f"moegrad_launch_{kernel}"](ctypes.byref(launch), ctypes.byref(text)))
        report = json.loads(ctypes.string_at(text.value or 0))
        self._library.moegrad_hostmodel_free(text)
        return Result(status, report)


# Which kernel files each chip's library holds: all of them for the first, what differs for the other.
CONTENTS = {
    "ascend910b": (
        *("rows_buffers", "rows_events", "rows_memory", "rows_vector", "rows_cores"),
        *("numerics", "reductions", "moves", "chips", "orders", "handwritten", "tutorial"),
    ),
    "ascend950": ("reductions", "chips", "tutorial"),
}


class Compiler:
    """Compiles the kernel files into one library a chip, over a precompiled kernel_operator.h."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._libraries: dict[str, Library] = {}

    def _precompiled(self, chip: str) -> Path:
        folder = self.folder / chip
        header = folder / "kernel_operator.h.gch"
        if not header.exists():
            folder.mkdir(parents=True, exist_ok=True)
            source = str(INCLUDE / "kernel_operator.h")
            flags = [*FLAGS, *SHARED, f"-DMOEGRAD_CHIP={chip}", f"-I{INCLUDE}", "-x", "c++-header"]
            subprocess.run(["g++", *flags, source, "-o", str(header)], check=True, timeout=300)
        return folder

    def library(self, chip: str = "ascend910b") -> Library:
        if chip not in self._libraries:
            folder = self._precompiled(chip)
            # One translation unit, each file in a namespace of its own: the model's code is compiled once.
            files = "".join(f'namespace {name} {{\n#include "{KERNELS}/{name}.cpp"\n}}\n' for name in CONTENTS[chip])
            source, target = folder / "kernels.cpp", folder / "kernels.so"
            source.write_text(f'#include "kernel_operator.h"\n#include "{KERNELS}/common.h"\n{files}')
            flags = [*FLAGS, *SHARED, f"-DMOEGRAD_CHIP={chip}", f"-I{folder}", f"-I{INCLUDE}"]
            subprocess.run(["g++", *flags, str(source), "-o", str(target)], check=True, timeout=300)
            self._libraries[chip] = Library(target)
        return self._libraries[chip]

    def refusal(self, source: str, chip: str = "ascend910b") -> str:
        """The compiler's messages about a kernel, empty when it compiles."""
        folder = self._precompiled(chip)
        flags = [*FLAGS, *SHARED, f"-DMOEGRAD_CHIP={chip}", f"-I{folder}", f"-I{INCLUDE}", "-fsyntax-only"]
        text = '#include "kernel_operator.h"\nusing namespace AscendC;\n' + source
        done = subprocess.run(
            ["g++", *flags, "-x", "c++", "-"], input=text, capture_output=True, text=True, check=False, timeout=300
        )
        return "" if done.returncode == 0 else done.stderr
