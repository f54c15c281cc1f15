"""The generated kernels on aarch64: cross-compiled, emulated, and held against x86-64 bit for bit."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moegrad
from moegrad import _native
from moegrad.codegen.generate import module_files
from moegrad.codegen.sets import SETS
from moegrad.codegen.targets.cython.toolchain import BASE_FLAGS, include_dir
from moegrad.tools.cases import Case, enumerate_cases
from moegrad.tools.compare import explain
from moegrad.tools.oracle import Array

DRIVER = Path(__file__).with_name("aarch64_driver.c")
MODULES = [path.removesuffix(".pyx") for path in sorted(module_files(SETS["default"](), ""))]
CASES = list(enumerate_cases(cases_per_combination=3, seed=11))
TOOLS = "aarch64-linux-gnu-gcc", "qemu-aarch64"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="compares an x86-64 machine with an emulated aarch64"),
    pytest.mark.skipif(
        not all(map(shutil.which, TOOLS)), reason=f"needs {' and '.join(TOOLS)}; make test-all installs them"
    ),
]


@dataclass(frozen=True)
class Call:
    """What one call of an operator handed to a kernel, and what the kernel left there."""

    sizes: tuple[int, ...]
    before: tuple[Array, ...]
    after: tuple[Array, ...]


def recorded(case: Case, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a case here, through the public function, and checks it against the oracle."""
    calls: list[Call] = []
    launch = _native.launch

    def record(
        capsule: object, arrays: tuple[Array, ...], order: tuple[int, ...], sizes: tuple[int, ...], threads: int
    ) -> None:
        tensors = [arrays[position] for position in order]
        before = tuple([tensor.copy() for tensor in tensors])
        launch(capsule, arrays, order, sizes, threads)
        calls.append(Call(sizes, before, tuple([tensor.copy() for tensor in tensors])))

    with monkeypatch.context() as patch:
        patch.setattr(_native, "launch", record)
        rows, weights = getattr(moegrad, case.operator)(**case.arguments())
    assert explain(rows, weights, case.expected()) is None
    (call,) = calls
    return call


def build(module: str, folder: Path) -> Path:
    """The driver of a module's generic kernel; Python's symbols stay unresolved, since kernels call none."""
    source, program = folder / f"{module}.pyx", folder / module
    source.write_text(module_files(SETS["default"](), "")[f"{module}.pyx"])
    subprocess.run([sys.executable, "-m", "cython", "-3", str(source)], check=True)
    launcher = re.findall(r"\b__pyx_f_\w+_launch__k(?:any|1)__hany\b", (folder / f"{module}.c").read_text())[0]
    command = [
        TOOLS[0],
        *BASE_FLAGS,
        "-w",
        "-static",
        "-Wl,--unresolved-symbols=ignore-all",
        f"-I{include_dir()}",
        f"-I{sysconfig.get_path('include')}",
        f'-DKERNEL="{folder / module}.c"',
        f"-DLAUNCH={launcher}",
        str(DRIVER),
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, call: Call) -> Iterator[Array]:
    """The tensors after the emulated kernel has run on them."""
    given, found = program.with_suffix(".in"), program.with_suffix(".out")
    words = [np.array([len(call.sizes), len(call.before), *call.sizes], np.int64).tobytes()]
    for tensor in call.before:
        words += [np.array([tensor.nbytes], np.int64).tobytes(), tensor.tobytes()]
    given.write_bytes(b"".join(words))
    done = subprocess.run([TOOLS[1], str(program), str(given), str(found)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data, start = found.read_bytes(), 0
    for tensor in call.before:
        yield np.frombuffer(data[start : start + tensor.nbytes], tensor.dtype).reshape(tensor.shape)
        start += tensor.nbytes


def without_payloads(values: Array) -> Any:
    """Bits, with one pattern for every NaN: payload and sign of one made by arithmetic are the processor's own."""
    if values.dtype == np.int32:
        return values
    bits = values.view({2: np.uint16, 4: np.uint32}[values.itemsize])
    with np.errstate(invalid="ignore"):  # ml_dtypes warns of NaNs
        return np.where(np.isnan(values), bits.dtype.type(0xFFFF), bits)


@pytest.mark.parametrize("module", MODULES)
def test_aarch64_gives_the_same_bits(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for case in CASES if case.tokens and module == module_of(case)]
    assert cases, f"no case runs {module}"
    program = build(module, tmp_path)
    for case in cases:
        call = recorded(case, monkeypatch)
        for here, there in zip(call.after, run(program, call), strict=True):
            np.testing.assert_array_equal(without_payloads(there), without_payloads(here), err_msg=case.id)


def module_of(case: Case) -> str:
    """The module that runs a case."""
    from moegrad.contract import FINALIZE_ROUTING_V2_GRAD, TOKEN_UNPERMUTE_GRAD

    op = FINALIZE_ROUTING_V2_GRAD if case.is_finalize else TOKEN_UNPERMUTE_GRAD
    return "__".join([op.kernels[case.mode], "_".join(filter(None, (case.data_dtype, case.weight_dtype)))])
