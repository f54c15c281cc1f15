"""The demonstration: its text, its routing, its NumPy reference, and what it says at the end."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from moegrad import operators
from moegrad.codegen.errors import SpecError
from moegrad.codegen.models import model
from moegrad.tools import demo, measure, oracle
from moegrad.tools.cases import MODES
from moegrad.tools.compare import row_grad_matches
from moegrad.tools.reference import numpy_gradients
from moegrad.tools.routing import Call, Routing, calls, route
from moegrad.tools.text import embed, words


@pytest.fixture(scope="module")
def routing() -> Routing:
    return route("gpt-oss-20b", 256, experts=32, topk=4, hidden=96)


# --- text ------------------------------------------------------------------------------------------------


def test_words_are_real_and_repeat() -> None:
    text = words(600)
    assert len(text) == 600
    assert words(600) == text
    assert all(re.fullmatch("[a-z]+", word) for word in text)
    assert 100 < len(set(text)) < 450
    assert text.count("the") > 10


def test_embedding_depends_on_the_word_alone_and_not_on_the_process() -> None:
    vectors = embed(["expert", "token", "expert"], 16)
    assert vectors.dtype == np.float32
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[0] != vectors[1]).any()
    assert embed([], 16).shape == (0, 16)
    code = "from moegrad.tools.text import embed; print(embed(['expert'], 16).tobytes().hex())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        assert done.stdout.strip() == vectors[:1].tobytes().hex()


# --- routing ---------------------------------------------------------------------------------------------


def test_routing_is_a_softmax_top_k(routing: Routing) -> None:
    assert (routing.topk, routing.hidden, len(routing.words)) == (4, 96, 256)
    assert routing.expert_idx.dtype == np.int32
    assert all(len(set(row)) == 4 for row in routing.expert_idx.tolist())
    np.testing.assert_allclose(routing.scales.sum(axis=1), 1, rtol=1e-6)
    assert (np.diff(routing.scales, axis=1) <= 0).all()


def test_rows_are_slots_sorted_by_expert(routing: Routing) -> None:
    experts = routing.expert_idx.reshape(-1)
    slot_of_row = np.argsort(routing.row_of_slot)
    assert sorted(routing.row_of_slot.tolist()) == list(range(1024))
    assert (np.diff(experts[slot_of_row]) >= 0).all()
    same = np.diff(experts[slot_of_row]) == 0
    assert (np.diff(slot_of_row)[same] > 0).all()  # stable
    assert (routing.row_of_slot[routing.row_of_slot] != np.arange(1024)).any()  # not its own inverse


def test_loads_are_skewed_and_capacity_drops(routing: Routing) -> None:
    assert routing.loads.sum() == 1024
    assert 1.5 < routing.skew < 10
    assert routing.capacity == 40
    row_of_slot = routing.capacity_row_of_slot
    kept = row_of_slot[row_of_slot >= 0]
    assert len(set(kept.tolist())) == kept.size
    assert (kept // 40 == routing.expert_idx.reshape(-1)[row_of_slot >= 0]).all()
    assert kept.size == np.minimum(routing.loads, 40).sum()
    assert 0 < routing.dropped == pytest.approx(1 - kept.size / 1024)


def test_routing_is_the_same_every_time(routing: Routing) -> None:
    again = route("gpt-oss-20b", 256, experts=32, topk=4, hidden=96)
    for name in ("expert_idx", "scales", "row_of_slot", "expanded_x", "bias", "grad_y"):
        assert getattr(again, name).tobytes() == getattr(routing, name).tobytes()
    other = route("dbrx", 256, experts=32, topk=4, hidden=96)
    assert other.expert_idx.tobytes() != routing.expert_idx.tobytes()


def test_gradient_is_that_of_the_forward_pass(routing: Routing) -> None:
    y = oracle.finalize_routing_v2_forward(
        routing.expanded_x, routing.row_of_slot, routing.scales, routing.expert_idx, routing.bias
    )
    target = embed(words(258), 96)[2:]
    np.testing.assert_allclose(routing.grad_y, (y - target) / 256, atol=1e-5)


# --- calls -----------------------------------------------------------------------------------------------


def test_calls_meet_every_mode_and_layout(routing: Routing) -> None:
    made = list(calls(routing, "bf16", "f32"))
    assert len(made) == demo.CALLS
    assert {(call.operator, call.mode) for call in made} == {
        (op, mode) for op, modes in MODES.items() for mode in modes
    }
    layouts = {call.layout for call in made if call.operator == "finalize_routing_v2_grad"}
    assert layouts == {"dropless", "truncated", "capacity"}
    capacity = [call.arguments for call in made if call.arguments.get("drop_pad_mode")]
    assert all((given["expanded_row_idx"] == -1).any() for given in capacity)
    padded = next(call.arguments for call in made if call.mode == "padded_probs")
    assert (padded["sorted_indices"] == -1).any()
    assert padded["probs"].shape == (32, 40)


def test_padded_rows_are_those_of_drop_pad_mode_1(routing: Routing) -> None:
    made: list[Call] = list(calls(routing, "f32", "f32"))
    padded = next(call.arguments for call in made if call.mode == "padded_probs")
    capacity = next(call.arguments for call in made if call.mode == "scales" and call.layout == "capacity")
    rows = oracle.token_unpermute_grad(**padded).row_grad
    other = oracle.finalize_routing_v2_grad(**capacity).row_grad
    assert rows.tobytes() == other.tobytes()
    assert rows.any()


def test_numpy_reference_computes_every_call(routing: Routing) -> None:
    for call in calls(routing, "bf16", "f32"):
        expected = getattr(oracle, call.operator)(**call.arguments)
        row, weight = numpy_gradients(call.operator, call.arguments)
        assert row_grad_matches(row, expected), call
        if expected.weight_grad is None:
            assert weight is None
        else:
            assert weight is not None
            assert weight.dtype == expected.weight_grad.dtype
            np.testing.assert_allclose(weight, expected.weight_grad, rtol=1e-3, atol=1e-6)


# --- the whole -------------------------------------------------------------------------------------------


def run(tmp_path: Path, *models: str, width: int = 80) -> tuple[int, str, Path]:
    stream, path = io.StringIO(), tmp_path / "report.html"
    console = Console(file=stream, width=width)
    options = {"isolate": False, "model_shapes": False}
    status = demo.run_demo(
        path, models, console=console, tokens=32, repeats=1, cases_per_combination=1, verify_options=options
    )
    return status, stream.getvalue(), path


def test_demo_tells_the_whole_story(tmp_path: Path) -> None:
    status, text, path = run(tmp_path, "gpt-oss-20b", "qwen3-30b-a3b")
    assert status == 0
    for part in (
        "func.func @scales(",  # tensor level
        "moe.for_tokens",  # after the last pass
        "finalize_routing_v2_grad__scales__bf16_f32__k4__h2880.pyx",
        "finalize_routing_v2_grad__scales__bf16_f32__k8__h2048.pyx",
        "cdef void token__k4__h2880(",
        "above with K = 8 and H = 2048",
        "32 experts, top 4, hidden size 2880",
        "times the mean load",
        "token_unpermute_grad",
        "Everything agrees with the oracle.",
    ):
        assert part in text, part
    page = path.read_text(encoding="utf-8")
    assert "qwen3-30b-a3b" in page
    assert page.count(">ok</span>") == 45 + 2 * demo.CALLS


def test_tables_of_the_demo_fit_a_narrow_terminal(tmp_path: Path) -> None:
    _, text, _ = run(tmp_path, "gpt-oss-20b")
    assert "…" not in text


def test_demo_fails_when_a_kernel_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = operators.finalize_routing_v2_grad

    def wrong(**arguments: Any) -> Any:
        row, weight = original(**arguments)
        row.reshape(-1)[-1] = 1
        return row, weight

    monkeypatch.setattr(operators, "finalize_routing_v2_grad", wrong)
    status, text, path = run(tmp_path, "gpt-oss-20b")
    assert status == 1
    assert "FAILED finalize_routing_v2_grad plain, dropless: row_grad: 1 of" in text
    assert "NOT everything agrees" in text
    assert "FAILED" in path.read_text(encoding="utf-8")


def test_demo_survives_a_call_that_raises(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_arguments: Any) -> Any:
        raise MemoryError("none left")

    monkeypatch.setattr(operators, "token_unpermute_grad", fails)
    runs = measure.measured_modes(routing, "bf16", "f32", repeats=1)
    result = measure.measure(model("gpt-oss-20b"), routing, runs, "bf16", "f32")
    assert not result.passed
    assert {run.message for run in runs if run.operator == "token_unpermute_grad"} == {"MemoryError: none left"}
    assert all(run.passed for run in runs if run.operator == "finalize_routing_v2_grad")


def test_unknown_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"model: expected one of .*; got 'gpt-2'"):
        run(tmp_path, "gpt-2")
