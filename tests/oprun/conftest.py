"""The driver, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from .package import Script, build


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("oprun"))


@pytest.fixture
def script(driver: Path) -> Script:
    return Script(driver)
