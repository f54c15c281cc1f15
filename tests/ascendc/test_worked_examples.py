"""The operators' worked examples and the field cases 1 to 10 (docs/field-cases.md), on the device kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moegrad.codegen.operators import make_spec
from moegrad.codegen.targets.ascendc.hostrun import HostRun
from moegrad.tools.ascend import generic_kernels

BF16 = np.dtype(ml_dtypes.bfloat16)
FINALIZE = "finalize_routing_v2_grad"
EXAMPLE_1 = {
    "grad_y": [[1, 2], [3, 4]],
    "expanded_row_idx": [-1, 0, 3, -1],
    "expanded_x": [[10, 20], [30, 40], [50, 60], [70, 80]],
    "scales": [[0.5, 0.25], [2, 1]],
}


def run(mode: str, inputs: dict[str, Any], data: str = "f32", weight: str = "f32", **sizes: int) -> HostRun:
    operator = "token_unpermute_grad" if mode.startswith("padded") else FINALIZE
    weighted = mode not in ("plain", "padded")
    spec = make_spec(operator, mode, data, weight if weighted else "")
    kernel = generic_kernels(spec.program)[spec.key]
    types = {"f32": np.dtype(np.float32), "bf16": BF16, "f16": np.dtype(np.float16)}
    arrays = {}
    for tensor in kernel.tensors:
        if not tensor.output:
            indices = "idx" in tensor.name or "indices" in tensor.name
            dtype = np.dtype(np.int32) if indices else types[weight if tensor.name in ("scales", "probs") else data]
            arrays[tensor.name] = np.array(inputs[tensor.name], dtype)
    found = kernel.run(arrays, sizes)
    assert found.clean, found.diagnostics
    return found


def rows(found: HostRun) -> list[list[float]]:
    return [[float(x) for x in row] for row in next(iter(found.outputs.values()))]


def weights(found: HostRun) -> list[Any]:
    return [[float(x) for x in np.atleast_1d(row)] for row in list(found.outputs.values())[1]]


def test_example_1_drops_and_fills() -> None:
    """Field cases 1 and 4: a dropped slot reads and writes nothing, rows that nobody names are exact +0."""
    found = run("scales", EXAMPLE_1)
    assert rows(found) == [[0.25, 0.5], [0, 0], [0, 0], [6, 8]]
    assert weights(found) == [[0, 50], [530, 0]]
    assert not np.signbit(next(iter(found.outputs.values()))).any()


@pytest.mark.parametrize("weight", [0, 1, np.nan])
def test_the_weight_of_a_dropped_slot_changes_nothing(weight: float) -> None:
    """Field case 2."""
    changed = run("scales", {**EXAMPLE_1, "scales": [[weight, 0.25], [2, weight]]})
    assert rows(changed) == rows(run("scales", EXAMPLE_1))
    assert weights(changed) == [[0, 50], [530, 0]]


def test_example_2_bias_counts_for_dropped_slots() -> None:
    """Field case 3."""
    found = run("scales_bias", {**EXAMPLE_1, "expert_idx": [[1, 0], [1, 1]], "bias": [[1, 1], [2, 2]]})
    assert rows(found) == [[0.25, 0.5], [0, 0], [0, 0], [6, 8]]
    assert weights(found) == [[6, 53], [544, 14]]


def test_rows_that_nobody_writes() -> None:
    """Field case 4: two slots, ten rows."""
    found = run("plain", {"grad_y": [[1.0] * 3, [2.0] * 3], "expanded_row_idx": [9, 0]}, M=10)
    assert rows(found) == [[2.0] * 3, *[[0.0] * 3] * 8, [1.0] * 3]


def test_zero_tokens_and_all_dropped() -> None:
    """Field case 5."""
    empty = run("plain", {"grad_y": np.zeros((0, 64)), "expanded_row_idx": []}, M=32)
    assert next(iter(empty.outputs.values())).shape == (32, 64)
    assert not next(iter(empty.outputs.values())).any()
    dropped = run("plain", {"grad_y": np.ones((1, 64)), "expanded_row_idx": [-1]}, M=8)
    assert not next(iter(dropped.outputs.values())).any()


def test_example_3_the_row_limit() -> None:
    """Field case 6: rows from M on do not exist."""
    inputs = {
        "grad_y": [[1, 1], [2, 2], [3, 3]],
        "expanded_row_idx": [5, 0, 2, 4, 1, 3],
        "expanded_x": [[1, 2], [3, 4], [5, 6], [7, 8]],
        "scales": np.ones((3, 2)),
    }
    found = run("scales", inputs)
    assert rows(found) == [[1, 1], [3, 3], [2, 2], [3, 3]]
    assert weights(found) == [[0, 3], [22, 0], [21, 45]]


def test_example_4_the_direction_of_the_map() -> None:
    """Field case 7."""
    assert rows(run("plain", {"grad_y": [[1], [2], [3], [4]], "expanded_row_idx": [1, 3, 0, 2]}, M=4)) == [
        [3],
        [1],
        [4],
        [2],
    ]


def test_slots_are_token_major() -> None:
    """Field case 8."""
    assert rows(run("plain", {"grad_y": [[1], [10]], "expanded_row_idx": [0, 1, 2, 3]}, M=4)) == [[1], [1], [10], [10]]


def test_k_of_one() -> None:
    """Field case 9."""
    rng = np.random.default_rng(3)
    grad, x = rng.integers(-4, 5, (2, 5, 4))
    inputs = {"grad_y": grad, "expanded_row_idx": np.arange(5), "expanded_x": x, "scales": np.ones((5, 1))}
    found = run("scales", inputs)
    assert weights(found) == [[float(v)] for v in (grad * x).sum(1)]


def test_fp32_weights_with_bf16_rows() -> None:
    """Field case 10: one rounding, of the product; weight gradients in fp32."""
    inputs = {"grad_y": [[100.0]], "expanded_row_idx": [0], "expanded_x": [[1.0]], "scales": [[0.3]]}
    found = run("scales", inputs, data="bf16")
    assert rows(found) == [[30.0]]
    assert list(found.outputs.values())[1].dtype == np.float32


def test_example_5_padded_mode() -> None:
    inputs = {
        "permuted_tokens": [[1, 1], [2, 2], [3, 3], [4, 4]],
        "unpermuted_tokens_grad": [[1, 2], [3, 4]],
        "sorted_indices": [1, 0, 0, -1],
        "probs": [0.5, 2, 1, 7],
    }
    found = run("padded_probs", inputs)
    assert rows(found) == [[1.5, 2], [2, 4], [1, 2], [0, 0]]
    assert weights(found) == [[7], [6], [9], [0]]


def test_a_nan_payload_survives_a_plain_mode() -> None:
    grad = np.array([[0x7FA1, 0xFFC3, 0x7F81]], np.uint16).view(BF16)
    found = run("plain", {"grad_y": grad, "expanded_row_idx": [1, 0]}, data="bf16", M=2)
    np.testing.assert_array_equal(
        next(iter(found.outputs.values())).view(np.uint16), np.repeat(grad.view(np.uint16), 2, 0)
    )
