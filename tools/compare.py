"""Hold what a backend returned against the oracle, by the rules of operators.md, section 4.

The row gradient has to agree bit for bit. The weight gradient is an fp32 sum whose order is free, so it
may be off by (H/32 + 12) * 2**-24 * A before its one rounding to P. For a 16-bit P only the rounded value
is seen; what counts then is the distance from the exact sum to the nearest real number that rounds to it.

Two things the relative bound leaves open are settled here, both properties of fp32 itself:

* Underflow. A product below 2**-126 is rounded to a multiple of 2**-149, which costs up to 2**-150 (and
  never more than the product itself) however small A is. The bound grows by min(A, H * 2**-150).
* Overflow. Where A reaches the end of the fp32 range, a partial sum may become infinite in one order and
  not in another. There, an infinity or a NaN is accepted for a finite exact sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .oracle import Array, Expected

__all__ = [
    "Mismatch",
    "accumulator_interval",
    "bits",
    "error_bound",
    "explain",
    "row_grad_matches",
    "row_grad_mismatch",
    "weight_grad_error",
    "weight_grad_mismatch",
]

_Float64 = npt.NDArray[np.float64]

_FLOAT32 = np.dtype(np.float32)

# The value that would follow the largest finite one.
_LIMITS = {np.dtype(np.float16): 2.0**16, np.dtype(ml_dtypes.bfloat16): 2.0**128}

# From here on fp32 rounds to infinity: half a unit past its largest value.
_FLOAT32_OVERFLOW = 2.0**128 - 2.0**103


@dataclass(frozen=True)
class Mismatch:
    """Where an output first differs from the oracle, for messages.

    Attributes:
        name: which output, "row_grad" or "weight_grad".
        reason: what is wrong, one sentence without a full stop.
        count: elements that differ; all of them where shape or dtype differ.
        total: elements compared.
        index: position of the first difference in C order, or None where shape or dtype differ.
    """

    name: str
    reason: str
    count: int
    total: int
    index: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.index is None:
            return f"{self.name}: {self.reason}"
        place = ", ".join(map(str, self.index))
        return f"{self.name}: {self.count} of {self.total} elements differ, first at [{place}]: {self.reason}"


def explain(row_got: Array, weight_got: Array | None, expected: Expected) -> str | None:
    """One line for each output that is wrong, or None when both are right.

    Args:
        row_got: the backend's row gradient.
        weight_got: its gradient of probs / scales, None in modes without weights.
        expected: what the oracle says.
    """
    found = (row_grad_mismatch(row_got, expected), weight_grad_mismatch(weight_got, expected))
    return "\n".join(str(mismatch) for mismatch in found if mismatch is not None) or None


def row_grad_matches(got: Array, expected: Expected, *, copied: bool | None = None) -> bool:
    """Whether the row gradient is the only right one: same shape, dtype and bits.

    Args:
        got: the backend's row gradient.
        expected: what the oracle says.
        copied: True compares NaN payloads too, False lets any NaN equal any NaN. None takes what
            the mode says: modes without weights copy.
    """
    return row_grad_mismatch(got, expected, copied=copied) is None


def row_grad_mismatch(got: Array, expected: Expected, *, copied: bool | None = None) -> Mismatch | None:
    """The first difference of a row gradient, or None. Arguments as for row_grad_matches."""
    want = expected.row_grad
    if reason := _layout_reason(got, want):
        return Mismatch("row_grad", reason, want.size, want.size)
    wrong = bits(got) != bits(want)
    if not (expected.copied if copied is None else copied):
        wrong &= ~(_is_nan(got) & _is_nan(want))
    if not wrong.any():
        return None
    first = _first(wrong)
    reason = f"expected {_show(want[first])}, got {_show(got[first])}"
    return Mismatch("row_grad", reason, int(wrong.sum()), wrong.size, first)


def weight_grad_error(got: Array | None, expected: Expected) -> float:
    """The largest error of a weight gradient in units of its bound: at most 1.0 is right.

    Args:
        got: the backend's gradient of probs / scales, None in modes without weights.
        expected: what the oracle says.

    Returns:
        0.0 for an empty array and for None where None is due. Infinity where shape or dtype differ,
        where a NaN or an infinity is missing or unexpected, and for any error where the bound is 0.
    """
    if _layout_reason(got, expected.weight_grad):
        return float("inf")
    if got is None or got.size == 0:
        return 0.0
    return float(_weight_errors(got, expected).max())


def weight_grad_mismatch(got: Array | None, expected: Expected) -> Mismatch | None:
    """The first weight gradient beyond its bound, or None. Arguments as for weight_grad_error."""
    want = expected.weight_grad
    if reason := _layout_reason(got, want):
        total = 0 if want is None else want.size
        return Mismatch("weight_grad", reason, total, total)
    if got is None or want is None or got.size == 0:
        return None
    errors = _weight_errors(got, expected)
    wrong = errors > 1.0
    if not wrong.any():
        return None
    first = _first(wrong)
    reason = f"expected {_show(want[first])}, got {_show(got[first])}, off by {errors[first]:.3g} bounds"
    return Mismatch("weight_grad", reason, int(wrong.sum()), wrong.size, first)


def error_bound(expected: Expected) -> _Float64:
    """How far each accumulated weight gradient may be from the exact one, shape of the weights, float64.

    (H/32 + 12) * 2**-24 * A of operators.md, section 4, plus what fp32 underflow can cost (see the
    module's docstring).

    Raises:
        ValueError: the mode has no weights.
    """
    magnitude = expected.magnitude
    if magnitude is None:
        raise ValueError("expected a mode with weights, got one without")
    relative = (expected.hidden / 32 + 12) * 2.0**-24
    return relative * magnitude + np.minimum(magnitude, expected.hidden * 2.0**-150)


def accumulator_interval(rounded: Array) -> tuple[_Float64, _Float64]:
    """The least and the greatest fp32 accumulator that each result can have been rounded from.

    fp32 results are their own accumulators, except that infinity stands for everything that overflows.
    A 16-bit result stands for all reals between the midpoints to its neighbours: ends included, since
    a tie belongs to one of the two and everything next to it to the other.

    Args:
        rounded: float16, bfloat16 or float32, any shape.

    Returns:
        Two float64 arrays of that shape; NaN for NaN.
    """
    size = np.abs(rounded)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        exact = size.astype(np.float64)
    infinite = np.isinf(exact)
    if rounded.dtype == _FLOAT32:
        low, high = np.where(infinite, _FLOAT32_OVERFLOW, exact), exact
    else:
        zero, infinity = np.zeros((), rounded.dtype), np.full((), np.inf, rounded.dtype)
        limit = _LIMITS[rounded.dtype]
        with np.errstate(all="ignore"):
            below = np.nextafter(size, zero).astype(np.float64)
            above = np.nextafter(size, infinity).astype(np.float64)
        high = np.where(infinite, np.inf, (exact + np.minimum(above, limit)) / 2)
        low = np.where(exact == 0, -high, (below + np.minimum(exact, limit)) / 2)
    negative = np.signbit(rounded)
    return np.where(negative, -high, low), np.where(negative, -low, high)


def _weight_errors(got: Array, expected: Expected) -> _Float64:
    """Error of each weight gradient in units of its bound; layout is checked by the caller."""
    exact, magnitude = expected.weight_grad_exact, expected.magnitude
    if exact is None or magnitude is None:
        raise ValueError("expected a mode with weights, got one without")
    with np.errstate(all="ignore"):
        low, high = accumulator_interval(got)
        bound = error_bound(expected)
        distance = np.maximum(np.maximum(low - exact, exact - high), 0.0)
        errors = np.where(distance == 0, 0.0, distance / bound)
        may_overflow = magnitude + bound >= _FLOAT32_OVERFLOW
        got64 = got.astype(np.float64)
    errors = np.where(np.isnan(got64), np.inf, errors)
    errors = np.where(may_overflow & ~np.isfinite(got64), 0.0, errors)
    same = (np.isnan(got64) & np.isnan(exact)) | (got64 == exact)
    return np.where(np.isfinite(exact), errors, np.where(same, 0.0, np.inf))


def _layout_reason(got: Array | None, want: Array | None) -> str | None:
    """Why two arrays cannot be compared element by element, or None."""
    if _layout(got) == _layout(want):
        return None
    return f"expected {_layout(want)}, got {_layout(got)}"


def _layout(array: Array | None) -> str:
    return "None" if array is None else f"{array.dtype}{list(array.shape)}"


def bits(array: Array) -> npt.NDArray[Any]:
    """The elements as unsigned integers of their size, which tell NaNs and zeros apart."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _is_nan(array: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return np.isnan(array)


def _first(wrong: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _show(value: Any) -> str:
    """A value with its bits, which tell NaNs and zeros apart."""
    return f"{float(value)!r} (0x{np.asarray(value).tobytes()[::-1].hex()})"
