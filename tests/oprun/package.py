"""Builds the small operator package of these tests with a driver, and talks to the driver."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
HOSTMODEL = HERE.parents[1] / "hostmodel"
PACKAGE = HERE / "package"
FLAGS = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-fwrapv", "-ffp-contract=off", f"-I{HOSTMODEL}/include"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

Array = npt.NDArray[Any]

TYPES = {"float32": 0, "float16": 1, "int32": 3, "int64": 9, "bfloat16": 27}
ND, NCHW = 2, 0


@dataclass(frozen=True)
class Unit:
    """One kernel source compiled for one combination of data types."""

    operator: str
    function: str
    column: int
    macros: tuple[str, ...] = ()

    def source(self) -> str:
        return (
            '#include "kernel_unit.h"\n'
            f'namespace {{\n#include "{PACKAGE}/op_kernel/{self.function}.cpp"\n}}\n'
            f"MOEGRAD_REGISTER_KERNEL({self.operator}, {self.function}, {self.column})\n"
        )

    def flags(self) -> list[str]:
        own_name = f"{self.function}={self.function}_{self.column}"
        return [f"-I{HOSTMODEL}/oprun", *(f"-D{macro}" for macro in (*self.macros, own_name))]


UNITS = (
    Unit("ScaledAdd", "scaled_add", 0, ("DTYPE_X=float", "ORIG_DTYPE_X=DT_FLOAT", "FORMAT_X=FORMAT_ND")),
    Unit("ScaledAdd", "scaled_add", 1, ("DTYPE_X=half", "ORIG_DTYPE_X=DT_FLOAT16", "FORMAT_X=FORMAT_ND")),
    Unit("Careless", "careless", 0),
)


def compile_object(source: Path, target: Path, flags: Sequence[str]) -> Path:
    command = ["g++", *FLAGS, *flags, "-c", str(source), "-o", str(target)]
    subprocess.run(command, check=True, timeout=300)
    return target


def build(folder: Path) -> Path:
    """The driver, linked with the package, the operator runner and the host ACL.

    Sanitizers look at the operator runner and its users. The cores of kernels are fibres on stacks of their own, and
    the host ACL has its own tests.
    """
    jobs: list[tuple[Path, Path, list[str]]] = []
    for unit in UNITS:
        source = folder / f"{unit.function}_{unit.column}.cpp"
        source.write_text(unit.source())
        jobs.append((source, source.with_suffix(".o"), unit.flags()))
    sources = {"acl": HOSTMODEL / "acl", "runner": HOSTMODEL / "oprun", "host": PACKAGE / "op_host", "test": HERE}
    for name, group in sources.items():
        flags = [] if name == "acl" else SANITIZERS
        jobs += [(source, folder / f"{name}_{source.stem}.o", flags) for source in sorted(group.glob("*.cpp"))]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda job: compile_object(*job), jobs))
    driver = folder / "driver"
    subprocess.run(["g++", *SANITIZERS, *map(str, objects), "-o", str(driver), "-lpthread"], check=True, timeout=300)
    return driver


@dataclass(frozen=True)
class Answer:
    """Status and text of one command."""

    status: int
    text: str


def numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values)) or "."


@dataclass
class Script:
    """Commands for one process of the driver."""

    driver: Path
    _commands: list[str] = field(default_factory=list)

    def _add(self, *words: object) -> None:
        self._commands.append(" ".join(map(str, words)))

    def tensor(
        self,
        name: str,
        values: Array,
        view: Array | None = None,
        form: int = ND,
        dtype: int | None = None,
        null: bool = False,
    ) -> None:
        """A tensor over memory with `values`; `view` is one of that array, if not all of it is meant."""
        seen = values if view is None else view
        offset = (seen.__array_interface__["data"][0] - values.__array_interface__["data"][0]) // values.itemsize
        strides = numbers([stride // values.itemsize for stride in seen.strides])
        code = TYPES[values.dtype.name] if dtype is None else dtype
        memory = values.tobytes().hex() if values.size and not null else "."
        self._add("tensor", name, code, form, numbers(seen.shape), strides, offset, values.size, memory)

    def shape(self, name: str, dtype: str, dims: Sequence[int]) -> None:
        self._add("shape", name, TYPES[dtype], numbers(dims))

    def int_list(self, name: str, values: Sequence[int]) -> None:
        self._add("list", name, numbers(values))

    def drop(self, name: str) -> None:
        self._add("drop", name)

    def prepare(self, operator: str, inputs: str, attrs: str, outputs: str) -> None:
        self._add("prepare", operator, inputs, attrs, outputs)

    def prepare_null(self, operator: str, which: str) -> None:
        self._add("prepare_null", operator, which)

    def run(self, operator: str) -> None:
        self._add("run", operator)

    def read(self, name: str) -> None:
        self._add("read", name)

    def infer(self, operator: str, inputs: str, attrs: str) -> None:
        self._add("infer", operator, inputs, attrs)

    def gather(self, dims: Sequence[int], strides: Sequence[int], offset: int, storage: int) -> None:
        self._add("gather", numbers(dims), numbers(strides), offset, storage)

    def answers(self) -> list[str]:
        done = subprocess.run(
            [self.driver],
            input="\n".join(self._commands) + "\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        lines = [line.replace("\\n", "\n") for line in done.stdout.splitlines()]
        assert len(lines) == len(self._commands), done.stdout + done.stderr
        return lines

    def results(self) -> list[Answer]:
        """The answers of all commands but those that make something, which must succeed."""
        wanted = []
        for command, line in zip(self._commands, self.answers(), strict=True):
            status, _, text = line.partition(" ")
            if command.split()[0] in ("tensor", "shape", "list", "drop"):
                assert status == "0", f"{command}: {line}"
            else:
                wanted.append(Answer(int(status), text))
        return wanted


def faults() -> dict[str, int]:
    """The names of what Careless can do wrong."""
    text = (PACKAGE / "op_host" / "faults.h").read_text()
    body = text[text.index("{") + 1 : text.index("}")]
    return {name: number for number, name in enumerate(re.findall(r"\w+", body))}


def array_of(answer: Answer, like: Array) -> Array:
    assert answer.status == 0, answer.text
    return np.frombuffer(bytes.fromhex(answer.text), like.dtype).reshape(like.shape)
