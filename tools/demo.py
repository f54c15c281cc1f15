"""`moegrad demo`: the main job on real input, told to somebody who knows MoE layers but not moegrad."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table

from .. import kernels
from ..codegen.generate import kernel_files
from ..codegen.models import Model, model
from ..codegen.operators import make_spec
from ..codegen.parsing import builtin_program
from ..codegen.pipeline import lower, pass_names
from ..codegen.text import program_text
from .demo_ascend import show_ascend
from .measure import REPEATS, TOKENS, ModelResult, ModeRun, measure, measured_modes, routing_of
from .report import write_report
from .routing import CAPACITY_FACTOR, Routing
from .tables import error_text, render, summary, yes_no
from .text import FILES
from .verify import verify_on

__all__ = ["MODELS", "run_demo"]

MODELS = ("gpt-oss-20b", "qwen3-30b-a3b", "deepseek-v3")
"""Small, fine-grained and large; the H of gpt-oss is no multiple of a power of two beyond 64."""

OPERATOR, MODE, DATA, WEIGHT = "finalize_routing_v2_grad", "scales", "bf16", "f32"
"""The mode whose way from program to kernel is shown, and the dtypes of everything that runs."""

CALLS = 15
"""Modes times layouts of both operators, for progress bars."""


def run_demo(
    report_path: Path,
    models: Sequence[str] = MODELS,
    *,
    console: Console | None = None,
    tokens: int = TOKENS,
    repeats: int = REPEATS,
    cases_per_combination: int = 4,
    seed: int = 0,
    verify_options: Mapping[str, Any] | None = None,
) -> int:
    """Compiles, runs and verifies on real text, shows how, and writes the HTML report.

    Args:
        report_path: where the HTML page goes.
        models: names from models.csv.
        console: where to print; standard output when not given.
        tokens: R.
        repeats: timed runs of kernel and NumPy reference each.
        cases_per_combination: of the verification at the end.
        seed: of its cases.
        verify_options: further arguments for `verify`.

    Returns:
        An exit status: 0 when everything agrees with the oracle, 1 when anything does not.
    """
    console = console or Console()
    chosen = [model(name) for name in models]
    _introduce(console, chosen, tokens)
    results = []
    for number, each in enumerate(chosen):
        console.print(Rule(f"[bold]{number + 1}. {each.name}"))
        results.append(_show_model(console, each, tokens, repeats, first=chosen[0]))
    ascend_passed = show_ascend(console, chosen[0])
    console.print(Rule("[bold]Verification"))
    console.print(
        "Real input meets few corner cases. So generated cases follow for every operator, mode and dtype: zero tokens, "
        "ragged sizes, dropped slots, NaN and infinity, on each instruction set that this machine runs."
    )
    options = {"cases_per_combination": cases_per_combination, "seed": seed, **(verify_options or {})}
    report = verify_on(console, **options)
    if report.passed:
        console.print(f"[green]{summary(report)}[/]")
    else:
        render(report, console)
    write_report(report_path, report, results)
    passed = report.passed and ascend_passed and all(result.passed for result in results)
    colour, verdict = ("green", "Everything agrees") if passed else ("bold red", "NOT everything agrees")
    console.print(f"\n[{colour}]{verdict} with the oracle.[/] All results as a page: {escape(str(report_path))}")
    return 0 if passed else 1


def _introduce(console: Console, models: Sequence[Model], tokens: int) -> None:
    console.print(Rule("[bold]moegrad: kernels for the backward pass of MoE routing"))
    console.print(
        "An MoE layer sends each token to K experts and sums their outputs, weighted. The backward pass of that last "
        "step needs two gradients: of every expert's output row, and of every weight. moegrad compiles it from a short "
        "program, for one dtype, K and hidden size at a time, and holds each kernel against a NumPy oracle.\n"
        f"Below, {tokens} words of Python's standard library go through routers of the shape of "
        f"{', '.join(each.name for each in models)}.\n"
    )
    spec = make_spec(OPERATOR, MODE, DATA, WEIGHT)
    console.print(
        f"This is the program of one mode ({OPERATOR}, {MODE}): the mathematics on whole tensors. R tokens, K experts "
        "a token, N = R * K slots, H hidden size, M rows; D and P are the dtypes of rows and weights."
    )
    _code(console, program_text(builtin_program(MODE)), "llvm")
    console.print(f"The compiler takes it through the passes {', '.join(pass_names('cython'))}.")
    variant = kernels.usable()[0]
    console.print(
        f"This machine runs the {variant} kernels: {len(kernels.compiled(variant))} modules such as {spec.module}, "
        "each with a generic kernel and those of the shapes it was built for.\n"
    )


def _show_model(console: Console, each: Model, tokens: int, repeats: int, first: Model) -> ModelResult:
    with _progress(console, "routing the text", None):
        routing = routing_of(each, tokens)
    _show_text(console, each, routing)
    _show_kernel(console, each, first)
    with _progress(console, f"{each.name}: modes", CALLS) as bar:
        runs = measured_modes(routing, DATA, WEIGHT, repeats, lambda: bar.advance(bar.task_ids[0]))
    result = measure(each, routing, runs, DATA, WEIGHT)
    _show_runs(console, result)
    return result


@contextmanager
def _progress(console: Console, text: str, total: int | None) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(text, total=total)
        yield bar


def _show_text(console: Console, each: Model, routing: Routing) -> None:
    frequent = ", ".join(f"{word} {count}" for word, count in routing.text_in_common[:6])
    console.print(
        f"{each.experts} experts, top {each.topk}, hidden size {each.hidden}. {len(routing.words)} words of "
        f"{len(FILES)} files, {len(set(routing.words))} distinct (most frequent: {frequent}), fill "
        f"{routing.expert_idx.size} slots.\n"
        f"The busiest expert takes {routing.skew:.1f} times the mean load. With room for {CAPACITY_FACTOR:g} times the "
        f"mean ({routing.capacity} rows an expert), {routing.dropped:.0%} of the slots are dropped."
    )
    console.print(f"Experts by load, busiest first; the mean is {routing.loads.mean():.0f} slots:")
    console.print(_load_chart(routing))


def _load_chart(routing: Routing, bars: int = 8, width: int = 40) -> Table:
    """Experts by load, busiest first; where there are many, the mean of as many groups as fit."""
    loads = sorted((int(load) for load in routing.loads), reverse=True)
    groups = min(bars, len(loads))
    table = Table(box=None, pad_edge=False, show_header=False)
    for number in range(groups):
        start, end = (len(loads) * edge // groups for edge in (number, number + 1))
        mean = sum(loads[start:end]) / (end - start)
        name = f"experts {start + 1}-{end}" if end - start > 1 else f"expert {start + 1}"
        table.add_row(name, "█" * round(width * mean / max(loads[0], 1)) or "▏", f"{mean:.0f} slots")
    return table


def _show_kernel(console: Console, each: Model, first: Model) -> None:
    """The lowered program and its source; for later models only what is new about them."""
    spec = make_spec(OPERATOR, MODE, DATA, WEIGHT, each.topk, each.hidden)
    ((name, text),) = kernel_files([spec]).items()
    lowered = _lowered(each)
    sizes = f"K = {each.topk} and H = {each.hidden}"
    if each != first and lowered == _resized(_lowered(first), first, each):
        console.print(f"\nThe program after the last pass is the one above with {sizes}, printed as")
        console.print(name, soft_wrap=True)
        return
    console.print(
        f"\nThe program after the last pass, bound to {DATA} rows, {WEIGHT} weights, {sizes}. "
        "Each gradient row is loaded once for its K slots."
    )
    _code(console, lowered, "llvm")
    console.print(f"It is printed as {name}, {len(text.splitlines())} lines of Cython.", soft_wrap=True)
    if each == first:
        console.print("The function that every token runs:")
        _code(console, _token_function(text), "cython")


def _lowered(each: Model) -> str:
    spec = make_spec(OPERATOR, MODE, DATA, WEIGHT, each.topk, each.hidden)
    return program_text(lower(builtin_program(MODE), spec, "cython"))


def _resized(text: str, old: Model, new: Model) -> str:
    """A lowered program with the sizes of another model in every place where sizes stand."""
    for before, after in ((old.topk, new.topk), (old.hidden, new.hidden)):
        text = re.sub(
            rf"(?<=x){before}(?=x)|(?<=<){before}(?=x)|(?<=__[kh]){before}(?!\d)|(?<= = ){before}(?= :)",
            str(after),
            text,
        )
    return text


def _token_function(text: str) -> str:
    """The first function of a generated source, which handles one token."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("cdef ") and "token" in line), 0)
    end = next((i for i in range(start + 1, len(lines)) if not lines[i] and not lines[i - 1]), len(lines))
    return "\n".join(lines[start:end]).rstrip()


def _code(console: Console, text: str, language: str) -> None:
    syntax = Syntax("", language, theme="ansi_light", background_color="default")
    console.print(syntax.highlight(text.rstrip()), soft_wrap=True)


def _show_runs(console: Console, result: ModelResult) -> None:
    which = " and ".join(sorted({_kind(run) for run in result.runs}))
    variants = ", ".join(sorted({run.kernel.variant for run in result.runs}))
    console.print(
        f"\nAll modes of both operators on this routing, {result.data} rows and {result.weight} weights; {which} "
        f"kernels, {variants}. The row gradient must have the oracle's bits, the error of a weight gradient stay below "
        "its bound. Dropless: every slot has a row. Truncated: rows past a limit do not exist. Capacity: each expert "
        "takes C rows, slots past them are dropped."
    )
    for operator, runs in itertools.groupby(result.runs, lambda run: run.operator):
        console.print(_run_table(operator, runs))
    console.print("Times are medians and include all checks. The ratio is NumPy's time over ours, on this machine.\n")
    for run in result.runs:
        if not run.passed:
            where = f"{run.operator} {run.mode}, {run.layout}: {run.message}"
            console.print(f"[bold red]FAILED[/] {escape(where)}", soft_wrap=True)


def _kind(run: ModeRun) -> str:
    return "specialised" if run.kernel.specialised else "generic"


def _run_table(operator: str, runs: Iterable[ModeRun]) -> Table:
    table = Table(title=operator, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("mode", "layout", "kernel", "rows\nbitwise"):
        table.add_column(name, no_wrap=True)
    for name in ("error\n/ bound", "ms", "NumPy\nms", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        error = error_text(run.weight_error)
        table.add_row(
            run.mode,
            run.layout,
            _kind(run),
            f"[{'green' if run.rows_bitwise else 'bold red'}]{yes_no(run.rows_bitwise)}[/]",
            error if run.passed else f"[bold red]{error}[/]",
            f"{run.seconds * 1e3:.1f}",
            f"{run.numpy_seconds * 1e3:.1f}",
            f"{run.ratio:.1f}x",
        )
    return table
