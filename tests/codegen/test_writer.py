"""The writer: no path twice, no needless change, nothing stale, nothing half written."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from moegrad.codegen.errors import MoegradError
from moegrad.codegen.writer import FileWriter


def writer(root: Path, **files: str) -> FileWriter:
    """A writer with files named without their ending."""
    made = FileWriter(root)
    for name, text in files.items():
        made.add(f"{name}.pyx", text)
    return made


def listing(root: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_files_are_written_once(tmp_path: Path) -> None:
    assert writer(tmp_path / "new", b="2\n", a="1\n").write() == ["a.pyx", "b.pyx"]
    assert (tmp_path / "new" / "a.pyx").read_bytes() == b"1\n"
    assert listing(tmp_path) == ["new", "new/a.pyx", "new/b.pyx"]
    assert stat.S_IMODE((tmp_path / "new" / "a.pyx").stat().st_mode) == 0o644


def test_newlines_do_not_depend_on_the_machine(tmp_path: Path) -> None:
    writer(tmp_path, a="1\n2\n").write()
    assert (tmp_path / "a.pyx").read_bytes() == b"1\n2\n"


def test_a_path_cannot_be_asked_for_twice(tmp_path: Path) -> None:
    made = writer(tmp_path, a="1\n")
    with pytest.raises(MoegradError) as error:
        made.add("a.pyx", "1\n")
    assert str(error.value) == "a.pyx: two kernels want the same file"


def test_a_file_without_changes_is_not_touched(tmp_path: Path) -> None:
    writer(tmp_path, a="1\n", b="1\n").write()
    for name in ("a.pyx", "b.pyx"):
        os.utime(tmp_path / name, (1, 1))
    assert writer(tmp_path, a="1\n", b="2\n").write() == ["b.pyx"]
    assert (tmp_path / "a.pyx").stat().st_mtime == 1
    assert (tmp_path / "b.pyx").stat().st_mtime > 1


def test_stale_files_are_removed_on_request_only(tmp_path: Path) -> None:
    writer(tmp_path, a="1\n", old="1\n").write()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "kernel.so").write_text("")
    assert writer(tmp_path, a="1\n").write() == []
    assert writer(tmp_path, a="1\n").write(remove_stale=True) == ["old.pyx"]
    assert listing(tmp_path) == ["__init__.py", "a.pyx", "kernel.so"]


def test_differences(tmp_path: Path) -> None:
    writer(tmp_path, same="1\n", other="1\n", old="1\n").write()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert writer(tmp_path, same="1\n", other="2\n", new="1\n").differences() == [
        "new.pyx: missing",
        "other.pyx: differs",
        "old.pyx: stale",
    ]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_differences_do_not_make_the_folder(tmp_path: Path) -> None:
    assert writer(tmp_path / "none", a="1\n").differences() == ["a.pyx: missing"]
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_no_text_differs(tmp_path: Path) -> None:
    (tmp_path / "a.pyx").write_bytes(b"\xff\xfe")
    assert writer(tmp_path, a="1\n").differences() == ["a.pyx: differs"]
    assert writer(tmp_path, a="1\n").write() == ["a.pyx"]


def test_a_file_with_other_newlines_differs(tmp_path: Path) -> None:
    (tmp_path / "a.pyx").write_bytes(b"1\r\n")
    assert writer(tmp_path, a="1\n").differences() == ["a.pyx: differs"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer(tmp_path, a="old\n").write()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        writer(tmp_path, a="new\n").write()
    assert listing(tmp_path) == ["a.pyx"]
    assert (tmp_path / "a.pyx").read_text() == "old\n"


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    texts = {letter * 200_000 for letter in "ab"}
    writer(tmp_path, a="a" * 200_000).write()
    stop, seen = threading.Event(), set[str]()

    def read() -> None:
        while not stop.is_set():
            seen.add((tmp_path / "a.pyx").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        for text in sorted(texts):
            writer(tmp_path, a=text).write()
    stop.set()
    reader.join()
    assert seen <= texts
