"""The compiler of kernels, shared by all tests of the host model."""

from __future__ import annotations

import pytest

from .driver import Compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("hostmodel"))
