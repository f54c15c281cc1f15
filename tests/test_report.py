"""The HTML page: well-formed, self-contained, and as loud about failures as the verification."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from moegrad.codegen.models import Model
from moegrad.tools.charts import bar_chart
from moegrad.tools.measure import ModelResult, ModeRun
from moegrad.tools.report import html, write_report
from moegrad.tools.results import Failure, VerifyReport
from moegrad.tools.targets import Kernel
from moegrad.tools.verify import verify


@pytest.fixture(scope="module")
def report() -> VerifyReport:
    return verify(cases_per_combination=1, isolate=False, model_shapes=False)


RUN = ModeRun(
    "finalize_routing_v2_grad",
    "scales",
    "dropless",
    Kernel("finalize_routing_v2_grad__scales__bf16_f32__k4__h2880", "avx2"),
    True,
    0.25,
    "",
    0.001,
    0.012,
)
RESULT = ModelResult(
    Model("gpt-oss-20b", 4, 2, 2880), "bf16", "f32", 100, 60, (("the", 9),), (90, 60, 40, 10), 1.8, 63, 0.13, (RUN,)
)


def broken(report: VerifyReport) -> VerifyReport:
    row = report.rows[3]
    failure = Failure("case<1>", "row_grad: expected 1 & got <nothing>\nodd: other bits in row_grad")
    bad = dataclasses.replace(
        row, rows_bitwise=False, variants_equal=False, failures=1, first_failure=failure, worst_error=float("inf")
    )
    return dataclasses.replace(report, rows=(*report.rows[:3], bad, *report.rows[4:]))


def text_of(page: str) -> str:
    tree = ElementTree.fromstring(page)
    return " ".join(" ".join(tree.itertext()).split())


def statuses(page: str) -> list[str]:
    return re.findall(r'<span class="status (\w+)">', page)


def test_every_combination_has_a_status_in_words_and_colour(report: VerifyReport) -> None:
    page = html(report)
    assert statuses(page) == ["ok"] * 46
    assert page.count(">ok</span>") == 45
    text = text_of(page)
    for name in ("token_unpermute_grad", "finalize_routing_v2_grad", "padded_probs", "scales_bias", "all agree"):
        assert name in text
    assert "Failures" not in text
    assert page.count("<svg") == 3


def test_failures_are_at_the_top_with_their_case(report: VerifyReport) -> None:
    page = html(broken(report))
    assert statuses(page).count("fail") == 3  # the verdict, the list, the row
    text = text_of(page)
    assert "FAILED" in text
    assert "case<1> row_grad: expected 1 & got <nothing> odd: other bits in row_grad" in text
    assert text.index("case<1>") < text.index("Every operator")
    assert page.count('<td class="bad">NO</td>') == 2
    assert ">inf<" in page
    assert "all agree</span>" not in page


def test_models_are_shown_with_loads_and_times(report: VerifyReport) -> None:
    page = html(report, [RESULT])
    text = text_of(page)
    assert "gpt-oss-20b" in text
    assert "1.8 times the mean load" in text
    assert "drops 13% of the slots" in text
    assert "12.0x" in text
    assert page.count('<rect class="over"') == 1
    assert "models" not in text_of(html(report)).split("Environment")[1]


def test_a_wrong_model_run_fails_the_page(report: VerifyReport) -> None:
    wrong = dataclasses.replace(RUN, message="weight_grad: off", rows_bitwise=False)
    page = html(report, [dataclasses.replace(RESULT, runs=(wrong,))])
    assert statuses(page)[0] == "fail"
    dead = dataclasses.replace(wrong, seconds=0.0, numpy_seconds=0.0)
    assert ">0.0x<" in html(report, [dataclasses.replace(RESULT, runs=(dead,))])
    assert "weight_grad: off" in text_of(page)


def test_page_is_self_contained_and_names_no_machine(report: VerifyReport) -> None:
    page = html(broken(report), [RESULT])
    assert page.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|<script|<link|<img|url\(|@import|src=", page)
    assert "prefers-color-scheme: dark" in page
    assert "<style>" in page
    for secret in (os.uname().nodename, str(Path.home()), sys.prefix, str(Path.cwd())):
        assert len(secret) < 3 or secret not in page
    text = text_of(page).split("Environment")[1]
    for name in ("moegrad", "numpy", "instruction set", "threads", "kernels", "seed"):
        assert name in text


def test_same_results_same_bytes(report: VerifyReport, tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    write_report(path, report, [RESULT])
    assert path.read_text(encoding="utf-8") == html(report, [RESULT])


def test_nothing_verified_still_gives_a_page() -> None:
    page = html(VerifyReport(0, {}, {}, ()))
    assert statuses(page) == ["fail"]
    ElementTree.fromstring(page)


# --- charts ----------------------------------------------------------------------------------------------


def test_bars_stand_on_the_base_line_and_inside_the_drawing() -> None:
    chart = bar_chart(
        [4, 0, 2],
        ["a", "", "c"],
        "three bars",
        titles=["4", "0", "2"],
        kinds=["x"] * 3,
        values_shown=True,
        level=(8, "top"),
    )
    base = chart.lines[0].y1
    assert [bar.y + bar.height for bar in chart.bars] == [base] * 3
    assert chart.bars[0].height == pytest.approx(2 * chart.bars[2].height, abs=0.02)
    assert chart.bars[1].height == 0
    assert all(bar.x >= 0 and bar.x + bar.width <= chart.width and bar.y >= 0 for bar in chart.bars)
    assert [label.text for label in chart.labels] == ["a", "4", "c", "2", "top"]
    assert chart.lines[1].y1 < chart.bars[0].y


def test_empty_charts_are_drawn() -> None:
    assert bar_chart([], [], "none", titles=[], kinds=[]).bars == ()
    assert bar_chart([0], ["a"], "zero", titles=["0"], kinds=["x"]).bars[0].height == 0
