"""The Ascend chips: what each of them has, and which kernels it can run, as data.

Sizes are what the host query of the toolkit returns. `supports` lists, for every vector or move
interface that a generated kernel may call, the element types of its operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import SpecError

MOVE, REDUCTION, CAST = "DataCopyPad", "WholeReduceSum", "Cast"
"""Interfaces that the plan asks for; the printers ask for each one they issue."""

_ALL = ("f16", "bf16", "f32")

_SUPPORT_2201: Mapping[str, tuple[str, ...]] = {
    MOVE: (*_ALL, "i32"),
    "DataCopy": (*_ALL, "i32"),
    CAST: ("f16", "bf16"),
    **dict.fromkeys(("Add", "Sub", "Mul", "Muls"), ("f16", "f32")),
    REDUCTION: ("f16", "f32"),
}

_SUPPORT_3510: Mapping[str, tuple[str, ...]] = {
    **_SUPPORT_2201,
    **dict.fromkeys(("Add", "Sub", "Mul", "Muls"), _ALL),
}


@dataclass(frozen=True)
class Chip:
    """One chip that kernels are planned and emitted for."""

    name: str
    """As ``--chip`` and the operator package's configuration spell it."""
    products: str
    vector_cores: int
    """AIV cores; the tiling function asks the platform and takes what it finds."""
    ub_bytes: int
    """Unified Buffer of one AIV core that a kernel may use, as ``GetCoreMemSize`` returns it."""
    reserved_bytes: int
    """At the end of it, what a few interfaces use for themselves. Kernels call none of those; plans keep off all the
    same."""
    arch: int
    """``__NPU_ARCH__``"""
    supports: Mapping[str, tuple[str, ...]]
    """Interface -> tags of the element types it takes; of Cast, the type that is cast from or to fp32."""
    topk_limit: int | None
    """Slots a token that the operator pages allow; None where they set no limit, so that UB alone does."""

    @property
    def plan_bytes(self) -> int:
        """Unified Buffer that a plan may use."""
        return self.ub_bytes - self.reserved_bytes

    @property
    def vector_barriers(self) -> bool:
        """Whether a vector instruction that needs an earlier one's result needs a barrier; 3510 orders them itself."""
        return self.arch == 2201


def _chip(name: str, products: str, cores: int) -> Chip:
    return Chip(name, products, cores, 196352, 8192, 2201, _SUPPORT_2201, 512)


def _chip_950(name: str, products: str, cores: int) -> Chip:
    return Chip(name, products, cores, 253952, 0, 3510, _SUPPORT_3510, None)


CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        _chip("ascend910b", "Atlas A2, any bin", 48),
        _chip("ascend910b1", "Atlas A2, bin B1", 48),
        _chip("ascend910b2", "Atlas A2, bin B2", 48),
        _chip("ascend910b3", "Atlas A2, bin B3", 40),
        _chip("ascend910b4", "Atlas A2, bin B4", 40),
        _chip("ascend910_93", "Atlas A3, one die", 48),
        _chip_950("ascend950", "Ascend 950, any bin", 64),
        _chip_950("ascend950pr_957b", "Ascend 950PR, 957b", 56),
        _chip_950("ascend950pr_958x", "Ascend 950PR, 958x", 64),
    )
}

ALIASES = {"a2": "ascend910b", "a3": "ascend910_93", "950": "ascend950", "ascend910_95": "ascend950"}

DEFAULT_CHIP = "ascend910b"

FAMILIES = ("ascend910b", "ascend910_93", "ascend950")
"""One chip of each product line."""

UNABLE: dict[str, str] = {
    "ascend910": "has no DataCopyPad, so rows that are not a multiple of 32 bytes cannot be moved, and no bfloat16",
    "ascend910a": "has no DataCopyPad, so rows that are not a multiple of 32 bytes cannot be moved, and no bfloat16",
    "ascend310p": "has no DataCopyPad, so rows that are not a multiple of 32 bytes cannot be moved, and no bfloat16",
    "ascend310b": "has no DataCopyPad with byte lengths for every element type, and no bfloat16",
}
"""Chips that are known and cannot run the kernels -> what is missing."""


def chip(name: str) -> Chip:
    """The chip of that name or alias; SpecError says what an unable chip lacks, or lists the known ones."""
    lower = name.lower()
    lower = ALIASES.get(lower, lower)
    if lower in CHIPS:
        return CHIPS[lower]
    if lower in UNABLE:
        raise SpecError(f"chip: {name} {UNABLE[lower]}; expected one of {', '.join(CHIPS)}")
    raise SpecError(f"chip: expected one of {', '.join(CHIPS)} (aliases {', '.join(ALIASES)}), got {name!r}")


def require(chip_: Chip, interface: str, tag: str) -> None:
    """SpecError where an interface of the chip does not take an element type."""
    known = ", ".join(chip_.supports.get(interface, ("none",)))
    if tag not in chip_.supports.get(interface, ()):
        raise SpecError(f"chip: {chip_.name}: {interface}: expected an element type of {known}, got {tag}")
