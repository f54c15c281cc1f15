"""What `moegrad doctor` says and when it fails."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from moegrad.tools import doctor
from moegrad.tools.cli import app
from moegrad.tools.doctor import Finding


def test_what_builds_kernels_is_found() -> None:
    findings = {finding.name: finding for finding in doctor.examine()}
    assert [name for name, finding in findings.items() if finding.required and not finding.found] == []
    assert "baseline" in findings["CPU variants"].found
    assert not findings["Ascend toolkit"].required


def test_a_missing_requirement_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("C compiler", "compiling", "", True)])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "MISSING" in result.output


def test_a_missing_option_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("numba", "a peer", "", False)])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "not found" in result.output
