"""Bar charts as geometry: everything that a template needs to write SVG without arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Bar", "BarChart", "Label", "Line", "bar_chart"]

_TOP, _BOTTOM = 18.0, 24.0
"""Room above the bars for a note, below them for names, in SVG units."""


@dataclass(frozen=True)
class Bar:
    """A rectangle with a tooltip."""

    x: float
    y: float
    width: float
    height: float
    title: str
    kind: str
    """CSS class."""


@dataclass(frozen=True)
class Label:
    """A text; `anchor` is SVG's text-anchor."""

    x: float
    y: float
    text: str
    anchor: str
    kind: str
    """CSS class."""


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str
    """CSS class."""


@dataclass(frozen=True)
class BarChart:
    """A drawing with its size and what it shows in one sentence."""

    width: float
    height: float
    summary: str
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]


def bar_chart(
    values: Sequence[float],
    names: Sequence[str],
    summary: str,
    *,
    titles: Sequence[str],
    kinds: Sequence[str],
    values_shown: bool = False,
    level: tuple[float, str] | None = None,
    size: tuple[float, float] = (320.0, 150.0),
) -> BarChart:
    """Upright bars over a base line.

    Args:
        values: heights, not negative.
        names: below the bars; empty ones are left out.
        summary: what the chart shows, for those who do not see it.
        titles: tooltip of each bar.
        kinds: CSS class of each bar.
        values_shown: write each value over its bar, except zeros.
        level: a horizontal line at this value, with its name.
        size: width and height in SVG units.
    """
    width, height = size
    base = height - (_BOTTOM if any(names) else 2.0)
    top = max([*values, level[0] if level else 0.0, 1e-9])
    step = width / max(len(values), 1)
    gap = min(step * 0.2, 6.0)
    bars, labels = [], []
    for number, (value, name, title, kind) in enumerate(zip(values, names, titles, kinds, strict=True)):
        tall = (base - _TOP) * value / top
        bars.append(Bar(_r(number * step + gap / 2), _r(base - tall), _r(step - gap), _r(tall), title, kind))
        middle = _r((number + 0.5) * step)
        if name:
            labels.append(Label(middle, _r(base + 14), name, "middle", "name"))
        if values_shown and value:
            labels.append(Label(middle, _r(base - tall - 4), f"{value:g}", "middle", "value"))
    lines = [Line(0.0, _r(base), _r(width), _r(base), "axis")]
    if level is not None:
        at = _r(base - (base - _TOP) * level[0] / top)
        lines.append(Line(0.0, at, _r(width), at, "level"))
        labels.append(Label(_r(width), _r(at - 4), level[1], "end", "value"))
    return BarChart(width, height, summary, tuple(bars), tuple(lines), tuple(labels))


def _r(value: float) -> float:
    """Rounded to what a screen can show, so that pages stay small."""
    return round(value, 2)
