"""The operators, their modes and the programs that compute them: the supported matrix, once.

Modes that are the same mathematics name the same program, so they run the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arguments import INTERFACES, Interface
from .dtypes import DTYPES
from .errors import SpecError
from .naming import pascal
from .spec import ANY, KernelSpec


@dataclass(frozen=True)
class Mode:
    """One gradient mode of an operator."""

    name: str
    program: str
    """File in ``programs/``."""
    summary: str
    weighted: bool = False
    """Whether the mode has weights (probs or scales), and with them the dtype P."""
    kernel: str = ""
    """Operator and mode whose kernel runs this mode; empty: its own."""
    per_row: bool = False
    """Whether the loop runs over permuted rows (one slot each) instead of tokens."""
    also: str = ""
    """Optional input, beside the weights, that makes a call one of this mode."""


@dataclass(frozen=True)
class Operator:
    """A backward operator and its modes."""

    name: str
    summary: str
    modes: tuple[Mode, ...]

    @property
    def interface(self) -> Interface:
        """Its arguments."""
        return INTERFACES[self.name]

    @property
    def api(self) -> str:
        """Name of the second phase on the operator pages."""
        return f"aclnnMoe{pascal(self.name)}"

    @property
    def op_snake(self) -> str:
        """Name of its type in operator packages, in snake case: not the toolkit's own, which stays what it is."""
        return f"moegrad_{self.name}"

    def capacity(self, mode: Mode) -> bool | None:
        """Whether a mode is one of the capacity mode; None where the operator's modes run in either."""
        return mode.per_row if any(each.per_row for each in self.modes) else None

    def kernel(self, mode: Mode) -> str:
        """Name of the kernels that run a mode, without dtypes and shape."""
        return mode.kernel or f"{self.name}__{mode.name}"

    def mode(self, name: str) -> Mode:
        """The mode of that name; SpecError lists the known ones."""
        for mode in self.modes:
            if mode.name == name:
                return mode
        known = ", ".join(mode.name for mode in self.modes)
        raise SpecError(f"mode: {self.name} has the modes {known}; got {name!r}")


_FINALIZE = "finalize_routing_v2_grad"

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator(
            "token_unpermute_grad",
            "gradient of the unpermute step that gathers expert outputs back to tokens",
            (
                Mode("plain", "plain", "scatter gradient rows", kernel=f"{_FINALIZE}__plain"),
                Mode("probs", "scales", "scatter scaled rows, reduce weight gradients", True, f"{_FINALIZE}__scales"),
                Mode("padded", "padded", "gather gradient rows into capacity slots", per_row=True),
                Mode("padded_probs", "padded_probs", "the same with weights", True, per_row=True),
            ),
        ),
        Operator(
            _FINALIZE,
            "gradient of the finalize-routing step, with bias, truncation and capacity",
            (
                Mode("plain", "plain", "scatter gradient rows"),
                Mode("scales", "scales", "scatter scaled rows, reduce weight gradients", True),
                Mode("scales_bias", "scales_bias", "the same with an expert bias", True, also="bias"),
            ),
        ),
    )
}


def operator(name: str) -> Operator:
    """The operator of that name; SpecError lists the known ones."""
    if name not in OPERATORS:
        raise SpecError(f"operator: expected one of {', '.join(OPERATORS)}; got {name!r}")
    return OPERATORS[name]


def program_mode(program: str) -> Mode | None:
    """The mode of an ``operator__mode`` program name; None for the name of a program file."""
    name, _, mode = program.partition("__")
    return OPERATORS[name].mode(mode) if name in OPERATORS else None


def make_spec(name: str, mode_name: str, data: str, weight: str = "", topk: int = ANY, hidden: int = ANY) -> KernelSpec:
    """The checked spec of an operator's mode; `weight` defaults to `data` where there are weights."""
    mode = operator(name).mode(mode_name)
    if weight and not mode.weighted:
        raise SpecError(f"weight dtype: {name} {mode_name} has no weights, got {weight!r}")
    if mode.per_row and topk not in (ANY, 1):
        raise SpecError(f"topk: {name} {mode_name} has one slot a row, got {topk}")
    weight = (weight or data) if mode.weighted else ""
    return KernelSpec(f"{name}__{mode.name}", data, weight, 1 if mode.per_row else topk, hidden)


def kernel_of(spec: KernelSpec) -> KernelSpec:
    """The spec whose kernel computes `spec`: equal mathematics share one kernel."""
    mode = program_mode(spec.program)
    if mode is None or not mode.kernel:
        return spec
    return KernelSpec(mode.kernel, spec.data, spec.weight, spec.topk, spec.hidden)


def dtype_pairs(mode: Mode) -> list[tuple[str, str]]:
    """Every (D, P) of a mode; P is empty without weights."""
    return [(data, weight) for data in DTYPES for weight in (DTYPES if mode.weighted else ("",))]
