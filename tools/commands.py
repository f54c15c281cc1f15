"""Commands that run kernels: verify, bench, demo and doctor."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..codegen.dtypes import dtype as dtype_row
from ..codegen.errors import SpecError
from ..codegen.models import model
from .ascend_profile import Profile

HtmlOption = Annotated[Path | None, typer.Option("--html", help="write a self-contained page here")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", help="write the results as JSON here; - for standard output")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    app.command()(verify)
    app.command()(bench)
    app.command()(demo)
    app.command()(doctor)


def verify(
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="cython, ascendc, aclnn, one of the last two with :CHIP, or all kernels"),
    ] = "cython",
    cases: Annotated[int, typer.Option("--cases", min=1, help="cases of each operator x mode x D x P")] = 8,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the cases")] = 0,
    operator: Annotated[str | None, typer.Option("--operator", help="one operator only")] = None,
    mode: Annotated[str | None, typer.Option("--mode", "-m", help="one mode only")] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", "-d", help="one D only")] = None,
    weight_dtype: Annotated[str | None, typer.Option("--weight-dtype", "-p", help="one P only")] = None,
    profile: Annotated[bool, typer.Option("--profile", help="print counters of the Ascend kernels")] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Hold every mode and dtype against the oracle; exit 1 where anything disagrees."""
    from .report import write_report
    from .targets import targets_named
    from .verify import render, verify_on

    console = Console(stderr=str(json) == "-")
    report = verify_on(
        console,
        targets=targets_named(target),
        cases_per_combination=cases,
        seed=seed,
        operator=operator,
        mode=mode,
        data=dtype and dtype_row(dtype).tag,
        weight=weight_dtype and dtype_row(weight_dtype).tag,
    )
    render(report, console)
    found = _profile(targets_named(target), console) if profile else {}
    _write_json(json, _with_profiles(report.to_json(), found))
    if html is not None:
        write_report(html, report)
        console.print(f"wrote {html}", soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)


def bench(
    mode: Annotated[
        list[str] | None, typer.Option("--mode", "-m", help="plain, scales or scales_bias; repeatable")
    ] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", "-d", help="D; repeatable")] = None,
    weight_dtype: Annotated[
        list[str] | None, typer.Option("--weight-dtype", "-p", help="P; repeatable, else D")
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="T")] = 2048,
    shape: Annotated[list[str] | None, typer.Option("--shape", help="K,H or a model's name; repeatable")] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=3, help="interleaved rounds")] = 15,
    peers: Annotated[bool, typer.Option(help="time NumPy, numba and torch where they are installed")] = True,
    json: JsonOption = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="write a picture here (needs matplotlib)")] = None,
    scaling: Annotated[
        bool, typer.Option("--scaling", help="how time grows with T, K, H and dropped slots instead; peak memory")
    ] = False,
    choices: Annotated[
        bool, typer.Option("--choices", help="what each choice of plan-cpu and of the build brings instead")
    ] = False,
    calls: Annotated[bool, typer.Option("--calls", help="what a small call costs beside its kernel instead")] = False,
) -> None:
    """Time kernels beside a streaming copy and other packages, all in one run."""
    console = Console(stderr=str(json) == "-")
    instead = [name for name, wanted in (("choices", choices), ("scaling", scaling), ("calls", calls)) if wanted]
    if instead:
        _bench_instead(instead, repeats, console, json)
        return
    from . import bench as benchmark
    from .bench_view import plot as draw
    from .bench_view import render as show

    shapes = [(tokens, *_shape(text)) for text in shape or ["8,4096", "8,7168", "2,4096"]]
    modes, dtypes = mode or list(benchmark.MODES), dtype or ["f32", "bf16", "f16"]
    _known("--mode", modes, benchmark.MODES)
    data = [dtype_row(name).tag for name in dtypes]
    weights = [dtype_row(name).tag for name in weight_dtype or []] or [""]
    settings = benchmark.settings(modes, data, weights, shapes)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("measuring", total=len(settings))
        report = benchmark.run(settings, repeats, peers, lambda label: bar.update(task, advance=1, description=label))
    show(report, console)
    _write_json(json, report.to_json())
    if plot is not None:
        draw(report, plot)
        console.print(f"wrote {plot}", soft_wrap=True)


def _bench_instead(names: list[str], repeats: int, console: Console, json: Path | None) -> None:
    """The one measurement that was asked for instead of the benchmark."""
    if len(names) > 1:
        raise SpecError(f"bench: expected one of --choices, --scaling, --calls, got --{' and --'.join(names)}")
    modules = {"choices": ".choices", "scaling": ".scaling", "calls": ".small_calls"}
    measurement = import_module(modules[names[0]], __package__)
    with console.status("measuring, up to some minutes"):
        found = measurement.measure(repeats)
    measurement.render(found, console)
    _write_json(json, json_module.dumps(asdict(found), indent=1))


def demo(
    html: Annotated[Path, typer.Option("--html", help="the report page")] = Path("report/demo.html"),
    models: Annotated[list[str] | None, typer.Option("--model", help="a model of models.csv; repeatable")] = None,
) -> None:
    """Run all modes on real text, routed to three real models, and hold them against the oracle."""
    from .demo import MODELS, run_demo

    html.parent.mkdir(parents=True, exist_ok=True)
    status = run_demo(html, models or MODELS)
    if status:
        raise typer.Exit(status)


def doctor() -> None:
    """Toolchains found on this machine, and what each enables; exit 1 where a required one is missing."""
    from .doctor import examine

    findings = examine()
    table = Table("", "toolchain", "enables", "found")
    for finding in findings:
        mark = "ok" if finding.found else "MISSING" if finding.required else "-"
        table.add_row(mark, finding.name, finding.enables, finding.found or "not found")
    Console().print(table)
    if any(finding.required and not finding.found for finding in findings):
        raise typer.Exit(1)


def _profile(targets: tuple[str, ...], console: Console) -> dict[str, list[Profile]]:
    """Prints the counters of each Ascend target; chip -> its profiles."""
    from .ascend_profile import profiles, render

    chips = [chip for name, _, chip in (target.partition(":") for target in targets) if name == "ascendc"]
    if not chips:
        raise SpecError(f"--profile: counters are for the target ascendc; got {', '.join(targets)}")
    found = {chip: profiles(chip) for chip in chips}
    for chip, each in found.items():
        render(chip, each, console)
    return found


def _with_profiles(report: str, found: dict[str, list[Profile]]) -> str:
    """The JSON report, with the counters of each chip under ``profiles`` where there are any."""
    if not found:
        return report
    profiles = {chip: [asdict(profile) for profile in each] for chip, each in found.items()}
    return json_module.dumps(json_module.loads(report) | {"profiles": profiles}, indent=1) + "\n"


def _shape(text: str) -> tuple[int, int]:
    """``8,4096`` or a model's name as (topK, hidden)."""
    topk, comma, hidden = text.partition(",")
    if not comma:
        found = model(text)
        return found.topk, found.hidden
    if not (topk.isdecimal() and hidden.isdecimal() and int(topk) and int(hidden)):
        raise SpecError(f"--shape: expected K,H as two positive numbers or a model's name, got {text!r}")
    return int(topk), int(hidden)


def _known(option: str, values: list[str], known: tuple[str, ...]) -> None:
    for value in values:
        if value not in known:
            raise SpecError(f"{option}: expected one of {', '.join(known)}; got {value!r}")


def _write_json(path: Path | None, text: str) -> None:
    if path is None:
        return
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        path.write_text(text, encoding="utf-8")
