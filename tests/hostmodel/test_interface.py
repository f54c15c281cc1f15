"""The C interface, the report's contents, counters, and the examples that users copy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from .driver import FLAGS, INCLUDE, ROOT, WORKSPACE, Argument, Compiler, Library, out, put

N = 1024


@pytest.fixture(scope="module")
def rows(compiler: Compiler) -> Library:
    return compiler.library()


def test_report_is_complete(rows: Library) -> None:
    y = np.zeros(N, np.float32)
    report = rows.run("no_mte2_v_faulty", put(np.ones(N, np.float32)), out(y), seed=3).report
    assert report["kernel"] == "no_mte2_v_faulty"
    assert (report["chip"], report["arch"], report["block_count"], report["seed"]) == ("ascend910b", 2201, 1, 3)
    assert (report["saturate"], report["auto_sync"], report["strict_ub"]) == (False, True, False)
    (finding,) = report["diagnostics"]
    assert set(finding) == {"name", "severity", "api", "file", "line", "core", "count", "message", "mend"}
    assert finding["count"] == N * 4 // 32


def test_counters_and_modelled_time(rows: Library) -> None:
    y = np.zeros(N, np.float32)
    result = rows.run("no_mte3_v_mended", put(np.ones(N, np.float32)), out(y))
    counters = result.counters
    assert (counters["gm_bytes_in"], counters["gm_bytes_out"]) == (N * 4, N * 4)
    assert (counters["transfers_in"], counters["mean_bytes_in"]) == (2, N * 2)
    assert (counters["vector_ops"], counters["vector_repeats"]) == (2, N * 4 / 256)
    assert counters["events_set"] == counters["events_waited"] == 6
    assert counters["scalar_gm_reads"] == counters["barriers"] == 0
    time = result.report["time"]
    assert time["mte2_us"] == pytest.approx(N * 4 / 1.6e12 * 1e6)
    assert time["vector_us"] == pytest.approx(N * 4 / 256 / 1.8e9 * 1e6)
    assert time["bound_us"] == pytest.approx(max(time["vector_us"], time["mte2_us"] + time["mte3_us"]))


def test_scalar_accesses_and_automatic_flags_are_counted(rows: Library) -> None:
    y = np.zeros(N, np.float32)
    counters = rows.run("scalar_touch_faulty", put(np.ones(N, np.float32)), out(y)).counters
    assert (counters["scalar_ub_reads"], counters["scalar_ub_writes"]) == (1, 1)
    assert counters["auto_syncs"] >= 2


@pytest.mark.parametrize("blocks", [0, 65536])
def test_block_count_out_of_range_is_a_bad_launch(rows: Library, blocks: int) -> None:
    y = np.zeros(N, np.float32)
    result = rows.run("no_mte2_v_mended", put(np.ones(N, np.float32)), out(y), blocks=blocks)
    assert (result.status, result.names) == (2, {"kernel-arguments"})


def test_wrong_number_of_arrays_is_a_bad_launch(rows: Library) -> None:
    y = np.zeros(N, np.float32)
    for arguments in ((out(y),) * 3, ()):
        result = rows.run("no_mte2_v_mended", *arguments, tiling=b"")
        assert result.status == (2 if arguments else 1)


def test_missing_values_are_a_bad_launch(compiler: Compiler) -> None:
    library = compiler.library()
    x = np.zeros((5, 8), np.float32)
    result = library.run("gather_rows_mended", put(x), put(np.zeros(1, np.int32)), out(x.copy()), tiling=b"1234")
    assert result.status == 2


def test_short_workspace_is_out_of_range(compiler: Compiler) -> None:
    library = compiler.library()
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    arguments = (put(x), out(y), Argument(np.zeros(4, np.float32), WORKSPACE))
    tiling = np.zeros(2, np.int32).tobytes()
    assert "gm-out-of-range" in library.run("through_workspace", *arguments, tiling=tiling, blocks=2).names


def test_many_blocks_run_in_waves(compiler: Compiler) -> None:
    library = compiler.library()
    x = np.arange(300 * 8, dtype=np.float32).reshape(300, 8)
    y = np.zeros_like(x)
    shape = np.array([300, 8], np.int64).tobytes() + np.array([1, 0], np.int32).tobytes()
    result = library.run("ragged_rows_f32", put(x), out(y), tiling=shape, blocks=300, seed=9)
    assert result.names == set()
    np.testing.assert_array_equal(y, x + 1)


def test_every_reported_name_is_in_the_catalogue_and_the_page() -> None:
    catalogue = (INCLUDE / "moegrad_hostmodel" / "catalogue.h").read_text()
    names = [line.split('"')[1] for line in catalogue.splitlines() if line.startswith('    {"')]
    assert len(names) == len(set(names)) > 60
    page = (ROOT / "docs" / "hostmodel.md").read_text()
    assert [name for name in names if f"`{name}`" not in page] == []
    headers = "".join(path.read_text() for path in (INCLUDE / "moegrad_hostmodel").glob("*.h"))
    for name in names:
        used = f'"{name}"' in headers.replace(catalogue, "") or name.startswith(("missing-event-", "missing-barrier-"))
        assert used, name


def build_and_run(source: Path, program: Path) -> str:
    subprocess.run(["g++", *FLAGS, f"-I{INCLUDE}", str(source), "-o", str(program)], check=True, timeout=300)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("example", ["vector_add", "scaled_row_copy"])
def test_examples_build_and_run(tmp_path: Path, example: str) -> None:
    text = build_and_run(ROOT / "examples" / "ascendc" / f"{example}_main.cpp", tmp_path / example)
    assert "clean" in text
    assert "0 elements differ" in text or "0 of 100003 elements differ" in text


def test_program_of_the_page_builds_and_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "hostmodel.md").read_text()
    source = tmp_path / "twice.cpp"
    source.write_text(page.split("```cpp\n")[1].split("```")[0])
    assert "clean" in build_and_run(source, tmp_path / "twice")


def test_headers_are_short() -> None:
    for header in (INCLUDE / "moegrad_hostmodel").glob("*.h"):
        assert len(header.read_text().splitlines()) < 400, header.name
        assert max(map(len, header.read_text().splitlines())) <= 160, header.name
