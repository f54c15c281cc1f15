"""Libraries with the host ACL and the operators, built once and kept in the cache; sessions on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moegrad.aclnn import Session
from moegrad.codegen.targets.project.emit import Project, project_spec
from moegrad.codegen.targets.project.hostlib import HostLibrary, build_host_library


@pytest.fixture(scope="session")
def library() -> HostLibrary:
    """Atlas A2, every D, fp32 weights, and kernels of their own for topK 2 and hidden size 96."""
    return build_host_library(Project(project_spec("ascend910b", "", 2, 96, "", "f32")))


@pytest.fixture(scope="session")
def library_950() -> HostLibrary:
    """Ascend 950, bf16 rows, fp32 weights."""
    return build_host_library(Project(project_spec("ascend950", "", 0, 0, "bf16", "f32")))


@pytest.fixture
def session(library: HostLibrary) -> Iterator[Session]:
    """A session of its own for each test: leaving it checks that no tensor, list or executor was left."""
    with Session(str(library.path)) as opened:
        yield opened


@pytest.fixture
def session_950(library_950: HostLibrary) -> Iterator[Session]:
    """The same on Ascend 950."""
    with Session(str(library_950.path)) as opened:
        yield opened
