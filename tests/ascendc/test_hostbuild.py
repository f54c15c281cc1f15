"""How kernels are built for the host model: flags, compiler, and a cache that only this user can write to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moegrad.codegen.errors import BuildError
from moegrad.codegen.generate import ascend_kernel
from moegrad.codegen.operators import make_spec
from moegrad.codegen.targets.ascendc import hostbuild
from moegrad.codegen.targets.ascendc.emit import AscendKernel
from moegrad.codegen.targets.ascendc.hostbuild import (
    MODEL_FLAGS,
    build_kernels,
    cache_dir,
    compile_flags,
    compiler,
    include_dir,
)


@pytest.fixture
def kernel() -> AscendKernel:
    return ascend_kernel(make_spec("finalize_routing_v2_grad", "plain", "f32", "", 1, 8))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Builds that only write the library they were asked for."""
    built: list[Path] = []

    def write(_sources: object, _flags: object, target: Path) -> None:
        built.append(target)
        target.write_bytes(b"")

    monkeypatch.setattr(hostbuild, "_compile", write)
    return built


def test_integers_wrap_and_products_are_rounded() -> None:
    assert {"-std=c++17", "-fwrapv", "-ffp-contract=off"} <= set(MODEL_FLAGS)
    assert tuple(compile_flags("ascend950"))[: len(MODEL_FLAGS)] == MODEL_FLAGS
    assert f"-I{include_dir()}" in compile_flags("ascend950")
    assert "-DMOEGRAD_CHIP=ascend950" in compile_flags("ascend950")
    assert not any("MOEGRAD_HOST_MODEL" in flag for flag in compile_flags("ascend950"))


def test_the_cache_is_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MOEGRAD_HOST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "moegrad" / "hostmodel"
    for base in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_dir() == Path.home() / ".cache" / "moegrad" / "hostmodel"
    monkeypatch.setenv("MOEGRAD_HOST_CACHE", str(tmp_path / "mine"))
    assert cache_dir() == tmp_path / "mine"


def test_a_library_is_named_after_its_kernel(quick: list[Path], kernel: AscendKernel, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    target = build_kernels([kernel], folder)
    assert target.name.startswith("finalize_routing_v2_grad__plain__f32__k1__h8-")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert build_kernels([kernel], folder) == target
    assert quick == [target]


def test_a_folder_that_others_can_write_to_is_refused(quick: list[Path], kernel: AscendKernel, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(BuildError, match=r"build: cache folder .*: others may write to it \(mode 777\)"):
        build_kernels([kernel], tmp_path)
    assert quick == []


def test_a_folder_of_another_user_is_refused(
    quick: list[Path], kernel: AscendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(BuildError, match=f"expected a folder of user {own + 1}, it belongs to {own}"):
        build_kernels([kernel], tmp_path)
    assert quick == []


def test_a_cache_that_is_a_file_is_refused(kernel: AscendKernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=r"build: cache folder .*file"):
        build_kernels([kernel], tmp_path / "file" / "below")


def test_the_compiler_may_be_several_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env  g++")
    assert compiler() == ("env", "g++")
    monkeypatch.delenv("CXX")
    assert compiler() == ("g++",)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "no-such-compiler -m64",
            "build: CXX: .* got 'no-such-compiler -m64': no-such-compiler is not found",
        ),
        ("g++ 'open", 'build: CXX: cannot be read as a command, got "g.. \'open"'),
    ],
)
def test_a_compiler_that_is_not_found_is_named(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", value)
    with pytest.raises(BuildError, match=message):
        compiler()
