"""Cases as programs see them: the arguments of the public functions under the programs' tensor names."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.operators import make_spec, program_mode
from ..codegen.spec import ANY, KernelSpec
from .cases import Case
from .oracle import Array

_RENAMED = {
    "unpermuted_tokens_grad": "grad_y",
    "sorted_indices": "expanded_row_idx",
    "permuted_tokens": "expanded_x",
    "probs": "scales",
}
"""token_unpermute_grad's names -> those of the programs that it shares with finalize_routing_v2_grad."""


def spec_of(case: Case, *, specialised: bool = False) -> KernelSpec:
    """The kernel spec of a case: generic, or bound to the topK and hidden size of the case."""
    topk, hidden = (case.topk, case.hidden) if specialised else (ANY, ANY)
    weight = case.weight_dtype or ""
    return make_spec(case.operator, case.mode, case.data_dtype, weight, ANY if case.is_padded else topk, hidden)


def program_inputs(case: Case) -> tuple[dict[str, Array], dict[str, int]]:
    """Inputs by tensor name, rows as (M, H) and padded probs as (M,); and the sizes that they leave open."""
    rows = case.rows
    inputs: dict[str, Array] = {}
    for name, value in case.arguments().items():
        if not hasattr(value, "dtype") or value is None:
            continue
        array: Array = value
        if name in ("expanded_x", "permuted_tokens"):
            array = array.reshape(rows, case.hidden)
        if case.is_padded and name == "probs":
            array = array.reshape(-1)
        inputs[name if case.is_padded else _RENAMED.get(name, name)] = array
    return inputs, {"M": rows, "H": case.hidden, "R": case.tokens}


def output_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """Shapes of the program's outputs, row gradient first."""
    program = program_mode(f"{case.operator}__{case.mode}")
    assert program is not None
    if case.is_padded:
        shapes: dict[str, tuple[int, ...]] = {"permuted_tokens_grad": (case.rows, case.hidden)}
        return shapes | ({"probs_grad": (case.rows,)} if program.weighted else {})
    shapes = {"grad_expanded_x": (case.rows, case.hidden)}
    return shapes | ({"grad_scales": (case.tokens, case.topk)} if program.weighted else {})


def public_outputs(case: Case, outputs: Mapping[str, Array]) -> tuple[Array, Array | None]:
    """A program's outputs in the shapes that the public functions return."""
    expected = case.expected()
    row_name, *weight_names = output_shapes(case)
    row = outputs[row_name].reshape(expected.row_grad.shape)
    if not weight_names or expected.weight_grad is None:
        return row, None
    return row, outputs[weight_names[0]].reshape(expected.weight_grad.shape)
