"""The specification of one kernel and its name, which parses back.

    finalize_routing_v2_grad__scales_bias__bf16_f32__k8__h7168

Fields: program (operator and mode, or the name of a program file), data dtype and weight dtype
(absent in programs without weights), topK or ``any``, hidden size or ``any``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .dtypes import DTYPES, DType, dtype
from .errors import SpecError

ANY = 0
"""A topK or hidden size that the kernel reads at run time."""

_KEY = re.compile(
    r"(?P<program>[a-z][a-z0-9_]*?)__(?P<data>f16|bf16|f32)(_(?P<weight>f16|bf16|f32))?"
    r"__k(?P<topk>any|[1-9][0-9]*)__h(?P<hidden>any|[1-9][0-9]*)"
)


@dataclass(frozen=True, order=True)
class KernelSpec:
    """Everything that a kernel is specialised for."""

    program: str
    """``operator__mode``, or the name of a program file."""
    data: str
    """Tag of the dtype D of the rows."""
    weight: str = ""
    """Tag of the dtype P of the weights; empty in a program without weights."""
    topk: int = ANY
    """Slots a token; ANY reads it at run time."""
    hidden: int = ANY
    """Elements a row; ANY reads it at run time."""

    def __post_init__(self) -> None:
        for tag in (self.data, *([self.weight] if self.weight else [])):
            if tag not in DTYPES:
                raise SpecError(f"dtype: expected one of {', '.join(DTYPES)}, got {tag!r}")
        for name, value in (("topk", self.topk), ("hidden", self.hidden)):
            if value < 0:
                raise SpecError(f"{name}: expected a positive number, or {ANY} for any, got {value}")
        if _KEY.fullmatch(self.key) is None:
            raise SpecError(f"program: expected a lower-case identifier, got {self.program!r}")

    @property
    def key(self) -> str:
        """The kernel's name; `parse` is its inverse."""
        return f"{self.module}__{self.shape_key}"

    @property
    def module(self) -> str:
        """Name of the extension module that groups all shapes of one program and dtypes."""
        return f"{self.program}__{self.data}" + (f"_{self.weight}" if self.weight else "")

    @property
    def shape_key(self) -> str:
        """``k8__h7168``: the part of the name that tells kernels of one module apart."""
        return f"k{self.topk or 'any'}__h{self.hidden or 'any'}"

    @property
    def data_dtype(self) -> DType:
        """Row of the dtype table for D."""
        return dtype(self.data)

    @property
    def weight_dtype(self) -> DType | None:
        """Row of the dtype table for P, None without weights."""
        return dtype(self.weight) if self.weight else None

    @classmethod
    def parse(cls, key: str) -> KernelSpec:
        """The spec of a kernel's name; SpecError where the name does not follow the grammar."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise SpecError(f"kernel key: expected PROGRAM__D[_P]__kK__hH, got {key!r}")
        size = {name: ANY if match[name] == "any" else int(match[name]) for name in ("topk", "hidden")}
        return cls(match["program"], match["data"], match["weight"] or "", **size)
