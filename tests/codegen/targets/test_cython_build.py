"""The builder: what fails leaves nothing behind and says why; many builds at once do not disturb each other."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from moegrad.codegen.errors import BuildError
from moegrad.codegen.targets.cython.build import build_modules, load_module, product_name

TINY = "# cython: language_level=3\ndef answer():\n    return 42\n"

BROKEN = {
    "cython": ("def f(:\n", "broken.pyx:1:6: Expected"),
    "name": ("cdef int f():\n    return nothing_here\n", "undeclared name not builtin: nothing_here"),
    "c": ('cdef extern from "no_such_header.h":\n    int x\ndef f():\n    return x\n', "no_such_header.h"),
}


def listing(folder: Path) -> list[str]:
    """Names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def build_in_a_process(folder: Path) -> str:
    """What a build of a folder prints: the exception, and anything that got past it."""
    source = (
        "import sys\nfrom pathlib import Path\n"
        "from moegrad.codegen.errors import BuildError\n"
        "from moegrad.codegen.targets.cython.build import build_modules\n"
        "folder = Path(sys.argv[1])\n"
        "try:\n    build_modules([folder / 'broken.pyx'], folder / 'out')\n"
        "except BuildError as error:\n    print('BuildError', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, str(folder)], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("case", sorted(BROKEN))
def test_a_source_that_does_not_build(tmp_path: Path, case: str) -> None:
    text, reason = BROKEN[case]
    (tmp_path / "broken.pyx").write_text(text)
    printed = build_in_a_process(tmp_path)
    assert printed.startswith("BuildError build: ")
    assert reason in printed
    assert listing(tmp_path / "out") == []
    assert listing(tmp_path) == ["broken.pyx", "out"]


def test_the_reason_is_in_the_exception_where_stderr_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "broken.pyx").write_text(BROKEN["name"][0])
    replaced = io.StringIO()
    with redirect_stderr(replaced), pytest.raises(BuildError) as error:
        build_modules([tmp_path / "broken.pyx"], tmp_path / "out")
    assert BROKEN["name"][1] in str(error.value)
    assert replaced.getvalue() == ""


def test_one_broken_source_among_good_ones_installs_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.pyx").write_text(TINY)
    (tmp_path / "broken.pyx").write_text("def f(:\n")
    with pytest.raises(BuildError, match="broken"):
        build_modules([tmp_path / "good.pyx", tmp_path / "broken.pyx"], tmp_path / "out")
    assert listing(tmp_path / "out") == []


def test_a_missing_source(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as error:
        build_modules([tmp_path / "none.pyx"], tmp_path / "out")
    assert str(error.value) == f"build: no such file: {tmp_path / 'none.pyx'}"
    assert not (tmp_path / "out").exists()


def test_a_build_leaves_the_product_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "tiny.pyx").write_text(TINY)
    (product,) = build_modules([tmp_path / "tiny.pyx"], tmp_path / "out")
    assert product == tmp_path / "out" / product_name("tiny")
    assert listing(tmp_path / "out") == [product.name]
    assert listing(tmp_path) == ["out", "tiny.pyx"]
    assert load_module(product).answer() == 42


def test_what_is_no_extension_module_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(BuildError, match=r"a\.txt is no extension module"):
        load_module(tmp_path / "a.txt")


def build_at_once(folder: Path, count: int) -> None:
    """Builds and loads one module in several processes."""
    (folder / "tiny.pyx").write_text(TINY)
    source = (
        "import sys\nfrom pathlib import Path\n"
        "from moegrad.codegen.targets.cython.build import build_modules, load_module\n"
        "folder = Path(sys.argv[1])\n"
        "(product,) = build_modules([folder / 'tiny.pyx'], folder / 'out')\n"
        "assert load_module(product).answer() == 42\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", source, str(folder)], stderr=subprocess.PIPE, text=True, cwd="/")
        for _ in range(count)
    ]
    failures = [message for process in running if (message := process.communicate()[1]) or process.returncode]
    assert failures == []
    assert listing(folder / "out") == [product_name("tiny")]


def test_two_builds_at_once_into_one_folder(tmp_path: Path) -> None:
    build_at_once(tmp_path, 2)


@pytest.mark.slow
def test_eight_builds_at_once_into_one_folder(tmp_path: Path) -> None:
    build_at_once(tmp_path, 8)
