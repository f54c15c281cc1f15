"""The benchmark: every contender in one run, ratios that add up, and figures for people and programs."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import moegrad
from moegrad import _native
from moegrad.codegen.errors import MoegradError, SpecError
from moegrad.tools import bench, bench_view, choices, peers, scaling, small_calls
from moegrad.tools.cli import app

SMALL = (8, 2, 64)


@pytest.fixture(scope="module")
def report() -> bench.Report:
    wanted = bench.settings(bench.MODES, ["f32", "bf16"], ["", "f32"], [SMALL])
    return bench.run(wanted, repeats=4)


def test_settings_are_every_combination_once() -> None:
    wanted = bench.settings(["plain", "scales"], ["f32", "bf16"], ["", "f32"], [SMALL])
    labels = [setting.label for setting in wanted]
    assert labels == [
        "plain f32 T=8 K=2 H=64",
        "plain bf16 T=8 K=2 H=64",
        "scales f32/f32 T=8 K=2 H=64",
        "scales bf16/bf16 T=8 K=2 H=64",
        "scales bf16/f32 T=8 K=2 H=64",
    ]


def test_bytes_are_each_row_once(report: bench.Report) -> None:
    moved = {result.setting.label: result.bytes_moved for result in report.results}
    row = 64 * 4
    assert moved["plain f32 T=8 K=2 H=64"] == (8 + 16) * row
    assert moved["scales f32/f32 T=8 K=2 H=64"] == (8 + 16 + 16) * row
    assert moved["scales bf16/f32 T=8 K=2 H=64"] == (8 + 16 + 16) * row // 2


def test_every_setting_has_its_limit_and_numpy(report: bench.Report) -> None:
    for result in report.results:
        assert {"moegrad", "copy", "traffic", "numpy"} <= set(result.seconds)
        assert ("rows" in result.seconds) is (result.setting.mode != "plain")
        assert (result.share_of("rows") is None) is (result.setting.mode == "plain")
        assert result.share == result.seconds["copy"] / result.seconds["moegrad"]
        assert result.speedup("moegrad") == 1
        assert result.speedup("nobody") is None


def test_json_has_settings_and_ratios(report: bench.Report) -> None:
    document = json.loads(report.to_json())
    assert document["schema"] == 1
    first = document["results"][0]
    assert (first["mode"], first["data"], first["tokens"]) == ("plain", "f32", 8)
    assert first["speedup_over"]["numpy"] > 0
    assert set(first["share_of"]) == {"copy", "traffic", "rows"}
    assert not set(first["share_of"]) & set(first["speedup_over"])


@pytest.mark.parametrize(
    ("read", "written"), [(300_000, 300_000), (300_001, 70_003), (70_003, 900_000), (0, 99), (9, 0)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_traffic_limit_writes_all_and_reads_in_order(read: int, written: int, threads: int) -> None:
    source = np.arange(read, dtype=np.uint32).astype(np.uint8)
    target = np.full(written, 7, np.uint8)
    _native.stream_traffic(target, source, threads)
    if read == written:
        np.testing.assert_array_equal(target, source)
    elif read > written:
        np.testing.assert_array_equal(target[: 1 << 16], source[: min(written, 1 << 16)])
    elif read > 0:
        assert len(np.unique(target)) == 256


@pytest.mark.parametrize("size", [0, 63, 16384, 100_003])
@pytest.mark.parametrize("pages", [False, True])
def test_the_copy_limit_copies(size: int, pages: bool) -> None:
    source = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    target = np.zeros(size, np.uint8)
    _native.stream_copy(target, source, 2, pages)
    np.testing.assert_array_equal(target, source)


def test_the_rows_limit_copies_the_named_rows() -> None:
    source = np.random.default_rng(0).standard_normal((9, 33)).astype(np.float32)
    target, index = np.zeros_like(source), np.array([8, 0, 3, 3], np.int32)
    _native.stream_rows(target, source, index, 2)
    named = np.isin(np.arange(9), index)
    np.testing.assert_array_equal(target[named], source[named])
    assert not target[~named].any()
    with pytest.raises(ValueError, match=r"^stream_rows: an index is out of range$"):
        _native.stream_rows(target, source, np.array([9], np.int32), 1)
    with pytest.raises(ValueError, match=r"^stream_copy: expected two arrays of one size, got 1188 and 4 bytes$"):
        _native.stream_copy(target[0, :1], source, 1)


@pytest.mark.parametrize(("spread", "noisy"), [(0.01, False), (0.9, True)])
def test_the_table_says_when_the_machine_is_noisy(report: bench.Report, spread: float, noisy: bool) -> None:
    results = tuple(bench.Result(each.setting, each.bytes_moved, each.seconds, spread) for each in report.results)
    console = Console(width=120, record=True, file=io.StringIO())
    bench_view.render(bench.Report(2, {}, results), console)
    assert ("too noisy to trust" in console.export_text()) is noisy


def test_peers_compute_the_same() -> None:
    setting = bench.Setting("scales_bias", "f32", "f32", 6, 3, 40)
    arguments = bench.call_arguments(setting)
    row, weight = moegrad.finalize_routing_v2_grad(**arguments)
    for name, run in peers.peers(arguments, row, weight, 1).items():
        result = run()
        if isinstance(result, tuple):
            np.testing.assert_allclose(np.asarray(result[0]), row, rtol=1e-6, err_msg=name)
            np.testing.assert_allclose(np.asarray(result[1]), weight, rtol=1e-4, atol=1e-4, err_msg=name)


def test_the_command_writes_json(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    options = [
        "-m",
        "plain",
        "-d",
        "float32",
        "--shape",
        "2,64",
        "--tokens",
        "8",
        "--repeats",
        "3",
        "--json",
        str(path),
    ]
    result = CliRunner().invoke(app, ["bench", *options])
    assert result.exit_code == 0
    assert json.loads(path.read_text())["results"][0]["data"] == "f32"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "nope"], "--mode: expected one of plain, scales, scales_bias; got 'nope'"),
        (["--shape", "8,x"], "--shape: expected K,H as two positive numbers or a model's name, got '8,x'"),
        (["--shape", "nope"], "model: expected one of llama-4-scout"),
        (["--scaling", "--calls"], "bench: expected one of --choices, --scaling, --calls, got --scaling and --calls"),
        (["-d", "f64"], "dtype: expected one of f16, bf16, f32, got 'f64'"),
    ],
)
def test_bad_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["bench", *options])
    assert isinstance(result.exception, SpecError | MoegradError)
    assert message in str(result.exception)


def test_the_plot_is_written(report: bench.Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    bench_view.plot(report, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_scaling_is_measured_and_shown() -> None:
    found = scaling.measure(3, bench.Setting("scales", "bf16", "bf16", 8, 2, 64))
    assert list(found.slopes) == ["tokens", "topk", "hidden"]
    assert found.dropped[0.0] == 1
    assert found.extra_bytes is None or found.extra_bytes < found.threads << 20
    console = Console(width=120, record=True, file=io.StringIO())
    scaling.render(found, console)
    assert "slope of log time over log hidden" in console.export_text()


def test_a_slope_is_the_exponent() -> None:
    assert scaling._slope([(math.log(n), math.log(3 * n**1.5)) for n in (2, 7, 40)]) == pytest.approx(1.5)


def test_dropped_slots_have_no_row() -> None:
    arguments = scaling._with_dropped(bench.call_arguments(bench.Setting("scales", "f32", "f32", 8, 4, 16)), 0.25)
    assert (arguments["expanded_row_idx"] == -1).sum() == 8
    rows, weights = moegrad.finalize_routing_v2_grad(**arguments)
    assert (~rows.any(axis=-1)).sum() == (weights == 0).sum() == 8


def test_the_steps_of_a_small_call_are_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_calls, "MANY", 3)
    small = bench.Setting("scales", "bf16", "bf16", 1, 2, 8)
    found = small_calls.measure(3, small, small)
    assert all(spent > 0 for spent in found.whole.values())
    assert 0 < found.check_share < 1
    console = Console(width=120, record=True, file=io.StringIO())
    small_calls.render(found, console)
    text = console.export_text()
    assert all(name in text for name in (*found.steps, *found.whole, "new outputs: above the kernel"))


def test_small_calls_are_told_in_microseconds_apiece(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {
        small_calls.KERNEL: 4e-3,
        small_calls.STEPS[-1]: 4.5e-3,
        small_calls.OUT: 6e-3,
        "check": 1.0,
        "call": 8.0,
    }

    def canned(contenders: dict[str, object], _repeats: int) -> dict[str, list[float]]:
        return {name: [9.0, seconds.get(name, 2.5e-4), 9.0] for name in contenders}

    monkeypatch.setattr(small_calls, "rounds", canned)
    small = bench.Setting("scales", "bf16", "bf16", 1, 2, 8)
    found = small_calls.measure(3, small, small)
    look, values, memory, launch = (found.steps[name] for name in small_calls.STEPS)
    assert (look, values, memory) == pytest.approx((0.5, 0.5, 0.5))
    assert launch == pytest.approx(1.0)
    assert found.steps[small_calls.KERNEL] == pytest.approx(8.0)
    assert found.steps[small_calls.REST] == pytest.approx(1.5)
    assert found.above_kernel(small_calls.OUT) == pytest.approx(4.0)
    assert found.check_share == 0.125


@pytest.mark.slow
def test_choices_are_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel is built and runs; each has a share of the copy in every dtype it is for."""
    monkeypatch.setattr(choices, "DTYPES", ("f32", "bf16"))
    found = choices.measure(3, bench.Setting("scales", "f32", "f32", 8, 2, 64))
    assert list(found.shares) == ["f32", "bf16"]
    assert set(found.shares["bf16"]) - set(found.shares["f32"]) == {"no bf16 in pairs"}
    assert all(share > 0 for shares in found.shares.values() for share in shares.values())
    console = Console(width=120, record=True, file=io.StringIO())
    choices.render(found, console)
    assert "one slot at once" in console.export_text()
