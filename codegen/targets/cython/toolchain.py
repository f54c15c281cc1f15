"""Compiler flags of the CPU target, the same for wheels and for single kernels."""

from __future__ import annotations

import platform
from importlib.resources import files
from pathlib import Path

BASE_FLAGS = ("-O3", "-g0", "-fopenmp", "-ffp-contract=off", "-Wno-unused-function")
"""No contraction to FMA and no fast-math: bits are the same on every instruction set."""

LINK_FLAGS = ("-fopenmp", "-s")
"""Without symbols: a wheel holds about a hundred modules."""

ISA_FLAGS: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma", "-mf16c"),
}
"""Variant -> its flags beyond the portable baseline of the machine's architecture."""


def isa_variants() -> list[str]:
    """The variants that this machine's compiler can make: all on x86-64, the baseline elsewhere."""
    return list(ISA_FLAGS) if platform.machine().lower() in ("x86_64", "amd64") else ["baseline"]


def include_dir() -> Path:
    """Folder of the C headers that kernels include."""
    return Path(str(files("moegrad.cpu").joinpath("moegrad_kernel.h"))).parent
