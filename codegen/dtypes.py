"""The one dtype table of the project: MLIR, NumPy, C and Cython names of each float type."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute

from .errors import SpecError


@dataclass(frozen=True)
class DType:
    """One floating-point type. All of them accumulate in fp32."""

    tag: str
    """Name in kernel keys and on the command line: f16, bf16 or f32."""
    numpy: str
    """Name of the NumPy dtype (bfloat16 comes from ml_dtypes)."""
    bytes: int
    """Size of one element in bytes."""
    c: str
    """C storage type; 16-bit floats pass as bits."""
    ascendc: str
    """Ascend C element type."""
    mlir: Attribute
    """Builtin MLIR type."""


DTYPES: dict[str, DType] = {
    "f16": DType("f16", "float16", 2, "uint16_t", "half", Float16Type()),
    "bf16": DType("bf16", "bfloat16", 2, "uint16_t", "bfloat16_t", BFloat16Type()),
    "f32": DType("f32", "float32", 4, "float", "float", Float32Type()),
}

F32 = DTYPES["f32"]

ALIASES = {"float16": "f16", "half": "f16", "fp16": "f16", "bfloat16": "bf16", "float32": "f32", "fp32": "f32"}


def dtype(name: str) -> DType:
    """The table row of a tag or a common alias (``float16``, ``fp32``, ...)."""
    row = DTYPES.get(ALIASES.get(name, name))
    if row is None:
        raise SpecError(f"dtype: expected one of {', '.join(DTYPES)}, got {name!r}")
    return row


def from_mlir(type_: Attribute) -> DType | None:
    """The table row of a builtin MLIR float type, or None where the table has none."""
    return next((row for row in DTYPES.values() if row.mlir == type_), None)
