"""Kernels in the manner of samples: they compile unchanged, run on every seed without a finding, and are right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .driver import Compiler, Library, out, put


@pytest.fixture(scope="module")
def library(compiler: Compiler) -> Library:
    return compiler.library()


@pytest.mark.parametrize("seed", range(4))
def test_softmax_of_rows(library: Library, seed: int) -> None:
    x = np.random.default_rng(0).standard_normal((80, 64)).astype(np.float32) * 4
    y = np.zeros_like(x)
    result = library.run("softmax_custom", put(x), out(y), blocks=3, tiling=np.uint32(80).tobytes(), seed=seed)
    assert result.names == set()
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("width", [1, 15, 100, 1000])
@pytest.mark.parametrize(("key", "dtype"), [(1, np.float16), (2, ml_dtypes.bfloat16)])
def test_layer_statistics(library: Library, width: int, key: int, dtype: Any) -> None:
    x = np.random.default_rng(width).standard_normal((4, width)).astype(dtype)
    y = np.zeros_like(x)
    tiling = np.array([width, 0], np.int32).tobytes()
    result = library.run("layer_stats", put(x), out(y), blocks=4, workspace=64, tiling=tiling, key=key, seed=2)
    assert result.names == set()
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.astype(np.float64), expected, atol=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_embedding_gradient_with_atomics(library: Library, seed: int) -> None:
    index = np.random.default_rng(1).integers(0, 12, 40).astype(np.int32)
    grad = np.random.default_rng(2).integers(-9, 9, (40, 16)).astype(np.float32)
    table = np.zeros((12, 16), np.float32)
    tiling = np.array([40, 12], np.int32).tobytes()
    result = library.run("embedding_grad", put(grad), put(index), out(table), blocks=8, tiling=tiling, seed=seed)
    assert result.names == set()
    expected = np.zeros_like(table)
    np.add.at(expected, index, grad)
    np.testing.assert_array_equal(table, expected)


def test_progression(library: Library) -> None:
    y = np.zeros(77, np.int32)
    assert library.run("odd_numbers", out(y), tiling=np.int32(77).tobytes()).names == set()
    np.testing.assert_array_equal(y, np.arange(77) * 2 + 1)
