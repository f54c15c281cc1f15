"""One self-contained HTML page from a verification and, where there is one, the demonstration's results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2

from .charts import BarChart, bar_chart
from .measure import ModelResult, ModeRun
from .results import BINS, Row, VerifyReport
from .tables import error_text, summary, yes_no

__all__ = ["html", "write_report"]


@dataclass(frozen=True)
class Group:
    """The rows of one mode, which share a heading."""

    mode: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Matrix:
    """The modes of one operator on one target."""

    target: str
    operator: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class ModelView:
    """A model's results with its chart, its runs by operator, and the largest time ratio among them."""

    result: ModelResult
    loads: BarChart
    runs: tuple[tuple[str, tuple[ModeRun, ...]], ...]
    largest: float

    def share(self, run: ModeRun) -> float:
        """Length of a run's ratio bar, 0 to 1."""
        return run.ratio / self.largest if self.largest else 0.0


def write_report(path: Path, report: VerifyReport, results: Sequence[ModelResult] = ()) -> None:
    """Writes the page to `path`, whose folder is made when it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(report, results), encoding="utf-8", newline="\n")


def html(report: VerifyReport, results: Sequence[ModelResult] = ()) -> str:
    """The page: no scripts, nothing to load, well-formed as XML too."""
    return _template().render(
        report=report,
        passed=report.passed and all(result.passed for result in results),
        summary=summary(report),
        tiles=_tiles(report),
        matrices=_matrices(report),
        histograms=_histograms(report),
        models=[_model_view(result) for result in results],
        environment=_environment(report),
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    environment.filters |= {"error": error_text, "yes_no": yes_no, "percent": _percent}
    return environment.from_string(files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8"))


def _percent(share: float | None) -> float:
    """A share as per cent of a bar's length, 0 to 100."""
    return round(100 * min(max(share or 0.0, 0.0), 1.0), 1)


def _tiles(report: VerifyReport) -> list[tuple[str, str]]:
    variants = dict.fromkeys(itertools.chain.from_iterable(report.variants.values()))
    return [
        (str(report.cases), "cases"),
        (str(len(report.rows)), "combinations of operator, mode, D and P"),
        (str(sum(row.model_shapes for row in report.rows)), "cases of specialised kernels"),
        (error_text(report.worst_error), "largest error of a weight gradient, in units of its bound"),
        (str(len(variants)), "variants compared bit by bit" + (": " if variants else "") + ", ".join(variants)),
        (str(report.failures), "failures"),
    ]


def _matrices(report: VerifyReport) -> list[Matrix]:
    matrices = []
    for (target, operator), rows in itertools.groupby(report.rows, lambda row: (row.target, row.operator)):
        modes = itertools.groupby(rows, lambda row: row.mode)
        matrices.append(Matrix(target, operator, tuple(Group(mode, tuple(members)) for mode, members in modes)))
    return matrices


def _histograms(report: VerifyReport) -> list[tuple[str, BarChart]]:
    """A histogram of the cases' largest errors for each P that was verified."""
    names = ["0", *(f"1/{round(1 / edge)}" for edge in BINS[1:-1]), "1", "more"]
    intervals = ["exact", *(f"up to {name}" for name in names[1:-1]), "beyond the bound"]
    kinds = ["good"] * len(BINS) + ["bad"]
    charts = []
    for weight in dict.fromkeys(row.weight for row in report.rows if row.weight is not None):
        counts = [sum(column) for column in zip(*(r.histogram for r in report.rows if r.weight == weight), strict=True)]
        titles = [f"{count} cases {interval}" for count, interval in zip(counts, intervals, strict=True)]
        text = f"Cases with {weight} weights by largest error: " + ", ".join(titles)
        charts.append((weight, bar_chart(counts, names, text, titles=titles, kinds=kinds, values_shown=True)))
    return charts


def _model_view(result: ModelResult) -> ModelView:
    loads = sorted(result.loads, reverse=True)
    mean = sum(loads) / len(loads)
    chart = bar_chart(
        loads,
        [""] * len(loads),
        f"Slots of each expert, busiest first: {loads[0]} down to {loads[-1]}, mean {mean:.0f}",
        titles=[f"{load} slots" for load in loads],
        kinds=["over" if load > result.capacity else "good" for load in loads],
        level=(result.capacity, f"capacity {result.capacity}"),
        size=(740.0, 120.0),
    )
    groups = itertools.groupby(result.runs, lambda run: run.operator)
    largest = max((run.ratio for run in result.runs), default=0.0)
    return ModelView(result, chart, tuple((operator, tuple(runs)) for operator, runs in groups), largest)


def _environment(report: VerifyReport) -> list[tuple[str, str]]:
    """Names and values of what the results depend on."""
    found = report.environment
    pairs = list(found.get("versions", {}).items())
    if variant := found.get("variant"):
        forced = " (forced by MOEGRAD_ISA)" if variant["forced"] else ""
        pairs += [
            ("machine", variant["machine"]),
            ("instruction set", f"{variant['used'] or 'none'}{forced}"),
            ("processor runs", ", ".join(variant["processor"])),
            ("built", ", ".join(variant["built"])),
        ]
    if limit := found.get("threads"):
        pairs.append(("threads", f"up to {limit['limit']} ({limit['from']})"))
    if counts := found.get("kernels"):
        pairs.append(("kernels", f"{counts['specialised']} specialised, {counts['generic']} generic"))
    return [*pairs, ("seed", str(report.seed))]
