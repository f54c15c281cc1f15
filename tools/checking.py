"""One case on one target, held against the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cases import Case
from .compare import bits, explain, row_grad_matches, weight_grad_error
from .oracle import Array
from .targets import Outputs, Runner, Target

__all__ = ["Outcome", "check", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What came of one case."""

    case: str
    """Id of the case."""
    rows_bitwise: bool
    """Whether the row gradient has the oracle's bits."""
    weight_error: float | None
    """Largest error of the weight gradient in units of its bound; None without weights or without a result."""
    variants_equal: bool
    """Whether every variant gave the same bits."""
    message: str
    """What is wrong; empty when nothing is."""


def check(target: Target, case: Case, variants: bool = True) -> Outcome:
    """Runs a case, on each variant too, and compares; whatever it raises is the case's failure."""
    try:
        return _check(target, case, variants)
    except Exception as error:
        return failed(case, f"{type(error).__name__}: {error}")


def failed(case: Case, message: str) -> Outcome:
    """The outcome of a case that gave no result."""
    return Outcome(case.id, False, None, False, message)


def _check(target: Target, case: Case, variants: bool) -> Outcome:
    expected = case.expected()
    row, weight = target.run(case)
    problems = [explain(row, weight, expected) or ""]
    others = target.variants() if variants else {}
    differences = [_difference(name, run, case, (row, weight)) for name, run in others.items()]
    return Outcome(
        case.id,
        row_grad_matches(row, expected),
        weight_grad_error(weight, expected) if case.has_weights else None,
        not any(differences),
        "\n".join(filter(None, problems + differences)),
    )


def _difference(name: str, run: Runner, case: Case, want: Outputs) -> str:
    """One line when a variant fails or differs from the target's own result, otherwise empty."""
    try:
        got = run(case)
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"
    outputs = ("row_grad", "weight_grad")
    pairs = zip(outputs, got, want, strict=True)
    wrong = [output for output, left, right in pairs if not _same_bits(left, right, copied=not case.has_weights)]
    return f"{name}: other bits in {' and '.join(wrong)}" if wrong else ""


def _same_bits(left: Array | None, right: Array | None, copied: bool) -> bool:
    """Whether two outputs agree to the last bit.

    Where values are copied that includes NaN payloads. Where they are computed any NaN equals any NaN, since
    IEEE 754 leaves open which operand's payload survives, and processors differ in that.
    """
    if left is None or right is None:
        return left is right
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    with np.errstate(invalid="ignore"):  # signalling NaNs
        same = bits(left) == bits(right)
        both_nan = np.isnan(left) & np.isnan(right)
    return bool((same if copied else same | both_nan).all())
