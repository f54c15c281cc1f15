"""Every single line that orders something is needed: without it, the host model or the oracle finds a fault.

One small kernel, automatic synchronisation off, one core with several blocks of tokens and several scans of the
indices. Each `Sync`, `PipeBarrier` and `EnQue` is dropped alone; all mutants are built in one library.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from moegrad.codegen.generate import ascend_kernel
from moegrad.codegen.operators import kernel_of
from moegrad.codegen.targets.ascendc.hostbuild import build_kernels
from moegrad.codegen.targets.ascendc.hostrun import NO_AUTO_SYNC, HostKernel
from moegrad.tools.ascend import problem, run_case
from moegrad.tools.cases import Case
from moegrad.tools.program_cases import spec_of

from .test_mutants import with_class

PAD: dict[str, Any] = {"drop_pad_mode": 1, "experts": 4, "drop": "some"}
CASE = Case("finalize_routing_v2_grad", "scales", "bf16", "f16", 400, 3, 200, capacity=1040, **PAD)
KERNEL = ascend_kernel(kernel_of(spec_of(CASE, specialised=True)))
LINES = KERNEL.files[f"{KERNEL.source.key}.h"].splitlines()
ORDERING = re.compile(r"\s+(?:Sync<AscendC::HardEvent::\w+>\(\)|AscendC::PipeBarrier<PIPE_V>\(\)|\w+\.EnQue\(\w+\));")


def function_of(number: int) -> str:
    """Name of the member function that a line is in."""
    heads = (re.search(r"inline void (\w+)\(", line) for line in reversed(LINES[:number]))
    return next(head[1] for head in heads if head)


DROPPED = {
    f"{function_of(number)}-{number}-{line.strip()}": number
    for number, line in enumerate(LINES)
    if ORDERING.fullmatch(line)
}

EXCEPTIONS = {
    ("ComputeTokens", "AscendC::PipeBarrier<PIPE_V>();"): (
        "the instructions of a slot that read gradF32 are followed by a barrier in the slot itself, before its row of "
        "products is summed; the printer does not look across loops, and it costs one barrier a token"
    ),
    ("ZeroUnnamedRowsOfGradExpandedX", "Sync<AscendC::HardEvent::V_MTE3>();"): (
        "the scalar unit waits for the vector unit in MarkNamedRows before it issues the first store; the line stays "
        "so that the order does not hang on another function, once a call"
    ),
}
"""Function and line -> why a kernel without it is right all the same."""


def expected(line: str) -> str:
    """What the host model calls the fault of a dropped line."""
    event = re.search(r"HardEvent::(\w+)", line)
    if event:
        return f"missing-event-{event[1].lower().replace('_', '-')}"
    return "missing-barrier-v" if "PipeBarrier" in line else "queue-deque-empty"


@cache
def built() -> dict[str, HostKernel]:
    kernels = {
        name: with_class(KERNEL, "\n".join([*LINES[:number], *LINES[number + 1 :], ""]), f"d{number}")
        for name, number in DROPPED.items()
    }
    kernels["whole"] = KERNEL
    library = build_kernels(list(kernels.values()))
    return {name: HostKernel(library, kernel) for name, kernel in kernels.items()}


def findings(name: str) -> str:
    found = []
    for seed in (0, 3):
        run = run_case(built()[name], CASE, seed=seed, cores=1, switches=NO_AUTO_SYNC, every_row_named=False)
        found += [problem(CASE, run) or "", *(each["name"] for each in run.diagnostics)]
    return " ".join(found).strip()


def test_the_kernel_itself_is_content() -> None:
    assert findings("whole") == ""


@pytest.mark.parametrize("name", DROPPED)
def test_a_dropped_line_is_caught(name: str) -> None:
    number = DROPPED[name]
    line = LINES[number].strip()
    found = findings(name)
    if (function_of(number), line) in EXCEPTIONS:
        assert found == "", "no longer an exception"
    else:
        assert expected(line) in found


def test_the_exceptions_are_lines_of_the_kernel() -> None:
    assert EXCEPTIONS.keys() <= {(function_of(number), LINES[number].strip()) for number in DROPPED.values()}
