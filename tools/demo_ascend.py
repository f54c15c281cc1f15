"""The Ascend C part of the demonstration: one kernel, its plan, its run on the host model, its counters."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from ..codegen.chips import DEFAULT_CHIP
from ..codegen.generate import ascend_kernel
from ..codegen.models import Model
from ..codegen.operators import make_spec
from ..codegen.passes.plan_ascend import plan_table
from .ascend import built, problem, run_case
from .ascend_profile import Profile, render
from .cases import Case

OPERATOR, MODE, DATA, WEIGHT = "finalize_routing_v2_grad", "scales", "bf16", "f32"

TOKENS = 64
"""R of the run: more than one token for some of the cores."""


def show_ascend(console: Console, model: Model) -> bool:
    """Emits, builds and runs a kernel for a model's shape; whether the oracle and the host model are content."""
    console.print(Rule("[bold]The same program on an NPU"))
    spec = make_spec(OPERATOR, MODE, DATA, WEIGHT, model.topk, model.hidden)
    kernel = ascend_kernel(spec)
    console.print(
        f"The program goes through the same passes to Ascend C, here for {DEFAULT_CHIP} and the shape of {model.name}: "
        f"{', '.join(kernel.files)}. Its plan of the Unified Buffer, the on-chip memory of one vector core:"
    )
    console.print(escape(plan_table(kernel.module)), highlight=False, soft_wrap=True)
    console.print("What it computes for the slots of a token:")
    console.print(escape(_method(kernel.files[f"{spec.key}.h"])), highlight=False, soft_wrap=True)
    with console.status("compiling the kernel for the host model"):
        runnable = built([spec])[spec.key]
    case = Case(OPERATOR, MODE, DATA, WEIGHT, TOKENS, model.topk, model.hidden)
    run = run_case(runnable, case)
    wrong = problem(case, run)
    console.print(
        "No device is here, so the kernel runs on the host model: the Ascend C interface as C++ headers, with separate "
        "pipes that finish out of order, poisoned memory and every rule of the interface checked. Its counters:"
    )
    render(DEFAULT_CHIP, [Profile.of(MODE, spec.key, run)], console, (TOKENS, model.topk, model.hidden))
    if wrong is None:
        console.print("[green]It agrees with the oracle, and the host model has nothing to report.[/]\n")
    else:
        console.print(f"[bold red]{escape(wrong)}[/]\n")
    return wrong is None


def _method(text: str) -> str:
    """The part of a kernel that computes the slots, as its reader meets it."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if "void ComputeSlots(" in line)
    end = next(n for n in range(start, len(lines)) if lines[n] == "    }")
    return "\n".join(line[4:] for line in lines[start - 1 : end + 1]) + "\n"
