"""The twenty mistakes that compile but fail on the device: each reported by name, each mended twin clean and right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from .driver import INPUT, MIX_KERNEL, NO_AUTO_SYNC, STRICT_UB, Argument, Array, Compiler, Library, Result, out, put

N = 1024
X = (np.arange(N) % 97 + 1).astype(np.float32)


@pytest.fixture(scope="module")
def rows(compiler: Compiler) -> Library:
    return compiler.library()


def run(
    library: Library, kernel: str, length: int = N, blocks: int = 1, seed: int = 0, switches: int = 0
) -> tuple[Result, Array]:
    y = np.zeros(length, np.float32)
    return library.run(kernel, put(X), out(y), blocks=blocks, seed=seed, switches=switches), y


@dataclass(frozen=True)
class Row:
    """A mistake: its kernel, the name it must be reported under, and whether the data must come out wrong too."""

    number: int
    kernel: str
    name: str
    mended: str = ""
    wrong_data: bool = False
    length: int = N
    expected: str = "2x"


ROWS = (
    Row(1, "misaligned", "ub-misaligned", wrong_data=True),
    Row(3, "past_buffer", "ub-out-of-bounds", wrong_data=True),
    Row(4, "no_mte2_v", "missing-event-mte2-v", wrong_data=True),
    Row(5, "no_v_mte3", "missing-event-v-mte3", wrong_data=True),
    Row(5, "no_mte3_v", "missing-event-mte3-v", wrong_data=True),
    Row(5, "no_v_mte2", "missing-event-v-mte2", wrong_data=True),
    Row(5, "shared_block", "missing-event-v-mte3", wrong_data=True, length=8),
    Row(6, "no_mte2_mte3", "missing-event-mte2-mte3", wrong_data=True, expected="x"),
    Row(6, "no_mte3_mte2", "missing-event-mte3-mte2", wrong_data=True, expected="x"),
    Row(6, "store_pair", "missing-barrier-mte3", wrong_data=True),
    Row(7, "uninitialised", "ub-uninitialised-read", wrong_data=True),
    Row(7, "dummy_tail", "dummy-tail-read", wrong_data=True, length=1, expected="sum13"),
    Row(8, "enque_twice", "queue-enque-twice", mended="queues"),
    Row(8, "deque_empty", "queue-deque-empty", mended="queues"),
    Row(8, "free_twice", "queue-free-twice", mended="queues"),
    Row(8, "not_freed", "queue-not-freed", mended="queues"),
    Row(8, "alloc_hang", "queue-alloc-hang", mended="queues"),
    Row(8, "queue_depth", "queue-depth-exceeded", mended="queues"),
    Row(8, "foreign_tensor", "queue-foreign-tensor", mended="queues"),
    Row(8, "use_after_free", "queue-use-after-free", mended="queues"),
    Row(9, "nine_live", "too-many-buffers"),
    Row(9, "many_buffers", "too-many-buffers"),
    Row(10, "set_twice", "event-set-twice", mended="events"),
    Row(10, "wait_without_set", "event-wait-without-set", mended="events"),
    Row(10, "event_range", "event-id-out-of-range", mended="events"),
    Row(10, "event_left", "event-left-set", mended="events"),
    Row(10, "event_clash", "event-id-clash", mended="events"),
    Row(10, "event_not_allocated", "event-id-not-allocated", mended="events"),
    Row(11, "fetched_twice", "fetched-event-id-reused", mended="events"),
    Row(11, "fetched_by_queue", "fetched-event-id-reused", mended="events"),
    Row(12, "write_input", "gm-write-to-input"),
    Row(15, "repeats", "repeat-out-of-range", wrong_data=True),
    Row(15, "wide_mask", "mask-out-of-range"),
    Row(15, "high_mask_word", "mask-out-of-range"),
    Row(16, "block_sums", "reduce-mask-repeat-swapped", wrong_data=True, length=8, expected="blocks"),
    Row(16, "repeat_sums", "ub-uninitialised-read", wrong_data=True, length=16, expected="repeats"),
    Row(17, "copy_units", "copy-unit-mixup", wrong_data=True),
    Row(17, "copy_range", "copy-param-out-of-range"),
    Row(17, "copy_nothing", "copy-zero-length"),
    Row(18, "truncated", "copy-count-truncated", wrong_data=True, length=N - 3),
    Row(20, "atomic_left", "atomic-left-on"),
    Row(20, "counter_left", "mask-left-in-counter-mode"),
    Row(20, "unflushed", "dcache-not-flushed", length=1),
    Row(20, "unwritten", "output-unwritten", wrong_data=True),
    Row(20, "atomic_add", "atomic-on-unwritten", wrong_data=True),
)

EXPECTED = {
    "2x": 2 * X,
    "x": X,
    "sum13": X[:13].sum(keepdims=True),
    "blocks": X[:64].reshape(8, 8).sum(1),
    "repeats": X.reshape(16, 64).sum(1),
}


def check(library: Library, row: Row, seed: int) -> None:
    mended, y = run(library, f"{row.mended or row.kernel}_mended", row.length, seed=seed)
    assert mended.names == set()
    assert mended.status == 0
    right = EXPECTED[row.expected][: row.length]
    np.testing.assert_array_equal(y, right)

    faulty, y = run(library, f"{row.kernel}_faulty", row.length, seed=seed)
    assert row.name in faulty.names
    finding = faulty.finding(row.name)
    assert faulty.status == (0 if finding["severity"] == "warning" else 1)
    assert finding["mend"]
    assert finding["message"]
    if row.wrong_data and seed == 0:
        assert not np.array_equal(y, right, equal_nan=False)


def ids(row: Row) -> str:
    return f"{row.number}-{row.kernel}"


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_row_is_reported_and_its_mended_twin_is_clean(rows: Library, row: Row, seed: int) -> None:
    check(rows, row, seed)


def test_missing_event_reports_only_the_missing_event(rows: Library) -> None:
    for kernel, name in (("no_mte2_v", "mte2-v"), ("no_v_mte3", "v-mte3"), ("no_mte3_v", "mte3-v")):
        result, _ = run(rows, f"{kernel}_faulty")
        assert result.names == {f"missing-event-{name}"}


def test_finding_names_call_file_and_line(rows: Library) -> None:
    result, _ = run(rows, "no_mte2_v_faulty")
    finding = result.finding("missing-event-mte2-v")
    source = (finding["file"], finding["line"])
    assert finding["api"] == "Muls"
    assert source[0].endswith("rows_buffers.cpp")
    with open(source[0]) as text:
        assert "Muls(h.out, h.in, 2.0f, N);" in text.readlines()[source[1] - 1]
    assert "DataCopy at" in finding["message"]


def test_row_2_overflow(rows: Library) -> None:
    assert run(rows, "overflow_faulty")[0].names == {"ub-overflow"}
    assert run(rows, "overflow_mended")[0].names == set()
    strict, _ = run(rows, "overflow_mended", switches=STRICT_UB)
    assert strict.names == {"ub-overflow"}


def test_row_6_automatic_sync_covers_scalar_and_vector_pairs_only(rows: Library) -> None:
    for kernel in ("scalar_touch", "vector_pair"):
        for half in ("faulty", "mended"):
            result, y = run(rows, f"{kernel}_{half}")
            assert result.names == set()
            np.testing.assert_array_equal(y, 2 * X)
    result, y = run(rows, "vector_pair_faulty", switches=NO_AUTO_SYNC)
    assert result.names == {"missing-barrier-v"}
    assert not np.array_equal(y, 2 * X)
    result, y = run(rows, "scalar_touch_faulty", switches=NO_AUTO_SYNC)
    assert result.names >= {"missing-event-v-s", "missing-event-s-mte3"}
    for kernel in ("scalar_touch_mended", "vector_pair_mended"):
        result, y = run(rows, kernel, switches=NO_AUTO_SYNC)
        assert result.names == set()
        np.testing.assert_array_equal(y, 2 * X)


def test_row_10_reserved_id_is_a_warning(rows: Library) -> None:
    result, y = run(rows, "event_reserved_faulty")
    assert result.names == {"event-id-reserved"}
    assert result.status == 0
    np.testing.assert_array_equal(y, 2 * X)


@pytest.mark.parametrize("bad", [-1, 5])
def test_row_12_index_out_of_range(rows: Library, bad: int) -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    index = np.array([3, bad, 0], np.int32)
    y = np.zeros((3, 8), np.float32)
    shape = np.array([3, 8], np.int32).tobytes()
    result = rows.run("gather_rows_faulty", put(x), put(index), out(y), tiling=shape)
    assert "gm-out-of-range" in result.names
    assert "argument 0" in result.finding("gm-out-of-range")["message"]
    if bad == -1:
        result = rows.run("gather_rows_mended", put(x), put(index), out(y), tiling=shape)
        assert result.names == set()
        np.testing.assert_array_equal(y, [2 * x[3], 0 * x[0], 2 * x[0]])


def test_row_12_wrong_row_length(rows: Library) -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    y = np.zeros((3, 8), np.float32)
    shape = np.array([3, 16], np.int32).tobytes()
    result = rows.run("gather_rows_mended", put(x), put(np.array([0, 1, 2], np.int32)), out(y), tiling=shape)
    assert "gm-out-of-range" in result.names


def test_row_13_offset_past_two_to_the_31(rows: Library) -> None:
    row, width = 300_000, 7168
    far = row * width * 2
    window = np.arange(64, dtype=np.float16)
    x = Argument(window, INPUT, virtual_bytes=(row + 1) * width * 2, window_offset=far)
    y = np.zeros(64, np.float16)
    tiling = np.array([row, width], np.int32).tobytes()
    result = rows.run("far_row_mended", x, out(y), tiling=tiling)
    assert result.names == set()
    np.testing.assert_array_equal(y, window)
    result = rows.run("far_row_faulty", x, out(y), tiling=tiling)
    assert result.names >= {"gm-offset-overflow", "gm-out-of-range"}


def test_row_14_tiling_struct(rows: Library) -> None:
    layout = np.dtype([("count", "i8"), ("factor", "f4"), ("rows", "i4")])
    assert rows.tiling_bytes("tiling_mended") == layout.itemsize
    assert rows.tiling_bytes("tiling_faulty") == layout.itemsize + 8
    good = np.zeros(1, layout)
    good["factor"], good["count"] = 2, N
    y = np.zeros(N, np.float32)
    result = rows.run("tiling_mended", put(X), out(y), tiling=good.tobytes())
    assert result.names == set()
    np.testing.assert_array_equal(y, 2 * X)
    result = rows.run("tiling_faulty", put(X), out(y), tiling=good.tobytes())
    assert result.names == {"tiling-struct-mismatch", "tiling-unset-field"}

    unset = np.frombuffer(bytearray(b"\xa5" * layout.itemsize), layout)
    unset["factor"], unset["count"] = 2, N
    result = rows.run("tiling_mended", put(X), out(y), tiling=unset.tobytes())
    assert result.names == {"tiling-unset-field"}
    assert "byte 12" in result.finding("tiling-unset-field")["message"]


def test_row_19_round_mode(rows: Library) -> None:
    x = np.linspace(-3, 3, N, dtype=np.float32)
    y = np.zeros(N, np.uint16)
    assert rows.run("to_bfloat16_mended", put(x), out(y)).names == set()
    assert rows.run("to_bfloat16_faulty", put(x), out(y)).names == {"unsupported-round-mode"}


@pytest.mark.parametrize("seed", range(5))
def test_row_20_cores_meet(rows: Library, seed: int) -> None:
    expected = 2 * X
    expected[N // 4 : N // 4 + 8] *= 1.5
    for kernel, switches in (("cores_meet_mended", 0), ("declared_mix", 0), ("vector_only_faulty", MIX_KERNEL)):
        result, y = run(rows, kernel, blocks=4, seed=seed, switches=switches)
        assert result.names == set()
        np.testing.assert_array_equal(y, expected)
    result, _ = run(rows, "cores_meet_faulty", blocks=4, seed=seed)
    assert result.names & {"gm-read-before-sync", "gm-double-write"}
    assert run(rows, "vector_only_faulty", blocks=4, seed=seed)[0].names == {"syncall-needs-mix"}


def test_row_20_more_blocks_than_cores_cannot_meet(rows: Library) -> None:
    assert "syncall-too-many-blocks" in run(rows, "one_missing_mended", blocks=49)[0].names
    assert run(rows, "one_missing_mended", blocks=48)[0].names == set()


def test_row_20_a_core_that_stays_away(rows: Library) -> None:
    assert run(rows, "one_missing_faulty", blocks=3)[0].names == {"syncall-deadlock"}


@pytest.mark.parametrize("seed", range(3))
def test_row_20_scalar_stores_of_two_cores_in_one_line(rows: Library, seed: int) -> None:
    y = np.zeros(N, np.float32)
    result = rows.run("scalar_stores_faulty", put(X), out(y, partial=True), blocks=4, seed=seed)
    assert result.names == {"gm-line-shared"}
    result = rows.run("scalar_stores_mended", put(X), out(y, partial=True), blocks=4, seed=seed)
    assert result.names == set()
    np.testing.assert_array_equal(y[: 4 * 16 : 16], 2 * X[: 4 * 16 : 16])


def test_row_20_stores_of_two_cores_to_one_place(rows: Library) -> None:
    result, _ = run(rows, "no_mte2_v_mended", blocks=2)
    assert result.names == {"gm-double-write"}
