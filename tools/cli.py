"""The ``moegrad`` command."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..codegen import __version__
from ..codegen.chips import DEFAULT_CHIP
from ..codegen.chips import chip as known_chip
from ..codegen.dtypes import DTYPES
from ..codegen.errors import MoegradError, SpecError
from ..codegen.generate import ASCEND_FILES, ascend_files, ascend_options, kernel_files, module_files
from ..codegen.interface import contract_module, with_tables
from ..codegen.models import models
from ..codegen.operators import OPERATORS
from ..codegen.parsing import function
from ..codegen.passes.plan_ascend import PLAN, plan_table
from ..codegen.pipeline import PIPELINES, lower, pass_names
from ..codegen.sets import SETS, model_set
from ..codegen.targets.ascendc.emit import emit_kernel
from ..codegen.targets.ascendc.hostbuild import build_kernels, include_dir
from ..codegen.targets.cython.build import build_modules
from ..codegen.targets.cython.emit import emit_module
from ..codegen.targets.cython.toolchain import ISA_FLAGS
from ..codegen.text import program_text
from ..codegen.writer import FileWriter
from .commands import register
from .device import hostacl, wanted_project, write_project
from .sources import Source, resolve

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()


class Target(StrEnum):
    """A target on the command line."""

    cython = "cython"
    ascendc = "ascendc"


OWNED = {Target.cython: ("*.pyx",), Target.ascendc: ASCEND_FILES}
"""Patterns of the files of a target's reference set."""

USER_FLAGS = "-std=c++17 -O1 -fwrapv -ffp-contract=off"
"""What g++ needs for a kernel on the host model: 32-bit products wrap as on the device, and no FMA appears."""

SourceArgument = Annotated[str, typer.Argument(help="an operator, or a program file ending in .mlir")]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="the operator's mode; `moegrad ops` lists them")]
DataOption = Annotated[str, typer.Option("--dtype", "-d", help="dtype D of the rows: f16, bf16 or f32")]
WeightOption = Annotated[str, typer.Option("--weight-dtype", "-p", help="dtype P of the weights; D where not given")]
TopkOption = Annotated[int, typer.Option("--topk", "-k", min=0, help="slots a token; 0 leaves it to the run time")]
HiddenOption = Annotated[int, typer.Option("--hidden", "-H", min=0, help="elements a row; 0 leaves it to the run time")]
ChipOption = Annotated[str, typer.Option("--chip", help="for ascendc: ascend910b, ascend910_93, ascend950, ...")]
TargetOption = Annotated[Target, typer.Option("--target", "-t", help="what to generate for")]


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Kernels for the backward pass of MoE routing: compile, verify and measure them."""


def checked_chip(chip: str, target: Target) -> str:
    """Name of the chip for the Ascend target, refused by name where it cannot run kernels; empty for others."""
    if target is Target.ascendc:
        return known_chip(chip or DEFAULT_CHIP).name
    if chip:
        raise SpecError(f"--chip: the target {target.value} has no chips, got {chip!r}")
    return ""


@app.command()
def ops() -> None:
    """Operators, modes, dtypes, targets and models."""
    table = Table(title="Operators")
    for column in ("operator", "mode", "dtypes"):
        table.add_column(column, no_wrap=True)
    table.add_column("computes")
    shared = []
    for operator in OPERATORS.values():
        for mode in operator.modes:
            table.add_row(operator.name, mode.name, "D x P" if mode.weighted else "D", mode.summary)
            if mode.kernel:
                shared.append(f"{operator.name} {mode.name} runs the kernel of {mode.kernel.replace('__', ' ')}")
    console.print(table)
    console.print("\n".join(shared), soft_wrap=True)
    console.print(f"dtypes D and P: {', '.join(DTYPES)}")
    for target in PIPELINES:
        console.print(f"target {target}: passes {', '.join(pass_names(target))}", soft_wrap=True)
    shapes = Table("model", "experts", "topK", "hidden", title="Models")
    for model in models():
        shapes.add_row(model.name, str(model.experts), str(model.topk), str(model.hidden))
    console.print(shapes)


@app.command()
def ir(
    source: SourceArgument,
    mode: ModeOption = "",
    dtype: DataOption = "bf16",
    weight_dtype: WeightOption = "",
    topk: TopkOption = 0,
    hidden: HiddenOption = 0,
    target: TargetOption = Target.cython,
    chip: ChipOption = "",
    after: Annotated[str, typer.Option("--after", help="the pass to stop after; `program` for none")] = "",
    generic: Annotated[bool, typer.Option("--generic", help="the generic form, for other MLIR tools")] = False,
) -> None:
    """Print a program, as written or after a pass."""
    found = resolve(source, mode, dtype, weight_dtype, topk, hidden)
    chip = checked_chip(chip, target)
    program = found.program if after == "program" else lower(found.program, found.spec, target.value, after, chip)
    if PLAN in function(program).attributes:
        print("".join(f"// {line}\n" for line in plan_table(program).splitlines()), end="")
    print(program_text(program, generic), end="")


@app.command()
def generate(
    source: Annotated[str, typer.Argument(help="an operator, or a program file ending in .mlir")] = "",
    mode: ModeOption = "",
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            "-d",
            help="dtype D: f16, bf16 (the default) or f32; a project has all three where it is not given",
        ),
    ] = "",
    weight_dtype: WeightOption = "",
    topk: TopkOption = 0,
    hidden: HiddenOption = 0,
    model: Annotated[str, typer.Option("--model", help="all modes and dtypes for the shape of one model")] = "",
    set_: Annotated[str, typer.Option("--set", help="reference, default or generic")] = "",
    target: Annotated[
        Target | None, typer.Option("--target", "-t", help="cython; for the reference set every target")
    ] = None,
    chip: ChipOption = "",
    project: Annotated[Path | None, typer.Option("--project", help="write an operator package's project here")] = None,
    launch: Annotated[Path | None, typer.Option("--launch", help="write a project for direct launch here")] = None,
    soc: Annotated[str, typer.Option("--soc", help="chip of a project; ascend910b, ascend910_93 or ascend950")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder; the reference set has its own")] = None,
    check: Annotated[bool, typer.Option("--check", help="write nothing; exit 1 where files are not fresh")] = False,
) -> None:
    """Write kernels; `moegrad generate --check` compares the committed reference set with fresh output."""
    if project or launch:
        if source or mode or set_ or target or chip or out:
            raise SpecError(
                "generate: a project takes --soc, --model, --topk, --hidden, --dtype and --weight-dtype only"
            )
        wanted = wanted_project(soc or DEFAULT_CHIP, model, topk, hidden, dtype, weight_dtype)
        write_project(console, project, launch, wanted, check)
        return
    if soc:
        raise SpecError(f"--soc: is for --project and --launch, got {soc!r}; kernels take --chip")
    dtype = dtype or "bf16"
    if not source and not model and not set_:
        set_ = "reference"
    if sum(map(bool, (source, model, set_))) != 1:
        raise SpecError("generate: give one of an operator or file, --model, --set")
    if not source and (mode or weight_dtype or topk or hidden):
        raise SpecError("generate: --mode, --weight-dtype, --topk and --hidden are for one operator or file")
    found = resolve(source, mode, dtype, weight_dtype, topk, hidden) if source else None
    targets = [target or Target.cython] if target or set_ != "reference" else list(Target)
    writers = []
    for each in targets:
        folder = out or (reference_folder(each) if set_ == "reference" else Path("kernels"))
        writers.append(FileWriter(folder, OWNED[each]))
        each_chip = checked_chip(chip, each) if len(targets) == 1 else DEFAULT_CHIP
        for path, text in _texts(found, model, set_, each, each_chip).items():
            writers[-1].add(path, text)
    if set_ == "reference" and target is None and out is None:
        writers += _interface_writers()
    if check:
        _check(writers, whole=bool(set_))
    else:
        _write(writers, remove_stale=set_ == "reference")


def _texts(found: Source | None, model: str, set_: str, target: Target, chip: str) -> dict[str, str]:
    """The files of one request."""
    if found is not None:
        if target is Target.ascendc:
            return emit_kernel(found.program, found.spec, f"{found.command} {ascend_options(chip)}", chip).files
        return {f"{found.spec.key}.pyx": _text(found)}
    if not model and set_ not in SETS:
        raise SpecError(f"--set: expected one of {', '.join(SETS)}; got {set_!r}")
    specs = model_set(model) if model else SETS[set_]()
    if target is Target.ascendc:
        return ascend_files(specs, chip)
    if set_ == "reference":
        return kernel_files(specs)
    return module_files(specs, f"moegrad generate --model {model}" if model else f"moegrad generate --set {set_}")


def _text(found: Source) -> str:
    return emit_module(found.program, [found.spec], found.command, python=True)


def reference_folder(target: Target) -> Path:
    """Folder of the committed reference set of a target."""
    return _generated() / target.value


def _generated() -> Path:
    return Path(str(files("moegrad.generated").joinpath("__init__.py"))).parent


def _interface_writers() -> list[FileWriter]:
    """What is written from the operators' arguments: tables of the run time and, in a checkout, of the docs."""
    tables = FileWriter(_generated(), ("contract.py",))
    tables.add("contract.py", contract_module())
    page = _generated().parent / "docs" / "operators.md"
    if not page.exists():
        return [tables]
    docs = FileWriter(page.parent, (page.name,))
    docs.add(page.name, with_tables(page.read_text(encoding="utf-8")))
    return [tables, docs]


def _check(writers: list[FileWriter], whole: bool) -> None:
    """Names every file that is not fresh; those that nobody asked for only where the set is whole."""
    differences = [
        f"{writer.root / line}"
        for writer in writers
        for line in writer.differences()
        if whole or not line.endswith(": stale")
    ]
    for line in differences:
        console.print(line, soft_wrap=True)
    if differences:
        raise typer.Exit(1)
    console.print(f"{sum(len(writer.files) for writer in writers)} files are fresh")


def _write(writers: list[FileWriter], remove_stale: bool) -> None:
    count = 0
    for writer in writers:
        for path in writer.write(remove_stale=remove_stale):
            count += 1
            console.print(f"{'wrote' if path in writer.files else 'removed'} {writer.root / path}", soft_wrap=True)
    console.print(f"{sum(len(writer.files) for writer in writers)} files, {count} changed")


@app.command()
def build(
    sources: Annotated[list[str], typer.Argument(help="an operator, .mlir or .pyx files, or a folder of .pyx files")],
    mode: ModeOption = "",
    dtype: DataOption = "bf16",
    weight_dtype: WeightOption = "",
    topk: TopkOption = 0,
    hidden: HiddenOption = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the extension modules")] = Path("kernels"),
    isa: Annotated[str, typer.Option("--isa", help="baseline, avx2 or avx512")] = "baseline",
    native: Annotated[bool, typer.Option("--native", help="tune for this machine's processor only")] = False,
    target: TargetOption = Target.cython,
    chip: ChipOption = "",
) -> None:
    """Compile kernels: to extension modules that import without moegrad, or to a library for the host model."""
    chip = checked_chip(chip, target)
    if target is Target.ascendc:
        wanted = [resolve(source, mode, dtype, weight_dtype, topk, hidden) for source in sources]
        kernels = [emit_kernel(each.program, each.spec, each.command, chip) for each in wanted]
        with console.status(f"compiling {len(kernels)} kernels for the host model"):
            library = build_kernels(kernels, out)
        console.print(f"built {library}", soft_wrap=True)
        return
    if isa not in ISA_FLAGS:
        raise SpecError(f"--isa: expected one of {', '.join(ISA_FLAGS)}; got {isa!r}")
    paths: list[Path] = []
    for source in sources:
        if source.endswith(".pyx"):
            paths.append(Path(source))
        elif Path(source).is_dir():
            paths += sorted(Path(source).glob("*.pyx"))
        else:
            found = resolve(source, mode, dtype, weight_dtype, topk, hidden)
            writer = FileWriter(out)
            writer.add(f"{found.spec.key}.pyx", _text(found))
            writer.write()
            paths.append(out / f"{found.spec.key}.pyx")
    if not paths:
        raise SpecError(f"build: no .pyx files in {', '.join(sources)}")
    with console.status(f"compiling {len(paths)} modules"):
        built = build_modules(paths, out, isa, native)
    for path in built:
        console.print(f"built {path}", soft_wrap=True)


@app.command()
def hostmodel(
    cflags: Annotated[bool, typer.Option("--cflags", help="print the flags for g++")] = False,
    chip: ChipOption = "",
) -> None:
    """How to compile a kernel of your own against the host model; docs/hostmodel.md has the rest."""
    flags = f"{USER_FLAGS} -DMOEGRAD_CHIP={known_chip(chip or DEFAULT_CHIP).name} -I{include_dir()}"
    print(flags if cflags else f"g++ {flags} kernel.cpp -o kernel && ./kernel")


app.command()(hostacl)
register(app)


def main() -> None:
    """Entry of the console script: a user's mistake is one clear line and exit status 2."""
    try:
        app()
    except (MoegradError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
