"""A kernel with one fault is caught: by the oracle, or by the host model under the fault's name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from moegrad.codegen.generate import ascend_kernel
from moegrad.codegen.operators import kernel_of
from moegrad.codegen.targets.ascendc.emit import AscendKernel
from moegrad.codegen.targets.ascendc.hostbuild import build_kernels
from moegrad.codegen.targets.ascendc.hostrun import NO_AUTO_SYNC, HostKernel
from moegrad.tools.ascend import problem, run_case
from moegrad.tools.cases import Case
from moegrad.tools.program_cases import spec_of

FINALIZE = "finalize_routing_v2_grad"
PAD: dict[str, Any] = {"drop_pad_mode": 1, "experts": 4, "drop": "some"}
SCALES = Case(FINALIZE, "scales", "bf16", "bf16", 9, 3, 100, capacity=9, **PAD)
LIMITED = Case(FINALIZE, "scales", "bf16", "bf16", 9, 3, 100, active_num=20, drop="some")
TILED = Case(FINALIZE, "scales", "f32", "f32", 3, 2, 16385)
RAGGED = Case(FINALIZE, "scales", "bf16", "bf16", 9, 3, 300)
PLAIN = Case(FINALIZE, "plain", "f32", None, 40, 2, 7, capacity=30, **PAD)
PADDED = Case("token_unpermute_grad", "padded", "bf16", None, 9, 1, 33, experts=2, capacity=9, drop="some")
CASES = (SCALES, LIMITED, TILED, RAGGED, PLAIN, PADDED)

MUTANTS = {
    "no event before compute": (
        SCALES,
        "expandedXIn.EnQue(expandedXRows);",
        "",
        "queue-deque-empty",
    ),
    "no wait for the indices": (SCALES, "Sync<AscendC::HardEvent::MTE2_S>();", "", "missing-event-mte2-s"),
    "a buffer not given back": (SCALES, "expandedXIn.FreeTensor(expandedXRows);", "", "queue-not-freed"),
    "no wait before zeros are stored": (PADDED, "Sync<AscendC::HardEvent::V_MTE3>();", "", "missing-event-v-mte3"),
    "no barrier between vector instructions": (
        SCALES,
        "AscendC::PipeBarrier<PIPE_V>();",
        "",
        "missing-barrier-v",
    ),
    "a flag that nobody waits for": (SCALES, "AscendC::WaitFlag<event>(id);", "", "event-left-set"),
    "rounding towards zero": (SCALES, "CAST_RINT", "CAST_TRUNC", "row_grad"),
    "rounding half away from zero": (SCALES, "CAST_RINT", "CAST_ROUND", "row_grad"),
    "a mode that the cast has not": (SCALES, "CAST_RINT", "CAST_NONE", "unsupported-round-mode"),
    "rows in UB too close": (PLAIN, "pitch * sizeof(T) / 32 -", "hidden * sizeof(T) / 32 -", "row_grad"),
    "units of the UB stride": (PLAIN, "bytes, gap, blocks, 0}", "bytes, gap, blocks * 32, 0}", "row_grad"),
    "strides swapped": (PLAIN, "bytes, gap, blocks, 0}", "bytes, blocks, gap, 0}", "row_grad"),
    "length in elements": (
        SCALES,
        "static_cast<uint32_t>(elements * sizeof(T)), 0, 0, 0}",
        "static_cast<uint32_t>(elements), 0, 0, 0}",
        "",
    ),
    "-1 taken for a row": (SCALES, "row >= 0 && row < M", "row < M", "gm-out-of-range"),
    "one row too many": (LIMITED, "row < M;", "row <= M;", "gm-out-of-range"),
    "a tile too long": (TILED, "Min(tile, hidden - column)", "tile", "gm-out-of-range"),
    "a tile too few": (TILED, "column < hidden; column += tile", "column + tile < hidden; column += tile", "row_grad"),
    "a sum that drops its tail": (TILED, "elements - start);", "elements - start - 1);", "weight_grad"),
    "a sum that reads past the row": (RAGGED, "products[start], elements, 1, 1", "products[start], 64, 1, 1", ""),
    "a reduction that drops the last repeat": (
        TILED,
        "products, 64, elements, 1",
        "products, 64, elements - 1, 1",
        "weight_grad",
    ),
    "a lower half that is too short": (RAGGED, "(elements + 127) / 128", "elements / 128", "weight_grad"),
    "parts of a sum not joined": (
        TILED,
        "AscendC::Add(gradScalesSums, gradScalesSums, gradScalesPart",
        "AscendC::Add(gradScalesSums, gradScalesPart, gradScalesPart",
        "weight_grad",
    ),
    "sums that do not start at zero": (
        SCALES,
        "AscendC::Duplicate(gradScalesSums, 0.0f, static_cast<int32_t>(tokensInBlock * topk));",
        "",
        "ub-uninitialised-read",
    ),
    "no zero fill": (SCALES, "if (zeroFill != 0) {", "if (false) {", ""),
    "a fill that skips a row": (
        PLAIN,
        "namedRows.GetValue(row) == 0",
        "row != begin && namedRows.GetValue(row) == 0",
        "",
    ),
    "a fill over named rows": (PLAIN, "namedRows.SetValue(row, static_cast<uint8_t>(1));", "", "gm-double-write"),
    "rows of the wrong token": (SCALES, "(blockFirst + at.token) * hidden", "(at.token) * hidden", "row_grad"),
}


def mutant(number: int, case: Case, old: str, new: str) -> AscendKernel:
    """The kernel of a case with one replacement in its class, under a name of its own."""
    kernel = ascend_kernel(kernel_of(spec_of(case)))
    text = kernel.files[f"{kernel.source.key}.h"]
    assert old in text, f"there is no {old!r} in {kernel.source.key}.h"
    return with_class(kernel, text.replace(old, new), f"m{number}")


def with_class(kernel: AscendKernel, class_text: str, suffix: str) -> AscendKernel:
    """The kernel with another text of its class, under a name of its own."""
    key, symbol = kernel.source.key, kernel.source.symbol
    source = replace(kernel.source, key=f"{key}_{suffix}", symbol=f"{symbol}_{suffix}")
    files = {}
    for name, text in (kernel.files | {f"{key}.h": class_text}).items():
        text = text.replace(symbol, source.symbol).replace(symbol.upper(), source.symbol.upper())
        files[name.replace(key, source.key)] = text.replace(key, source.key)
    return replace(kernel, source=source, files=files)


@cache
def mutants() -> dict[str, HostKernel]:
    """All of them, and the kernels as they are, in one library."""
    named = {name: mutant(n, case, old, new) for n, (name, (case, old, new, _)) in enumerate(MUTANTS.items())}
    kernels = {kernel.spec.key: kernel for kernel in (ascend_kernel(kernel_of(spec_of(case))) for case in CASES)}
    named |= {case.id: kernels[kernel_of(spec_of(case)).key] for case in CASES}
    library = build_kernels([*(named[name] for name in MUTANTS), *kernels.values()])
    return {name: HostKernel(library, kernel) for name, kernel in named.items()}


def findings(kernel: HostKernel, case: Case) -> Iterator[str]:
    """What the oracle and the host model say, in two interleavings."""
    for seed in (0, 3):
        run = run_case(kernel, case, seed=seed, cores=3, switches=NO_AUTO_SYNC, every_row_named=False)
        yield " ".join([problem(case, run) or "", *(found["name"] for found in run.diagnostics)]).strip()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    case, _, _, expected = MUTANTS[name]
    found = list(findings(mutants()[name], case))
    assert any(found)
    assert expected in " ".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_kernels_themselves_are_content(case: Case) -> None:
    assert not any(findings(mutants()[case.id], case))
