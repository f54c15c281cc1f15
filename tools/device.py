"""Commands for device users: writing an operator project, and the host ACL that clients compile against."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from ..codegen.chips import DEFAULT_CHIP
from ..codegen.dtypes import dtype as dtype_row
from ..codegen.errors import MoegradError, SpecError
from ..codegen.targets.project.emit import Project, ProjectSpec, project_spec
from ..codegen.targets.project.hostlib import HostLibrary, build_host_library, hostmodel_dir
from ..codegen.targets.project.launch import LaunchProject
from ..codegen.writer import FileWriter


def wanted_project(soc: str, model: str, topk: int, hidden: int, dtype: str, weight_dtype: str) -> ProjectSpec:
    """The spec that options ask for."""
    data = dtype_row(dtype).tag if dtype else ""
    weight = dtype_row(weight_dtype).tag if weight_dtype else ""
    return project_spec(soc, model, topk, hidden, data, weight)


def write_project(console: Console, folder: Path, project: Project | LaunchProject, check: bool) -> None:
    """Writes a project into a folder of its own, or says what differs in it."""
    if folder.exists() and not folder.is_dir():
        raise MoegradError(f"--project: {folder} is a file; expected a folder")
    ours = (folder / "CMakeLists.txt").exists()
    if not check and folder.is_dir() and any(folder.iterdir()) and not ours:
        raise MoegradError(f"--project: {folder} holds other files; expected an empty folder, or one of a project")
    with console.status("generating kernels"):
        files = project.files
    writer = FileWriter(folder, project.owned)
    for path, text in files.items():
        writer.add(path, text)
    if check:
        differences = writer.differences()
        for line in differences:
            console.print(f"{folder / line}", soft_wrap=True)
        if differences:
            raise typer.Exit(1)
        console.print(f"{len(files)} files are fresh")
        return
    changed = writer.write(remove_stale=True)
    console.print(
        f"{len(files)} files in {folder}, {len(changed)} changed; its README.md says how to build it", soft_wrap=True
    )


def library_of(spec: ProjectSpec) -> HostLibrary:
    """The host library of a project, built where it is not; progress goes to stderr, where that is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling for the host model", total=None)
        return build_host_library(Project(spec), progress=lambda done, of: bar.update(task, completed=done, total=of))


def hostacl(
    cflags: Annotated[bool, typer.Option("--cflags", help="print where the headers are")] = False,
    libs: Annotated[bool, typer.Option("--libs", help="print how to link")] = False,
    library: Annotated[bool, typer.Option("--library", help="print the path of the shared library")] = False,
    sources: Annotated[bool, typer.Option("--sources", help="print the folder of the host model's sources")] = False,
    soc: Annotated[str, typer.Option("--soc", help="ascend910b, ascend910_93 or ascend950")] = DEFAULT_CHIP,
    model: Annotated[str, typer.Option("--model", help="add kernels for the shape of one model")] = "",
    topk: Annotated[int, typer.Option("--topk", "-k", min=0, help="with --hidden: add kernels for one shape")] = 0,
    hidden: Annotated[int, typer.Option("--hidden", "-H", min=0, help="with --topk")] = 0,
    dtype: Annotated[str, typer.Option("--dtype", "-d", help="one D only; all where not given")] = "",
    weight_dtype: Annotated[str, typer.Option("--weight-dtype", "-p", help="one P only; all where not given")] = "",
) -> None:
    """Flags for clients of the two-phase operators: g++ client.cpp $(moegrad hostacl --cflags --libs).

    The library with the host ACL, the operators and their kernels is built the first time, which takes a minute or
    two; a single --dtype and --weight-dtype make that faster.
    """
    if sources:
        print(hostmodel_dir())
        return
    if not (cflags or libs or library):
        raise SpecError("hostacl: give --cflags, --libs, --library or --sources")
    built = library_of(wanted_project(soc, model, topk, hidden, dtype, weight_dtype))
    flags = [*(built.cflags if cflags else ()), *(built.libs if libs else ())]
    if library:
        flags.append(str(built.path))
    sys.stdout.write(" ".join(flags) + "\n")
