"""The operators' arguments: the one description that every interface of them is made from.

The tables of the Python API's checks, the C API's prototypes and checks, the operator definitions of a device
project, their shape inference, and the tables of docs/operators.md are all written from these rows. Symbols are
those of docs/operators.md: R tokens, K choices a token, N = R * K slots, M rows of the permuted array, H hidden
size, E experts, C rows an expert.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SpecError
from .naming import camel

DATA, WEIGHT, INDEX = "D", "P", "int32"
"""Roles: the data dtype, which the gradient fixes for all arguments of this role; the weight dtype; int32."""

ALWAYS, OPTIONAL = "always", "optional"

Shape = tuple[str, ...] | None
"""Symbols of a shape; None: any shape with as many elements as there are rows (M)."""


@dataclass(frozen=True)
class Values:
    """What the values of an index argument may be: `low` up to, not including, the size `high`."""

    low: int
    high: str
    distinct: bool
    """Whether no value that names something comes twice; -1 may."""


@dataclass(frozen=True)
class Argument:
    """One array that an operator reads or writes."""

    name: str
    role: str
    shapes: tuple[Shape, Shape]
    """In the ordinary mode, and in the capacity mode (padded_mode, drop_pad_mode 1)."""
    note: str = ""
    needed: str = ALWAYS
    """ALWAYS, OPTIONAL, or the argument that makes this one necessary."""
    tensor: str = ""
    """Name in the programs where it is another: both operators share those of their common modes."""
    values: tuple[Values, Values] | None = None
    c: str = ""
    """Name in C prototypes where it is not the camelCase of `name`."""

    @property
    def c_name(self) -> str:
        """Name of an input in C: operator pages mark those that may be null."""
        return (self.c or camel(self.name)) + ("" if self.needed == ALWAYS else "Optional")

    @property
    def c_output(self) -> str:
        """Name of an output in C."""
        return f"{camel(self.name)}Out"

    @property
    def program_name(self) -> str:
        """Name in the programs."""
        return self.tensor or self.name


@dataclass(frozen=True)
class Attribute:
    """One argument that is no array. The first of an operator chooses between ordinary and capacity mode."""

    name: str
    kind: str
    """A key of ATTRIBUTE_KINDS."""
    note: str
    optional: bool = False

    @property
    def spelling(self) -> AttributeKind:
        """How its kind is spelled."""
        return ATTRIBUTE_KINDS[self.kind]

    @property
    def c_name(self) -> str:
        """Name in C prototypes."""
        return camel(self.name) + ("Optional" if self.optional else "")


@dataclass(frozen=True)
class AttributeKind:
    """How a kind of attribute is spelled."""

    python: str
    c: str
    """Type of a C parameter, ready for the name behind it."""
    definition: str
    """Its type and default in an operator definition."""
    torch: str
    """Type of a parameter of a function for torch.library."""
    schema: str
    """Type, name and default in a schema of torch.library."""
    given: str
    """As the checks of a first phase take it; what a list holds is seen by the tiling function only."""


ATTRIBUTE_KINDS = {
    "bool": AttributeKind("bool", "bool ", "Bool(false)", "bool", "bool {}=False", "{{{} ? 1 : 0, true, {{}}}}"),
    "int": AttributeKind("int", "int64_t ", "Int(0)", "int64_t", "int {}=0", "{{{}, true, {{}}}}"),
    "ints": AttributeKind(
        "(int, int)",
        "const aclIntArray *",
        "ListInt({})",
        "at::OptionalIntArrayRef",
        "int[]? {}=None",
        "{{0, false, {{}}}}",
    ),
}

RULES = {
    "bind": "shapes have the rank and the sizes of their rows, equal symbols are equal sizes; H and E are at least 1",
    "slots": "K is that of the weights, or else N / R; N = R * K",
    "truncation": "M is at most N",
    "one_slot": "each row is one slot",
    "restored": "restore_shape, where given, is (R, H)",
    "capacity": "the mode is 0 or 1; in mode 1 expert_num and expert_capacity are positive, and M = E * C",
    "active_rows": "M = active_num where 0 < active_num < N, else M = N",
}
"""What relates sizes and attributes, by name: moegrad/checks.py and a project's moegrad_contract.h each have a
function of that name."""


@dataclass(frozen=True)
class Interface:
    """All arguments of an operator, in the order of its signature: inputs, attributes, outputs."""

    gradient: str
    """The input that fixes D."""
    indices: str
    weights: str
    inputs: tuple[Argument, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Argument, Argument]
    """Of the rows, and of the weights where those are given."""
    rules: tuple[tuple[str, ...], tuple[str, ...]]
    """Keys of RULES in the order they are checked, for ordinary and capacity mode."""

    def __post_init__(self) -> None:
        known = {row.name for row in self.inputs}
        named = {self.gradient, self.indices, self.weights} | {
            row.needed for row in (*self.inputs, *self.outputs) if row.needed not in (ALWAYS, OPTIONAL)
        }
        for name in sorted(named - known):
            raise SpecError(f"interface: expected one of {', '.join(sorted(known))}, got {name!r}")
        for rule in (*self.rules[0], *self.rules[1]):
            if rule not in RULES:
                raise SpecError(f"interface: rule: expected one of {', '.join(RULES)}, got {rule!r}")


_R_H, _R_K, _M_H, _E_C_H = ("R", "H"), ("R", "K"), ("M", "H"), ("E", "C", "H")


def _both(shape: Shape) -> tuple[Shape, Shape]:
    return (shape, shape)


INTERFACES = {
    "token_unpermute_grad": Interface(
        "unpermuted_tokens_grad",
        "sorted_indices",
        "probs",
        inputs=(
            Argument(
                "permuted_tokens",
                DATA,
                _both(_M_H),
                "M = N, or fewer where rows were truncated",
                tensor="expanded_x",
                c="permuteTokens",
            ),
            Argument("unpermuted_tokens_grad", DATA, _both(_R_H), "gradient of the forward's output", tensor="grad_y"),
            Argument(
                "sorted_indices",
                INDEX,
                (("N",), ("M",)),
                "row of slot i, distinct; padded: token of row i, or -1",
                tensor="expanded_row_idx",
                values=(Values(0, "N", True), Values(-1, "R", False)),
            ),
            Argument("probs", WEIGHT, (_R_K, None), "", OPTIONAL, "scales"),
        ),
        attributes=(
            Attribute("padded_mode", "bool", "whether every expert takes the same number of rows"),
            Attribute(
                "restore_shape", "ints", "(R, H); read where every expert takes the same number of rows", optional=True
            ),
        ),
        outputs=(
            Argument("permuted_tokens_grad", DATA, _both(_M_H), tensor="grad_expanded_x"),
            Argument("probs_grad", WEIGHT, (_R_K, None), "", "probs", "grad_scales"),
        ),
        rules=(("bind", "slots", "truncation"), ("bind", "one_slot", "restored")),
    ),
    "finalize_routing_v2_grad": Interface(
        "grad_y",
        "expanded_row_idx",
        "scales",
        inputs=(
            Argument("grad_y", DATA, _both(_R_H), "gradient of the forward's output"),
            Argument(
                "expanded_row_idx",
                INDEX,
                _both(("N",)),
                "row of slot i, distinct; mode 1 allows -1",
                values=(Values(0, "N", True), Values(-1, "M", True)),
            ),
            Argument("expanded_x", DATA, (_M_H, _E_C_H), "", "scales"),
            Argument("scales", WEIGHT, _both(_R_K), "", OPTIONAL),
            Argument(
                "expert_idx",
                INDEX,
                _both(_R_K),
                "in [0, E-1]",
                "bias",
                values=(Values(0, "E", False), Values(0, "E", False)),
            ),
            Argument("bias", DATA, _both(("E", "H")), "counts only with scales", OPTIONAL),
        ),
        attributes=(
            Attribute("drop_pad_mode", "int", "0 dropless, 1 capacity"),
            Attribute("active_num", "int", "mode 0: rows past it are dropped, where 0 < active_num < N"),
            Attribute("expert_num", "int", "mode 1: E, positive"),
            Attribute("expert_capacity", "int", "mode 1: C, positive; M = E * C"),
        ),
        outputs=(
            Argument("grad_expanded_x", DATA, (_M_H, _E_C_H)),
            Argument("grad_scales", WEIGHT, _both(_R_K), "", "scales"),
        ),
        rules=(("bind", "slots", "active_rows"), ("capacity", "bind", "slots")),
    ),
}
"""Operator -> its arguments."""
