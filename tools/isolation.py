"""Runs cases in a process of its own, so that a kernel that crashes or hangs costs one case and not the run."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import IO, Any

from .cases import Case
from .checking import Outcome, check, failed
from .targets import Target

__all__ = ["Worker"]

SECONDS = 120.0
"""After this long without an answer a case has failed."""

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from moegrad.tools.isolation import answer; answer()"


class Worker:
    """A child process that checks cases; it is started when needed and again after a crash.

    Targets reach it by pickle, so their functions have to be importable.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        self._errors.close()

    def check(self, target: Target, case: Case, variants: bool) -> Outcome:
        """The outcome of a case; a crash or a hang is one, too."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self._seconds, process.kill)
        timer.start()
        try:
            pickle.dump((target, case, variants), process.stdin)
            process.stdin.flush()
            outcome: Outcome = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            reason = f"no answer within {self._seconds:g} s" if not timer.is_alive() else self._post_mortem(process)
            self._stop()
            return failed(case, reason)
        finally:
            timer.cancel()
        return outcome

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-c", _START, json.dumps(sys.path)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors)
        return self._process

    def _post_mortem(self, process: subprocess.Popen[bytes]) -> str:
        """How a process died, with the first line it wrote about that."""
        status = process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.truncate(0)
        how = f"crashed with {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{how}: {lines[-1 if status >= 0 else 0]}" if lines else how

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # a request that nobody read
                    pipe.close()


def answer() -> None:
    """The child: answers requests on standard input until it is closed. What kernels print goes to stderr."""
    faulthandler.enable(all_threads=False)
    requests: IO[bytes] = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            request: tuple[Target, Case, Any] = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(check(*request), answers)
        answers.flush()
