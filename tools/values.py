"""What stands in the arrays of a case: dtypes, kinds of values, and how they are drawn."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .oracle import Array

__all__ = ["DTYPES", "VALUES", "fill"]

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
}

# normal: standard normal. level: each row holds one value in [0.5, 1.5), so that the rounding errors of a
# sum go the same way and a serial fp32 loop over a long row exceeds the bound. special: normal with zeros
# of both signs, subnormals, large values, infinities and NaNs among them, and with NaN in everything that
# must not reach an output.
VALUES = ("normal", "level", "special")

_MANTISSA_BITS = {"f16": 10, "bf16": 7, "f32": 23}

# Large values for each role: f16 takes its largest; the wider types stay where no dot product can reach
# the end of the fp32 range, while gradient times weight does overflow.
_LARGE = {"rows": 2.0**8, "grad": 2.0**100, "weights": 2.0**60}


def fill(rng: np.random.Generator, shape: tuple[int, int], tag: str, values: str, role: str) -> Array:
    """An array of the dtype ``tag`` names, filled as VALUES says."""
    if values == "level":
        level = rng.random(shape if role == "weights" else (shape[0], 1)) + 0.5
        return np.broadcast_to(level, shape).astype(DTYPES[tag])
    array = rng.standard_normal(shape, np.float32).astype(DTYPES[tag])
    if values == "special":
        for row in array.reshape(-1, 1) if role == "weights" else array:
            _sprinkle(rng, row, tag, _LARGE[role])
    return array


def _sprinkle(rng: np.random.Generator, row: Array, tag: str, large: float) -> None:
    """Put special values of one kind into a row: many small ones, a few large, a single infinity or NaN.

    One kind for each row, as one infinity or NaN decides a whole dot product and one large value hides
    the rest.
    """
    places = np.flatnonzero(rng.random(row.size) < 0.2)
    single = rng.integers(row.size, size=1)
    mantissa = _MANTISSA_BITS[tag]
    bits = row.view(f"u{row.itemsize}")
    width = row.itemsize * 8
    sign = rng.integers(2, size=row.size) << (width - 1)
    kind = rng.choice(["none", "small", "large", "infinity", "nan"], p=[0.4, 0.25, 0.15, 0.1, 0.1])
    exponent = (1 << (width - 1)) - (1 << mantissa)
    if kind == "small":  # zero, the least and the greatest subnormal, the least normal
        chosen = rng.choice([0, 1, (1 << mantissa) - 1, 1 << mantissa], size=row.size)
        bits[places] = (chosen | sign)[places]
    elif kind == "large":
        value = np.asarray(65504.0 if tag == "f16" else large, row.dtype)
        row[places] = value * np.where(sign[places], -1, 1).astype(row.dtype)
    elif kind == "infinity":
        bits[single] = exponent | sign[single]
    elif kind == "nan":  # any payload, quiet or signalling
        bits[single] = exponent | sign[single] | rng.integers(1, 1 << mantissa)
