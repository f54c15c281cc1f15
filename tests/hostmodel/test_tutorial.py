"""Spellings of tutorials and older kernels: they compile and run unchanged, and a loop that never ends is a finding."""

from __future__ import annotations

import numpy as np
import pytest

from .driver import Compiler, Library, out, put


@pytest.fixture(scope="module", params=["ascend910b", "ascend950"])
def library(compiler: Compiler, request: pytest.FixtureRequest) -> Library:
    return compiler.library(request.param)


@pytest.mark.parametrize("seed", range(3))
def test_add_with_a_pipe_inside_the_class(library: Library, seed: int) -> None:
    x = (np.arange(3 * 512) % 251).astype(np.float16)
    y = (np.arange(3 * 512) % 127 - 50).astype(np.float16)
    z = np.zeros_like(x)
    result = library.run("add_custom", put(x), put(y), out(z), blocks=3, seed=seed)
    assert result.names == set()
    np.testing.assert_array_equal(z, x / np.float16(2) + y)


@pytest.mark.parametrize("length", [1, 3, 7])
def test_older_structs_of_padded_copies(library: Library, length: int) -> None:
    x = np.linspace(-3, 4, length, dtype=np.float32)
    y = np.zeros_like(x)
    assert library.run("short_row", put(x), out(y), tiling=np.uint32(length).tobytes()).names == set()
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_length_past_the_older_field(library: Library) -> None:
    x = np.zeros(20000, np.float32)
    result = library.run("short_row", put(x), out(x.copy()), tiling=np.uint32(20000).tobytes())
    messages = [f["message"] for f in result.report["diagnostics"] if f["name"] == "copy-param-out-of-range"]
    assert any("blockLen is 80000" in message for message in messages)


@pytest.mark.parametrize("lanes", [1, 33, 64])
def test_older_spelling_of_masks_and_flags(library: Library, lanes: int) -> None:
    x = np.arange(1, 65, dtype=np.float32)
    y = np.zeros_like(x)
    assert library.run("masked_row", put(x), out(y), tiling=np.int32(lanes).tobytes()).names == set()
    np.testing.assert_array_equal(y, np.where(np.arange(64) < lanes, 2 * x, x))


def test_assertion_that_does_not_hold(library: Library) -> None:
    x = np.ones(64, np.float32)
    result = library.run("masked_row", put(x), out(x.copy()), tiling=np.int32(65).tobytes())
    finding = result.finding("kernel-assert")
    assert result.status == 1
    assert finding["message"] == "lanes > 0 && lanes <= 64"
    assert finding["file"].endswith("tutorial.cpp")


@pytest.mark.parametrize("seed", [0, 5])
def test_loop_that_never_ends(library: Library, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("MOEGRAD_HOST_STEPS", "1000")
    x = np.ones(8, np.float32)
    result = library.run("wait_for_ever", put(x), blocks=3, seed=seed)
    assert result.names == {"no-progress", "syncall-deadlock"}
    finding = result.finding("no-progress")
    assert (finding["api"], finding["count"]) == ("GlobalTensor::GetValue", 1)
    x[0] = -1
    assert library.run("wait_for_ever", put(x), blocks=3, seed=seed).names == set()
