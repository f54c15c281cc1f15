"""Moves, queues, ragged rows, several cores: the semantics of copies and what surrounds them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .driver import INOUT, Argument, Array, Compiler, Library, out, put


@pytest.fixture(scope="module")
def moves(compiler: Compiler) -> Library:
    return compiler.library()


def words(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


def rows_of(rows: int, width: int, per_move: int, fault: int = 0) -> bytes:
    return np.array([rows, width], np.int64).tobytes() + words(per_move, fault)


# ---- DataCopyPad into UB: blocks, length, GM stride (bytes), UB stride (32-byte blocks), isPad, left, right ----

PAD_CASES = [
    (1, 40, 0, 0, 0, 0, 0),
    (3, 20, 0, 0, 0, 0, 0),
    (3, 32, 8, 1, 0, 0, 0),
    (2, 36, 12, 2, 0, 0, 0),
    (2, 12, 4, 0, 1, 2, 1),
    (2, 12, 0, 1, 1, 0, 5),
    (1, 4, 0, 0, 1, 7, 0),
]


@pytest.mark.parametrize("case", PAD_CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_padded_load(moves: Library, case: tuple[int, ...], dtype: Any) -> None:
    blocks, length, gm_stride, ub_stride, is_pad, left, right = case
    width = np.dtype(dtype).itemsize
    per_block = 32 // width
    x = np.arange(1, 201).astype(dtype)
    size = 32 * per_block
    expected = np.full(size, -7, dtype)
    dummies = False
    at = 0
    for block in range(blocks):
        first = block * (length + gm_stride) // width
        data = x[first : first + length // width]
        footprint = -(-(data.size + left + right) // per_block) * per_block
        filled = np.full(footprint, 9 if is_pad else data[0], dtype)
        filled[left : left + data.size] = data
        dummies |= not is_pad and footprint != data.size
        expected[at : at + footprint] = filled
        at += footprint + ub_stride * per_block
    y = np.zeros(size, dtype)
    kernel = f"pad_in_f{8 * width}"
    result = moves.run(kernel, put(x), out(y), tiling=words(*case, size))
    assert result.names == ({"dummy-tail-read"} if dummies else set())
    np.testing.assert_array_equal(y, expected)


def test_paddings_without_is_pad_are_arbitrary(moves: Library) -> None:
    y = np.zeros(64, np.float32)
    result = moves.run("pad_in_f32", put(np.ones(64, np.float32)), out(y), tiling=words(1, 12, 0, 0, 0, 1, 0, 64))
    assert result.names == {"ub-uninitialised-read"}
    np.testing.assert_array_equal(y[1:4], 1)


def test_padding_of_more_than_32_bytes_is_reported(moves: Library) -> None:
    y = np.zeros(64, np.float32)
    result = moves.run("pad_in_f32", put(np.ones(64, np.float32)), out(y), tiling=words(1, 12, 0, 0, 1, 9, 0, 64))
    assert result.names == {"copy-param-out-of-range"}


def test_length_that_cuts_an_element_is_reported(moves: Library) -> None:
    y = np.zeros(64, np.float32)
    result = moves.run("pad_in_f32", put(np.ones(64, np.float32)), out(y), tiling=words(1, 13, 0, 0, 1, 0, 0, 64))
    assert "copy-unit-mixup" in result.names


@pytest.mark.parametrize(("blocks", "length", "gm_stride", "ub_stride"), [(1, 20, 0, 0), (3, 12, 8, 1), (2, 36, 4, 0)])
def test_padded_store_touches_nothing_else(
    moves: Library, blocks: int, length: int, gm_stride: int, ub_stride: int
) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.full(64, -3, np.float32)
    expected = y.copy()
    pitch = -(-length // 32) * 8 + ub_stride * 8
    for block in range(blocks):
        to = block * (length + gm_stride) // 4
        expected[to : to + length // 4] = x[block * pitch :][: length // 4]
    tiling = words(blocks, length, gm_stride, ub_stride, 0, 0, 0, 64)
    result = moves.run("pad_out", put(x), Argument(y, INOUT), tiling=tiling)
    assert result.names == set()
    np.testing.assert_array_equal(y, expected)


def test_strided_copies_count_32_byte_blocks(moves: Library) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.zeros(32, np.float32)
    assert moves.run("strided", put(x), out(y)).names == set()
    np.testing.assert_array_equal(y, x.reshape(8, 8)[::2].ravel())


def test_copies_inside_ub(moves: Library) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    assert moves.run("inside", put(x), out(y)).names == set()
    expected = x.copy()
    expected[8:16], expected[16:24] = x[0:8], x[16:24]
    np.testing.assert_array_equal(y, expected)


# ---- ragged rows: field cases 13, 14 and 21 ----

WIDTHS = [("f32", 1), ("f32", 7), ("f32", 126), ("f16", 1), ("f16", 9), ("f16", 17), ("f16", 33), ("f16", 100)]


def ragged(library: Library, dtype: str, rows: int, width: int, per_move: int, fault: int, blocks: int = 1) -> Any:
    x = (np.arange(rows * width) % 500).astype(np.float32 if dtype == "f32" else np.float16).reshape(rows, width)
    y = np.zeros_like(x)
    result = library.run(
        f"ragged_rows_{dtype}", put(x), out(y), tiling=rows_of(rows, width, per_move, fault), blocks=blocks, seed=blocks
    )
    return result, x + 1, y


@pytest.mark.parametrize("blocks", [1, 3, 8])
@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_rows_that_are_no_multiple_of_32_bytes(moves: Library, dtype: str, width: int, blocks: int) -> None:
    result, right, y = ragged(moves, dtype, 6, width, 4, 0, blocks)
    assert result.names == set()
    np.testing.assert_array_equal(y, right)


@pytest.mark.parametrize(
    ("fault", "names"), [(1, "ub-uninitialised-read"), (2, "dummy-tail-read"), (3, "output-unwritten")]
)
def test_mistakes_in_ragged_rows_are_found(moves: Library, fault: int, names: str) -> None:
    result, right, y = ragged(moves, "f16", 6, 100, 3, fault)
    assert names in result.names
    assert not np.array_equal(y, right)


def test_rows_of_65536_bytes_and_one_element_more(moves: Library) -> None:
    for width in (16384, 16385):
        result, right, y = ragged(moves, "f32", 2, width, 1, 0)
        assert ("ub-overflow" in result.names) == (width * 4 * 4 > 196352)
        np.testing.assert_array_equal(y, right)


def test_more_than_4095_rows_in_one_copy(moves: Library) -> None:
    result, _, _ = ragged(moves, "f16", 4096, 1, 4096, 0)
    assert "copy-param-out-of-range" in result.names


# ---- queues ----


def test_binding_of_both_positions_moves_bits(moves: Library) -> None:
    x = np.arange(65536, dtype=np.uint32).astype(np.uint16)[::7].copy()
    for seed in range(3):
        y = np.zeros_like(x)
        result = moves.run("through_binding", put(x), out(y), tiling=words(x.size, 1024), seed=seed)
        assert result.names == set()
        np.testing.assert_array_equal(y, x)
    assert x.view(ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("seed", range(4))
def test_deep_queues_and_in_place_forms(moves: Library, seed: int) -> None:
    x = np.arange(256, dtype=np.float32)
    y = np.zeros(256, np.float32)
    assert moves.run("deep_queues", put(x), out(y), seed=seed).names == set()
    np.testing.assert_array_equal(y, 3 * x + 1)


def test_static_tensors_need_a_final_barrier(moves: Library) -> None:
    x = np.arange(64, dtype=np.float32)
    for barrier, names in ((1, set()), (0, {"missing-final-barrier"})):
        y = np.zeros(64, np.float32)
        result = moves.run("static_tensors", put(x), out(y), tiling=words(barrier))
        assert result.names == names
        assert result.status == 0
        np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
def test_sets_equal_waits_on_every_path(moves: Library, rounds: int) -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    arguments = (put(x), out(y, partial=True))
    assert moves.run("balanced", *arguments, tiling=words(rounds, 0)).names == set()
    assert moves.run("balanced", *arguments, tiling=words(rounds, 1)).names == {"event-left-set"}


# ---- several cores ----


@pytest.mark.parametrize("seed", range(4))
def test_fill_then_scatter_needs_a_meeting(moves: Library, seed: int) -> None:
    x = np.arange(1, 33, dtype=np.float32)
    y = np.zeros(64, np.float32)
    sync = np.zeros(32, np.int32)
    arguments = (put(x), out(y), Argument(sync, INOUT))
    result = moves.run("fill_and_meet", *arguments, tiling=words(64, 1), blocks=4, seed=seed)
    assert result.names == set()
    expected = np.zeros((4, 16), np.float32)
    expected[:, :8] = x.reshape(4, 8)
    np.testing.assert_array_equal(y, expected.ravel())
    result = moves.run("fill_and_meet", *arguments, tiling=words(64, 0), blocks=4, seed=seed)
    assert "gm-double-write" in result.names


def test_soft_meeting_wants_zeroed_workspace(moves: Library) -> None:
    y = np.zeros(64, np.float32)
    sync = np.ones(32, np.int32)
    arguments = (put(np.ones(32, np.float32)), out(y), Argument(sync, INOUT))
    assert "syncall-workspace" in moves.run("fill_and_meet", *arguments, tiling=words(64, 1), blocks=4).names


def workspace_run(moves: Library, fault: int, seed: int) -> tuple[set[str], Array]:
    x = np.arange(1, 17, dtype=np.float32)
    y = np.zeros(16, np.float32)
    result = moves.run("through_workspace", put(x), out(y), blocks=2, workspace=256, tiling=words(fault, 0), seed=seed)
    return result.names, y


@pytest.mark.parametrize("seed", range(3))
def test_workspace_between_cores(moves: Library, seed: int) -> None:
    names, y = workspace_run(moves, 0, seed)
    assert names == set()
    x = np.arange(1, 17, dtype=np.float32).reshape(2, 8)
    np.testing.assert_array_equal(y, (x[::-1] + x[::-1, :1]).ravel())
    assert workspace_run(moves, 1, seed)[0] >= {"gm-uninitialised-read"}
    names, stale = workspace_run(moves, 2, seed)
    assert "dcache-stale-read" in names
    assert not np.array_equal(stale, y)
    assert workspace_run(moves, 3, seed)[0] == set()


def test_absent_input_and_tiling_key(moves: Library) -> None:
    x, bias = np.array([2], np.float32), np.array([1], np.float32)
    for key, given, right in ((0, True, 3), (5, True, 30), (6, False, 200)):
        y = np.zeros(1, np.float32)
        result = moves.run("optional_input", put(x), put(bias) if given else Argument(None), out(y), key=key)
        assert result.names == set()
        assert y[0] == right


def test_partial_overlap_is_reported(moves: Library) -> None:
    x = np.arange(128, dtype=np.float32)
    for shift, names in ((0, set()), (8, {"partial-overlap"}), (120, set())):
        y = np.zeros(120, np.float32)
        assert moves.run("overlap", put(x), out(y), tiling=words(shift)).names == names


@pytest.mark.parametrize("seed", range(3))
def test_library_fill_and_the_buffers_after_it(moves: Library, seed: int) -> None:
    x = np.arange(2048, dtype=np.float32)
    y = np.zeros(4096, np.float32)
    assert moves.run("two_fills", put(x), out(y), tiling=words(1, 1), seed=seed).names == set()
    np.testing.assert_array_equal(y, np.concatenate([np.ones(1024), np.full(1024, 2), x]).astype(np.float32))
    assert moves.run("two_fills", put(x), out(y), tiling=words(0, 1), seed=seed).names == {"missing-event-mte3-v"}
    result = moves.run("two_fills", put(x), out(y), tiling=words(1, 0), seed=seed)
    assert result.names >= {"missing-event-mte3-mte2"}


@pytest.mark.parametrize("seed", range(4))
def test_scalar_store_and_block_store_in_one_line(moves: Library, seed: int) -> None:
    x = np.arange(8, dtype=np.float32)
    y = np.zeros(64, np.float32)
    for apart, names in ((1, {"gm-line-shared"}), (14, {"gm-line-shared"}), (16, set())):
        result = moves.run("mixed_line", put(x), out(y, partial=True), tiling=words(apart), blocks=2, seed=seed)
        assert result.names == names


def test_an_allocated_buffer_holds_nothing_of_the_round_before(moves: Library) -> None:
    x = np.arange(128, dtype=np.float32)
    for full, names in ((1, set()), (0, {"ub-uninitialised-read"})):
        y = np.zeros(128, np.float32)
        assert moves.run("stale_buffer", put(x), out(y), tiling=words(full)).names == names
        assert np.array_equal(y, x + 1) is bool(full)
