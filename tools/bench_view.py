"""Benchmark reports for people: a table on the terminal, a roofline and bars as a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..codegen.errors import MoegradError
from .bench import LIMITS, NOISY, Report, Result

PEERS = ("numpy", "numba", "torch.compile", "torch eager")
_COLOURS = {"plain": "#2f6f9f", "scales": "#3f8f5f", "scales_bias": "#b5722c"}
_MARKS = {"f32": "o", "bf16": "s", "f16": "^"}


def render(report: Report, console: Console) -> None:
    """The table, and a note where the machine was too noisy."""
    table = Table("kernel", title=f"finalize_routing_v2_grad on {report.threads} threads", box=None)
    present = _present(report)
    table.add_column("T,K,H", no_wrap=True)
    for column in (
        "GB/s",
        *(f"of\n{limit}" for limit in LIMITS),
        *(f"x\n{peer}".replace(".", "\n").replace(" ", "\n") for peer in present),
    ):
        table.add_column(column, justify="right")
    for result in report.results:
        setting = result.setting
        ratios = [result.speedup(peer) for peer in present]
        table.add_row(
            f"{setting.mode} {setting.data if not setting.weight else f'{setting.data}/{setting.weight}'}",
            f"{setting.tokens},{setting.topk},{setting.hidden}",
            f"{result.gigabytes_per_second:.1f}",
            *("-" if share is None else f"{share:.2f}" for share in map(result.share_of, LIMITS)),
            *("-" if ratio is None else f"{ratio:.1f}" for ratio in ratios),
        )
    console.print(table)
    console.print(
        "of copy: share of a streaming copy of as many bytes. of traffic: of the same reads and writes in order. "
        "of rows: of a copy of the slots' rows, row by row. x peer: how many times as long the peer takes."
    )
    if report.noisy:
        worst = max(result.spread for result in report.results)
        console.print(
            f"[bold]This machine is too noisy to trust these figures:[/bold] the copy's times spread by {worst:.0%} of "
            f"their median (quiet: below {NOISY:.0%}). Run again when nothing else runs."
        )


def _present(report: Report) -> list[str]:
    return [peer for peer in PEERS if any(peer in result.seconds for result in report.results)]


def plot(report: Report, path: Path) -> None:
    """A roofline, and a bar for each setting's share of the copy limit; the format follows the file's ending."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MoegradError("bench --plot: needs matplotlib; pip install 'moegrad[report]'") from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (roof, bars) = plt.subplots(1, 2, figsize=(13, 0.28 * len(report.results) + 4), layout="constrained")
    _roofline(report, roof)
    labels = [result.setting.label for result in report.results]
    shares = [result.share for result in report.results]
    colours = [_COLOURS[result.setting.mode] for result in report.results]
    bars.barh(labels, shares, color=colours)
    bars.axvline(1, color="#333333", linewidth=1)
    bars.invert_yaxis()
    bars.set_xlabel("share of the copy limit (1 = a streaming copy of as many bytes)")
    bars.bar_label(bars.containers[0], fmt="%.2f", padding=3)
    bars.set_xlim(0, max(1.15, *shares) + 0.1)
    figure.suptitle(f"moegrad, {report.threads} threads" + (" (noisy machine)" if report.noisy else ""))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _roofline(report: Report, axes: object) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    limit = max(result.bytes_moved / result.seconds["copy"] for result in report.results) / 1e9
    for result in report.results:
        intensity, rate = (
            _operations(result) / result.bytes_moved,
            _operations(result) / result.seconds["moegrad"] / 1e9,
        )
        mark, colour = _MARKS[result.setting.data], _COLOURS[result.setting.mode]
        axes.scatter(intensity, rate, marker=mark, color=colour, label=f"{result.setting.mode} {result.setting.data}")
    span = [0.02, 2.0]
    axes.plot(span, [limit * x for x in span], color="#333333", linewidth=1, label=f"copy limit {limit:.0f} GB/s")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("fp32 operations per byte moved")
    axes.set_ylabel("10^9 operations per second")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), fontsize="small")


def _operations(result: Result) -> int:
    """fp32 operations of a setting: one product an element scaled, two an element of a dot, one of a bias.

    A copy counts as one, so that it has a place on the roofline.
    """
    setting = result.setting
    elements = setting.tokens * setting.topk * setting.hidden
    return elements * {"plain": 1, "scales": 3, "scales_bias": 4}[setting.mode]
