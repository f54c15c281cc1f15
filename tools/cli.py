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
from ..codegen.dtypes import DTYPES
from ..codegen.errors import MoegradError, SpecError
from ..codegen.generate import kernel_files, module_files
from ..codegen.models import models
from ..codegen.operators import OPERATORS
from ..codegen.pipeline import PIPELINES, lower, pass_names
from ..codegen.sets import SETS, model_set
from ..codegen.targets.cython.build import build_modules
from ..codegen.targets.cython.emit import emit_module
from ..codegen.targets.cython.toolchain import ISA_FLAGS
from ..codegen.text import program_text
from ..codegen.writer import FileWriter
from .commands import register
from .sources import Source, resolve

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
console = Console()


class Target(StrEnum):
    """A target on the command line."""

    cython = "cython"


SourceArgument = Annotated[str, typer.Argument(help="an operator, or a program file ending in .mlir")]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="the operator's mode; `moegrad ops` lists them")]
DataOption = Annotated[str, typer.Option("--dtype", "-d", help="dtype D of the rows: f16, bf16 or f32")]
WeightOption = Annotated[str, typer.Option("--weight-dtype", "-p", help="dtype P of the weights; D where not given")]
TopkOption = Annotated[int, typer.Option("--topk", "-k", min=0, help="slots a token; 0 leaves it to the run time")]
HiddenOption = Annotated[int, typer.Option("--hidden", "-H", min=0, help="elements a row; 0 leaves it to the run time")]
TargetOption = Annotated[Target, typer.Option("--target", "-t", help="what to generate for")]


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
    shapes = Table("model", "experts", "topK", "hidden", title="Models of the default set")
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
    after: Annotated[str, typer.Option("--after", help="the pass to stop after; `program` for none")] = "",
    generic: Annotated[bool, typer.Option("--generic", help="the generic form, for other MLIR tools")] = False,
) -> None:
    """Print a program, as written or after a pass."""
    found = resolve(source, mode, dtype, weight_dtype, topk, hidden)
    program = found.program if after == "program" else lower(found.program, found.spec, target.value, after)
    print(program_text(program, generic), end="")


@app.command()
def generate(
    source: Annotated[str, typer.Argument(help="an operator, or a program file ending in .mlir")] = "",
    mode: ModeOption = "",
    dtype: DataOption = "bf16",
    weight_dtype: WeightOption = "",
    topk: TopkOption = 0,
    hidden: HiddenOption = 0,
    model: Annotated[str, typer.Option("--model", help="all modes and dtypes for the shape of one model")] = "",
    set_: Annotated[str, typer.Option("--set", help="reference, default or generic")] = "",
    target: TargetOption = Target.cython,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder; the reference set has its own")] = None,
    check: Annotated[bool, typer.Option("--check", help="write nothing; exit 1 where files are not fresh")] = False,
) -> None:
    """Write kernels; `moegrad generate --check` compares the committed reference set with fresh output."""
    if not source and not model and not set_:
        set_ = "reference"
    if sum(map(bool, (source, model, set_))) != 1:
        raise SpecError("generate: give one of an operator or file, --model, --set")
    writer = FileWriter(out or (reference_folder(target) if set_ == "reference" else Path("kernels")))
    for path, text in _texts(source, mode, (dtype, weight_dtype), (topk, hidden), model, set_).items():
        writer.add(path, text)
    if check:
        _check(writer, whole=bool(set_))
        return
    touched = writer.write(remove_stale=set_ == "reference")
    for path in touched:
        console.print(f"{'removed' if path not in writer.files else 'wrote'} {writer.root / path}", soft_wrap=True)
    console.print(f"{len(writer.files)} files, {len(touched)} changed")


def _texts(
    source: str, mode: str, dtypes: tuple[str, str], shape: tuple[int, int], model: str, set_: str
) -> dict[str, str]:
    """The files of one request."""
    if source:
        found = resolve(source, mode, *dtypes, *shape)
        return {f"{found.spec.key}.pyx": _text(found)}
    if model:
        return module_files(model_set(model), f"moegrad generate --model {model}")
    if set_ not in SETS:
        raise SpecError(f"--set: expected one of {', '.join(SETS)}; got {set_!r}")
    if set_ == "reference":
        return kernel_files(SETS[set_]())
    return module_files(SETS[set_](), f"moegrad generate --set {set_}")


def _text(found: Source) -> str:
    return emit_module(found.program, [found.spec], found.command, python=True)


def reference_folder(target: Target) -> Path:
    """Folder of the committed reference set of a target."""
    return Path(str(files("moegrad.generated").joinpath("__init__.py"))).parent / target.value


def _check(writer: FileWriter, whole: bool) -> None:
    differences = [line for line in writer.differences() if whole or not line.endswith(": stale")]
    for line in differences:
        console.print(f"{writer.root / line}", soft_wrap=True)
    if differences:
        raise typer.Exit(1)
    console.print(f"{len(writer.files)} files are fresh")


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
) -> None:
    """Compile kernels to extension modules that import without moegrad."""
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
def version() -> None:
    """Print the version."""
    print(__version__)


register(app)


def main() -> None:
    """Entry of the console script: a user's mistake is one clear line and exit status 2."""
    try:
        app()
    except (MoegradError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
