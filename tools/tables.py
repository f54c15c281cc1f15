"""Reports on a terminal."""

from __future__ import annotations

import itertools

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .results import Row, VerifyReport

__all__ = ["error_text", "render", "summary", "yes_no"]


def render(report: VerifyReport, console: Console) -> None:
    """A table for each target and operator, every row's first failure, and one line that sums up."""
    for (target, operator), rows in itertools.groupby(report.rows, lambda row: (row.target, row.operator)):
        console.print(_table(f"{target}: {operator}", list(rows)))
    if report.failures:
        console.print("[bold red]First failure of each row[/]")
    for row in report.rows:
        if row.first_failure is not None:
            more = f" and {row.failures - 1} more" if row.failures > 1 else ""
            console.print(f"[red]{escape(row.first_failure.case)}[/]{more}", soft_wrap=True)
            console.print(escape(row.first_failure.message), soft_wrap=True)
    colour = "green" if report.passed else "bold red"
    console.print(f"[{colour}]{summary(report)}[/]", soft_wrap=True)


def summary(report: VerifyReport) -> str:
    """One sentence: what was verified and how it went."""
    verdict = "all agree with the oracle" if report.passed else f"{report.failures} FAILED"
    worst = report.worst_error
    text = f"{report.cases} cases in {len(report.rows)} combinations: {verdict}"
    if worst is not None:
        text += f"; largest error of a weight gradient {error_text(worst)} of its bound"
    return text + f" (seed {report.seed})"


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("mode", "D", "P"):
        table.add_column(name, no_wrap=True)
    for name in ("cases", "model\nshapes", "error\n/ bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("rows\nbitwise", "variants\nequal", "result"):
        table.add_column(name, no_wrap=True)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].mode != row.mode
        table.add_row(
            row.mode,
            row.data,
            row.weight or "-",
            str(row.cases),
            str(row.model_shapes),
            error_text(row.worst_error),
            _coloured(row.rows_bitwise),
            "-" if row.variants_equal is None else _coloured(row.variants_equal),
            "[green]ok[/]" if row.passed else f"[bold red]{row.failures} FAILED[/]",
            end_section=last,
        )
    return table


def error_text(error: float | None) -> str:
    """An error in units of its bound; a dash where there are no weights."""
    return "-" if error is None else f"{error:.3f}"


def yes_no(value: bool) -> str:
    """A truth as a word; a bad one is loud."""
    return "yes" if value else "NO"


def _coloured(value: bool) -> str:
    return f"[{'green' if value else 'bold red'}]{yes_no(value)}[/]"
