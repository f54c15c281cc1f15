"""What `moegrad verify` found, as data and as JSON."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .checking import Outcome
from .targets import Combination

__all__ = ["BINS", "Failure", "Row", "VerifyReport", "summarise"]

SCHEMA = 1
"""Version of the JSON form; a change that breaks readers raises it."""

BINS = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Upper ends of the error histogram's bins, in units of the bound; what is above the last is a failure."""


@dataclass(frozen=True)
class Failure:
    """A case that failed."""

    case: str
    """Id of the case."""
    message: str
    """What is wrong with it."""


@dataclass(frozen=True)
class Row:
    """All cases of one target and combination."""

    target: str
    operator: str
    mode: str
    data: str
    weight: str | None
    cases: int
    """How many cases were run."""
    model_shapes: int
    """How many of them have the K and H of a specialised kernel."""
    worst_error: float | None
    """Largest error of the weight gradient in units of its bound; None in modes without weights."""
    rows_bitwise: bool
    """Whether every row gradient has the oracle's bits."""
    variants_equal: bool | None
    """Whether every variant gave the same bits; None when there was none to compare."""
    histogram: tuple[int, ...]
    """Cases with weights by their largest error, one count for each of BINS and one for what is above."""
    failures: int
    """How many cases failed."""
    first_failure: Failure | None

    @property
    def passed(self) -> bool:
        """Whether no case failed."""
        return self.failures == 0


@dataclass(frozen=True)
class VerifyReport:
    """The outcome of a run."""

    seed: int
    variants: dict[str, tuple[str, ...]]
    """Target -> names of the variants whose bits were compared."""
    environment: dict[str, Any]
    """Versions, instruction sets and threads; nothing that names the machine."""
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """Whether something was verified and nothing failed."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def cases(self) -> int:
        """Number of cases."""
        return sum(row.cases for row in self.rows)

    @property
    def failures(self) -> int:
        """Number of failed cases."""
        return sum(row.failures for row in self.rows)

    @property
    def worst_error(self) -> float | None:
        """Largest error of any weight gradient in units of its bound; None without weights."""
        return max((row.worst_error for row in self.rows if row.worst_error is not None), default=None)

    def to_json(self) -> str:
        """The report as JSON, the same bytes for the same results.

        An object with
            schema        1
            passed        true when something was verified and nothing failed
            seed, cases, failures
            worst_error   in units of the bound: a number, "inf", or null without weights
            bins          upper ends of the histograms' bins
            variants      {target: [name, ...]}
            environment   {versions, variant, threads, kernels}
            rows          one object for each target and combination, with the attributes of Row and `passed`;
                          weight, worst_error, variants_equal and first_failure may be null, and
                          first_failure is {case, message}
        """
        rows = [asdict(row) | {"passed": row.passed, "worst_error": _number(row.worst_error)} for row in self.rows]
        report = {
            "schema": SCHEMA,
            "passed": self.passed,
            "seed": self.seed,
            "cases": self.cases,
            "failures": self.failures,
            "worst_error": _number(self.worst_error),
            "bins": BINS,
            "variants": self.variants,
            "environment": self.environment,
            "rows": rows,
        }
        return json.dumps(report, indent=1, allow_nan=False) + "\n"


def summarise(
    target: str, combination: Combination, outcomes: Sequence[Outcome], model_shapes: int, variants: bool
) -> Row:
    """The row of a combination from the outcomes of its cases."""
    errors = [outcome.weight_error for outcome in outcomes if outcome.weight_error is not None]
    histogram = [0] * (len(BINS) + 1)
    for error in errors:
        histogram[bisect_left(BINS, error)] += 1
    broken = [Failure(outcome.case, outcome.message) for outcome in outcomes if outcome.message]
    return Row(
        target,
        combination.operator,
        combination.mode,
        combination.data,
        combination.weight,
        len(outcomes),
        model_shapes,
        max(errors, default=None),
        all(outcome.rows_bitwise for outcome in outcomes),
        all(outcome.variants_equal for outcome in outcomes) if variants else None,
        tuple(histogram),
        len(broken),
        broken[0] if broken else None,
    )


def _number(value: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "inf" if value is not None and math.isinf(value) else value
