"""How many threads a kernel may use.

MOEGRAD_NUM_THREADS decides, then OMP_NUM_THREADS, then the processors this process may run on; both variables
are read once. Small work stays on the calling thread, and so does all work in a forked child: the pool of
OpenMP threads does not survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SMALL = 1 << 20
"""Calls that touch fewer bytes than this use one thread: starting more costs what they would save."""

MOST = 1024
"""No call uses more threads, whatever the variables say: a system that cannot start them ends the process."""

_limit: tuple[int, str] | None = None
_small = SMALL


def limit() -> tuple[int, str]:
    """The largest number of threads, and what set it. ValueError when MOEGRAD_NUM_THREADS is no number."""
    global _limit
    if _limit is None:
        _limit = _read_limit()
    return _limit


def for_bytes(count: int) -> int:
    """Threads for a call that touches `count` bytes."""
    return 1 if count < _small else limit()[0]


@contextmanager
def forced(count: int) -> Iterator[None]:
    """Uses `count` threads whatever the size of a call: for verification, which compares thread counts."""
    global _limit, _small
    before = _limit, _small
    _limit, _small = (count, "forced"), 0
    try:
        yield
    finally:
        _limit, _small = before


def _read_limit() -> tuple[int, str]:
    own = os.environ.get("MOEGRAD_NUM_THREADS", "").strip()
    if own:
        if not own.isdecimal() or int(own) < 1:
            raise ValueError(f"MOEGRAD_NUM_THREADS: expected a positive integer, got {own!r}")
        return min(int(own), MOST), "MOEGRAD_NUM_THREADS"
    shared = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # one number per nesting level
    if shared.isdecimal() and int(shared) > 0:
        return min(int(shared), MOST), "OMP_NUM_THREADS"
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)), "processors of this process"
    return os.cpu_count() or 1, "processors"


def _after_fork() -> None:
    global _limit
    _limit = (1, "forked child")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
