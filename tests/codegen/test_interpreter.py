"""The interpreter: the tensor level against the oracle, the order of lanes, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moegrad.codegen.errors import MoegradError
from moegrad.codegen.generate import program_of
from moegrad.codegen.interpreter import lane_sum, run_program
from moegrad.codegen.parsing import parse_program
from moegrad.codegen.pipeline import lower
from moegrad.tools.cases import Case
from moegrad.tools.compare import explain
from moegrad.tools.program_cases import program_inputs, public_outputs, spec_of

from ..strategies import cases
from .helpers import DOT_THEN_SCALE, TOKEN_GATHER, Array, Inputs, integers


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(max_hidden=40))
def test_the_tensor_level_agrees_with_the_oracle(case: Case) -> None:
    spec = spec_of(case)
    module = lower(program_of(spec), spec, "cython", "specialize")
    inputs, sizes = program_inputs(case)
    assert explain(*public_outputs(case, run_program(module, inputs, sizes)), case.expected()) is None


def lane_sum_by_definition(products: list[float], lanes: int) -> np.float32:
    """Element j goes to lane j mod lanes; then lane l takes lane l + half, until one is left."""
    total = [np.float32(0)] * lanes
    for j, product in enumerate(products):
        total[j % lanes] = np.float32(total[j % lanes] + np.float32(product))
    while len(total) > 1:
        half = len(total) // 2
        total = [np.float32(total[lane] + total[lane + half]) for lane in range(half)]
    return total[0]


@given(
    st.lists(st.floats(width=32, min_value=-(2.0**60), max_value=2.0**60, allow_subnormal=False), max_size=100),
    st.sampled_from([1, 2, 8, 32]),
)
def test_lanes_are_summed_in_the_canonical_order(products: list[float], lanes: int) -> None:
    got = lane_sum(np.array(products, np.float32), lanes)
    assert got.tobytes() == lane_sum_by_definition(products, lanes).tobytes()


def test_the_order_of_lanes_shows() -> None:
    products = np.zeros(40, np.float32)
    products[[0, 1, 32]] = [1.0, 2.0**30, -(2.0**30)]
    assert lane_sum(products, 32) == 0.0
    products[[0, 1, 33]] = [1.0, 2.0**30, -(2.0**30)]
    products[32] = 0
    assert lane_sum(products, 32) == 1.0
    assert lane_sum(products, 1) == 0.0


@pytest.mark.parametrize("hidden", [1, 31, 32, 33, 7168])
def test_32_lanes_meet_the_error_bound(hidden: int) -> None:
    rng = np.random.default_rng(hidden)
    products = rng.normal(size=hidden).astype(np.float32)
    exact = sum(map(Fraction, products.tolist()), Fraction(0))
    magnitude = sum(map(abs, map(Fraction, products.tolist())), Fraction(0))
    error = abs(Fraction(float(lane_sum(products, 32))) - exact)
    assert error <= (Fraction(hidden, 32) + 12) * Fraction(1, 2**24) * magnitude


def gather_inputs() -> Inputs:
    """Good inputs of TOKEN_GATHER in fp32."""
    return TOKEN_GATHER.inputs(np.random.default_rng(0), np.dtype(np.float32), np.dtype(np.float32))


REFUSED: dict[str, tuple[dict[str, Array | None], str]] = {
    "missing": ({"src": None}, "src: the program needs this input, got pick, idx, p"),
    "rank": ({"pick": np.zeros((5, 1), np.int32)}, "pick: expected (R) int32, got (5, 1) int32"),
    "dtype": ({"idx": np.zeros(15, np.int64)}, "idx: expected (N) int32, got (15,) int64"),
    "float": ({"src": np.zeros((6, 70))}, "src: expected (S, H) float32, got (6, 70) float64"),
    "size": ({"p": np.zeros((4, 3), np.float32)}, "p: expected R = 5, got shape (4, 3)"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_an_input_that_disagrees_with_the_signature_is_refused(case: str) -> None:
    change, message = REFUSED[case]
    inputs = {name: array for name, array in {**gather_inputs(), **change}.items() if array is not None}
    module = lower(TOKEN_GATHER.parsed(), TOKEN_GATHER.spec(), "cython", "specialize")
    with pytest.raises(MoegradError) as error:
        run_program(module, inputs, TOKEN_GATHER.sizes)
    assert str(error.value) == message


def test_a_size_that_no_input_shows_must_be_given() -> None:
    module = lower(TOKEN_GATHER.parsed(), TOKEN_GATHER.spec(), "cython", "specialize")
    with pytest.raises(MoegradError) as error:
        run_program(module, gather_inputs())
    assert str(error.value) == "sizes: no input shows M"


def test_slots_that_topk_does_not_divide_are_refused() -> None:
    program = parse_program(TOKEN_GATHER.text.replace('["R", "K"]', '["N", "A"]'), "t")
    inputs = gather_inputs() | {"p": np.zeros((14, 1), np.float32), "idx": np.zeros(14, np.int32)}
    module = lower(program, TOKEN_GATHER.spec(), "cython", "specialize")
    with pytest.raises(MoegradError) as error:
        run_program(module, inputs, {"M": 11})
    assert str(error.value) == "sizes: expected N = R * K = 10, got 14"


def test_a_bound_size_is_checked() -> None:
    module = lower(DOT_THEN_SCALE.parsed(), DOT_THEN_SCALE.spec(hidden=64), "cython")
    rng = np.random.default_rng(0)
    inputs = {name: integers(rng, (5, 70), np.dtype(np.float32)) for name in ("x", "g")}
    with pytest.raises(MoegradError) as error:
        run_program(module, inputs)
    assert str(error.value) == "x: expected H = 64, got shape (5, 70)"


def test_an_output_that_no_operation_writes_shows() -> None:
    """Outputs start as NaN, so a pass that drops a store cannot pass a test by luck."""
    module = lower(DOT_THEN_SCALE.parsed(), DOT_THEN_SCALE.spec(), "cython")
    for op in list(module.walk()):
        if op.name == "moe.store_row":
            op.detach()
            op.erase()
    rng = np.random.default_rng(0)
    inputs = {name: integers(rng, (5, 70), np.dtype(np.float32)) for name in ("x", "g")}
    assert np.isnan(run_program(module, inputs)["out"]).all()
