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
    graph: str
    """Name of its data type in operator definitions and in macros of kernel compilations."""
    mlir: Attribute
    """Builtin MLIR type."""

    @property
    def narrow(self) -> bool:
        """Whether it is widened to fp32 before anything is computed."""
        return self.bytes < F32.bytes


DTYPES: dict[str, DType] = {
    "f16": DType("f16", "float16", 2, "uint16_t", "half", "DT_FLOAT16", Float16Type()),
    "bf16": DType("bf16", "bfloat16", 2, "uint16_t", "bfloat16_t", "DT_BF16", BFloat16Type()),
    "f32": DType("f32", "float32", 4, "float", "float", "DT_FLOAT", Float32Type()),
}

F32 = DTYPES["f32"]


@dataclass(frozen=True)
class Storage:
    """An element type as memory holds it: a float type, an index or a byte."""

    tag: str
    numpy: str
    bytes: int
    ascendc: str
    narrow: bool = False
    """Whether it is a float that is widened to fp32."""


STORAGE: dict[str, Storage] = {
    **{tag: Storage(tag, row.numpy, row.bytes, row.ascendc, row.narrow) for tag, row in DTYPES.items()},
    "i32": Storage("i32", "int32", 4, "int32_t"),
    "u8": Storage("u8", "uint8", 1, "uint8_t"),
}
"""Tag -> element type: those of the table, i32 of indices, u8 of marks."""

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


def storage(type_: Attribute) -> Storage:
    """The element type of a tensor of a lowered program: a float of the table, or else an index."""
    row = from_mlir(type_)
    return STORAGE[row.tag if row else "i32"]
