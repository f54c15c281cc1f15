"""What this installation is: versions, variant, threads and kernels."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from . import _native, kernels, threads

__version__ = "0.1.0"


def get_include() -> str:
    """The folder of the C headers that generated CPU kernels include."""
    spec = find_spec("moegrad.cpu")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("this build of moegrad has no C headers (package moegrad.cpu)")
    return str(Path(next(iter(spec.submodule_search_locations))).resolve())


def show_config(mode: str = "print") -> dict[str, Any] | None:
    """Say which kernels, instruction-set variant and threads are in use, and the versions of what computes.

    mode: "print" writes it as text to standard output and returns None; "dict" returns the same as a
    dictionary. ValueError for another mode. Kernels are counted by loading them all, which takes a moment.
    """
    if mode not in ("print", "dict"):
        raise ValueError(f"show_config: mode: expected 'print' or 'dict', got {mode!r}")
    config = _config()
    if mode == "dict":
        return config
    print("\n".join(_lines(config)))
    return None


def _config() -> dict[str, Any]:
    usable = kernels.usable()
    limit, source = threads.limit()
    return {
        "versions": {
            "moegrad": __version__,
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "ml_dtypes": ml_dtypes.__version__,
        },
        "variant": {
            "used": usable[0] if usable else None,
            "forced": os.environ.get("MOEGRAD_ISA", "").strip() or None,
            "processor": list(_native.cpu_variants()),
            "built": [variant for variant in kernels.VARIANTS if kernels.compiled(variant)],
            "machine": os.uname().machine,
        },
        "threads": {"limit": limit, "from": source, "one_below_bytes": threads.SMALL},
        "cache": {"last_level_bytes": _native.last_level_cache_bytes()},
        "kernels": _count(usable),
    }


def _count(usable: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Numbers of specialised and generic kernels of each module that can be used."""
    names = sorted(set().union(*(kernels.compiled(variant) for variant in usable)))
    counts = {}
    for name in names:
        sizes = [kernels.parse_key(key) for key in kernels.load_module(name).KERNELS]
        generic = sum(None in size for size in sizes)
        counts[name] = {"specialised": len(sizes) - generic, "generic": generic}
    return counts


def _lines(config: dict[str, Any]) -> list[str]:
    variant, limit, counts = config["variant"], config["threads"], config["kernels"]
    forced = f"forced by MOEGRAD_ISA={variant['forced']}" if variant["forced"] else "widest usable"
    total = {kind: sum(count[kind] for count in counts.values()) for kind in ("specialised", "generic")}
    rows = [
        ("versions", "  ".join(f"{name} {version}" for name, version in config["versions"].items())),
        ("variant", f"{variant['used'] or 'none'} ({forced})"),
        ("processor", f"{variant['machine']}, runs {', '.join(variant['processor'])}"),
        ("built", ", ".join(variant["built"]) or "none"),
        (
            "threads",
            f"up to {limit['limit']} ({limit['from']}), one below {limit['one_below_bytes'] >> 10} KiB",
        ),
        ("cache", f"last level {config['cache']['last_level_bytes'] >> 10} KiB"),
        ("kernels", f"{total['specialised']} specialised, {total['generic']} generic:"),
    ]
    width = max(map(len, counts), default=0)
    lines = [f"{name:10} {text}" for name, text in rows]
    return lines + [
        f"  {name:{width}} {count['specialised']:4} specialised {count['generic']:4} generic"
        for name, count in counts.items()
    ]
