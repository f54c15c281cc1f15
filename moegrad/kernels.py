"""Finding the compiled kernel of a mode, its dtypes and its sizes.

Kernels are modules `moegrad.generated.cython.<variant>.<operator>__<mode>__<dtypes>`, each with the kernels
of all its (K, H): specialised ones and a generic one for everything else. A variant is an instruction set.
The widest one that the processor runs and the build has is used; MOEGRAD_ISA forces one. Modules are imported
when first needed.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

from . import _native
from .contract import Operator

VARIANTS = ("avx512", "avx2", "baseline")
"""All instruction-set variants, widest first; baseline is what every processor of the architecture runs."""

PACKAGE = "moegrad.generated.cython"
KEY = re.compile(r"k(\d+|any)__h(\d+|any)")


class Kernels(NamedTuple):
    """The kernels of one mode and its dtypes.

    `tensors` are positions of a kernel's arguments, in its order, among (*inputs, *outputs) of the operator;
    `sizes` are the symbols of its sizes. Kernels are capsules for `_native.launch`.
    """

    specialised: dict[tuple[int, int], object]
    generic: object
    tensors: tuple[int, ...]
    sizes: tuple[str, ...]


_loaded: dict[tuple[str, str, str, str, str], Kernels] = {}
forced_variant = ""
"""What `forced` asks for; "" leaves it to `usable`."""


def find(op: Operator, mode: str, data: str, weight: str, variant: str = "") -> Kernels:
    """The kernels of `mode` of `op` for the dtype tags `data` and `weight` ("" without weights), of one variant or any.

    ImportError when this build has none, RuntimeError or ValueError for a MOEGRAD_ISA that cannot be
    honoured.
    """
    key = (op.name, mode, data, weight, variant)
    found = _loaded.get(key)
    if found is None:
        found = _loaded[key] = _load(op, op.kernels[mode] + "__" + "_".join(filter(None, (data, weight))), variant)
    return found


def _load(op: Operator, name: str, variant: str) -> Kernels:
    module = load_module(name, variant)
    positions = {row.tensor: i for i, row in enumerate((*op.inputs, *op.outputs))}
    positions |= {row.name: i for i, row in enumerate((*op.inputs, *op.outputs))}
    specialised, generic = {}, None
    for key, capsule in module.KERNELS.items():
        topk, hidden = parse_key(key)
        if topk is not None and hidden is not None:
            specialised[topk, hidden] = capsule
        else:
            generic = capsule
    if generic is None:
        raise ImportError(f"{module.__name__}: expected a generic kernel, got {', '.join(module.KERNELS)}")
    tensors = tuple([positions[tensor] for tensor in module.TENSORS])
    return Kernels(specialised, generic, tensors, tuple(module.SIZES))


def parse_key(key: str) -> tuple[int | None, int | None]:
    """(K, H) of a key such as `k8__h7168`; None for `any`."""
    match = KEY.fullmatch(key)
    if match is None:
        raise ImportError(f"a kernel's key: expected k<K>__h<H>, got {key!r}")
    topk, hidden = (None if part == "any" else int(part) for part in match.groups())
    return topk, hidden


def load_module(name: str, variant: str = "") -> Any:
    """Import module `name` of `variant`, or of the widest usable one that has it."""
    for each in (variant,) if variant else usable():
        if name in compiled(each):
            return importlib.import_module(f"{PACKAGE}.{each}.{name}")
    raise ImportError(
        f"no compiled kernel {name} in this build of moegrad (variants: {', '.join(usable())}); "
        "build one with `pip install .` in a checkout"
    )


@contextmanager
def forced(variant: str) -> Iterator[None]:
    """Runs the kernels of one variant only: for verification, which compares variants in one process."""
    global forced_variant
    before, forced_variant = forced_variant, variant
    try:
        yield
    finally:
        forced_variant = before


@cache
def usable() -> tuple[str, ...]:
    """The variants to look in, widest first: what the processor runs and the build has, or the forced one."""
    runs = _native.cpu_variants()
    forced = os.environ.get("MOEGRAD_ISA", "").strip()
    if not forced:
        return tuple([variant for variant in runs if compiled(variant)])
    if forced not in VARIANTS:
        raise ValueError(f"MOEGRAD_ISA: expected one of {', '.join(VARIANTS)}, got {forced!r}")
    if forced not in runs:
        raise RuntimeError(f"MOEGRAD_ISA: expected a variant this processor runs ({', '.join(runs)}), got {forced!r}")
    if not compiled(forced):
        built = [variant for variant in VARIANTS if compiled(variant)]
        raise RuntimeError(f"MOEGRAD_ISA: expected a variant of this build ({', '.join(built)}), got {forced!r}")
    return (forced,)


@cache
def compiled(variant: str) -> frozenset[str]:
    """Names of the kernel modules that this build has for `variant`; empty when it was not built."""
    try:
        package = importlib.import_module(f"{PACKAGE}.{variant}")
    except ModuleNotFoundError:
        return frozenset()
    files = [file.name for folder in map(Path, package.__path__) if folder.is_dir() for file in folder.iterdir()]
    return frozenset(name.partition(".")[0] for name in files if name.endswith(tuple(EXTENSION_SUFFIXES)))
