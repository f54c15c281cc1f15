"""Dependencies flow one way: templates <- codegen -> generated <- moegrad."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = ["xdsl", "jinja2", "Cython", "rich", "typer", "setuptools"]


def loaded(statement: str) -> set[str]:
    """Names of the modules that a statement loads in a new process."""
    source = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd="/")
    return set(done.stdout.split())


def imports(path: Path, package: str) -> set[str]:
    """Absolute names of what a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {stem} | {f"{stem}.{alias.name}" for alias in node.names}
    return found


def room_imports(folder: str) -> dict[str, set[str]]:
    """File -> its imports, for every Python file of a room."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        below = path.parent.relative_to(ROOT / folder).parts
        room = ["moegrad"] if folder == "moegrad" else ["moegrad", folder]
        found[str(path.relative_to(ROOT))] = imports(path, ".".join([*room, *below]))
    return found


def offenders(folder: str, *rooms: str) -> dict[str, list[str]]:
    """Files of a room that import one of other rooms."""
    wrong = {}
    for name, imported in room_imports(folder).items():
        bad = sorted(each for each in imported if any(each == room or each.startswith(f"{room}.") for room in rooms))
        if bad:
            wrong[name] = bad
    return wrong


def test_importing_moegrad_loads_no_compiler() -> None:
    modules = loaded("import moegrad")
    assert not {name for name in modules if name.split(".")[0] in COMPILER}
    assert not {name for name in modules if name.startswith(("moegrad.codegen", "moegrad.tools", "moegrad.templates"))}


def test_the_run_time_does_not_import_the_compiler() -> None:
    assert offenders("moegrad", "moegrad.codegen", "moegrad.tools", "moegrad.templates", *COMPILER) == {}


def test_the_compiler_does_not_import_the_run_time_or_the_tools() -> None:
    run_time = [f"moegrad.{path.stem}" for path in (ROOT / "moegrad").glob("*.py*") if path.stem != "__init__"]
    assert offenders("codegen", "moegrad.tools", *run_time) == {}


def test_passes_do_not_import_targets() -> None:
    assert offenders("codegen/passes", "moegrad.codegen.targets") == {}
    assert offenders("codegen/dialect", "moegrad.codegen.targets", "moegrad.codegen.passes") == {}


def test_the_oracle_stands_alone() -> None:
    imported = imports(ROOT / "tools" / "oracle.py", "moegrad.tools")
    assert not {name for name in imported if name.startswith("moegrad")}


def test_the_cython_compiler_is_loaded_to_build_only() -> None:
    modules = loaded("import moegrad.codegen.targets.cython.emit, moegrad.codegen.targets.cython.build")
    assert not {name for name in modules if name.split(".")[0] in ("Cython", "rich", "typer")}


@pytest.mark.parametrize("name", ["codegen", "codegen.spec"])
def test_the_bare_name_is_refused(name: str) -> None:
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {name}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode != 0
    assert "the compiler is the package 'moegrad.codegen', it was imported as 'codegen'" in done.stderr
