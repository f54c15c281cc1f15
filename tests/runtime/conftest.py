"""Fixtures of the run-time tests: dtypes by name, and runs in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def fresh() -> Callable[..., str]:
    """Run Python source in a new process, with environment variables set (or unset, by None); its output."""

    def run(source: str, fails: bool = False, **variables: str | None) -> str:
        environment = {k: v for k, v in os.environ.items() if k not in ("MOEGRAD_ISA", "MOEGRAD_NUM_THREADS")}
        environment |= {name: value for name, value in variables.items() if value is not None}
        for name in [name for name, value in variables.items() if value is None]:
            environment.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-c", source],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        return (done.stderr if fails else done.stdout).strip()

    return run
