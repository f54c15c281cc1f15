"""Fixtures of the run-time tests: valid calls to change, refusals of calls, runs in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import moegrad
from moegrad.calls import _remembered as remembered

Call = dict[str, Any]
F32 = np.dtype(np.float32)


def ints(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def finalize(**changes: Any) -> Call:
    """A valid call with R=2 K=3 H=4 E=2, changed."""
    call = {
        "grad_y": np.ones((2, 4), F32),
        "expanded_row_idx": ints(5, 0, 2, 4, 1, 3),
        "expanded_x": np.ones((6, 4), F32),
        "scales": np.ones((2, 3), F32),
        "expert_idx": np.zeros((2, 3), np.int32),
        "bias": np.ones((2, 4), F32),
        "out": (np.full((6, 4), 7, F32), np.full((2, 3), 7, F32)),
    }
    return call | changes


def drop_pad(**changes: Any) -> Call:
    """A valid call in mode 1 with R=2 K=3 H=4 E=2 C=4, changed."""
    call = finalize(
        expanded_row_idx=ints(-1, 0, 7, -1, 3, 1),
        expanded_x=np.ones((2, 4, 4), F32),
        out=(np.full((2, 4, 4), 7, F32), np.full((2, 3), 7, F32)),
    )
    return call | {"drop_pad_mode": 1, "expert_num": 2, "expert_capacity": 4} | changes


def unpermute(**changes: Any) -> Call:
    """A valid call with R=2 K=3 H=4, changed."""
    call = {
        "permuted_tokens": np.ones((6, 4), F32),
        "unpermuted_tokens_grad": np.ones((2, 4), F32),
        "sorted_indices": ints(5, 0, 2, 4, 1, 3),
        "probs": np.ones((2, 3), F32),
        "out": (np.full((6, 4), 7, F32), np.full((2, 3), 7, F32)),
    }
    return call | changes


def padded(**changes: Any) -> Call:
    """A valid call in padded_mode with R=2 H=4 E=2 C=3, changed."""
    call = unpermute(sorted_indices=ints(0, 1, -1, 1, 0, 0))
    return call | {"padded_mode": True, "restore_shape": (2, 4)} | changes


OPERATORS: dict[Callable[..., Call], Callable[..., Any]] = {
    finalize: moegrad.finalize_routing_v2_grad,
    drop_pad: moegrad.finalize_routing_v2_grad,
    unpermute: moegrad.token_unpermute_grad,
    padded: moegrad.token_unpermute_grad,
}
BUILDERS = {build.__name__: build for build in OPERATORS}


class Calls:
    """Valid calls by name, to be changed and made."""

    def operator(self, name: str) -> Callable[..., Any]:
        return OPERATORS[BUILDERS[name]]

    def build(self, name: str, **changes: Any) -> Call:
        return BUILDERS[name](**changes)

    def run(self, name: str, **changes: Any) -> Any:
        return self.operator(name)(**self.build(name, **changes))

    def refused(self, error: type[Exception], name: str, changes: Call, message: str) -> None:
        """The call raises `error` with exactly `message` after the operator's name, and leaves its outputs alone.

        So it does when no call is remembered, and when the valid one is.
        """
        remembered.clear()
        self._refused(error, name, changes, message)
        self.run(name)
        assert len(remembered) == 1
        self._refused(error, name, changes, message)

    def _refused(self, error: type[Exception], name: str, changes: Call, message: str) -> None:
        call = self.build(name, **changes)
        outputs = call["out"] if isinstance(call["out"], tuple) else ()
        before = [array.tobytes() for array in outputs if isinstance(array, np.ndarray)]
        with pytest.raises(error) as refusal:
            self.operator(name)(**call)
        assert str(refusal.value) == f"{self.operator(name).__name__}: {message}"
        assert [array.tobytes() for array in outputs if isinstance(array, np.ndarray)] == before


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., str]:
    """Run Python source in a new process, with environment variables set (or unset, by None).

    Returns what it printed, or wrote to standard error when it `fails`. It runs outside the checkout, so that it
    imports the installed package.
    """

    def run(source: str, fails: bool = False, **variables: str | None) -> str:
        environment = {k: v for k, v in os.environ.items() if k not in ("MOEGRAD_ISA", "MOEGRAD_NUM_THREADS")}
        environment |= {name: value for name, value in variables.items() if value is not None}
        for name in [name for name, value in variables.items() if value is None]:
            environment.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-c", source],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        return (done.stderr if fails else done.stdout).strip()

    return run
