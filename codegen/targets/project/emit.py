"""Writes a device project: an operator package that a toolkit builds, whose sources also run on the host model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ... import __version__
from ...chips import FAMILIES, chip
from ...dtypes import DTYPES
from ...errors import SpecError
from ...models import model
from ...naming import pascal
from ...operators import OPERATORS, Operator
from ...rendering import render
from ..ascendc.hostbuild import MODEL_FLAGS, OWN_SYMBOLS
from ..ascendc.lines import wrap
from .kernels import branches_of, columns_of, project_kernels
from .plan import Forward, ProjectOperator

FORWARDING = ("ascend950",)
"""Chips on which the common modes of token_unpermute_grad run as finalize_routing_v2_grad."""

SHARED = {
    "CMakeLists.txt": "CMakeLists.txt",
    "CMakePresets.json": "CMakePresets.json",
    "build.sh": "build.sh",
    "README.md": "README.md",
    "common/moegrad_contract.h": "common/moegrad_contract.h",
    "common/moegrad_rules.h": "common/moegrad_rules.h",
    "common/moegrad_checks.h": "common/moegrad_checks.h",
    "common/moegrad_choice.h": "common/moegrad_choice.h",
    "op_api/moegrad_arguments.h": "op_api/moegrad_arguments.h",
    "op_host/CMakeLists.txt": "op_host/CMakeLists.txt",
    "op_host/moegrad_host.h": "op_host/moegrad_host.h",
    "op_kernel/CMakeLists.txt": "op_kernel/CMakeLists.txt",
    "host/host.cmake": "host/host.cmake",
    "tests/CMakeLists.txt": "tests/CMakeLists.txt",
    "tests/client.h": "tests/client.h",
    "tests/test_status_codes.cpp": "tests/test_status_codes.cpp",
}
"""File of a project -> its template, for what the operators have in common."""

OF_OPERATOR = {
    "common/moegrad_{name}_contract.h": "common/contract.h",
    "op_api/include/aclnnop/aclnn_moe_{name}.h": "op_api/aclnn.h",
    "op_api/aclnn_moe_{name}.cpp": "op_api/aclnn.cpp",
    "op_host/moegrad_{name}_def.cpp": "op_host/def.cpp",
    "op_host/moegrad_{name}_infershape.cpp": "op_host/infershape.cpp",
    "op_host/moegrad_{name}_tiling.cpp": "op_host/tiling.cpp",
    "op_kernel/moegrad_{name}.cpp": "op_kernel/kernel.cpp",
    "host/aclnn_moegrad_{name}.h": "host/aclnn_inner.h",
    "host/aclnn_moegrad_{name}.cpp": "host/aclnn_inner.cpp",
    "tests/test_{name}.cpp": "tests/test_{name}.cpp",
}
"""The same for each operator."""

FORWARDED = "op_api/moegrad_forwarded.h"
"""Only where an operator runs as another: file and template."""


@dataclass(frozen=True)
class ProjectSpec:
    """What a project is made for."""

    soc: str
    """A chip, as an operator package's configuration spells it."""
    shapes: tuple[tuple[int, int], ...] = ()
    """(K, H) that have kernels of their own, beside those for any shape."""
    pairs: tuple[tuple[str, str], ...] = tuple((data, weight) for data in DTYPES for weight in DTYPES)
    """Tags of (D, P) that kernels are compiled for."""
    options: str = ""
    """The command-line options that asked for shapes and pairs, for headers."""


def project_spec(soc: str, model_name: str, topk: int, hidden: int, data: str, weight: str) -> ProjectSpec:
    """The spec that command-line options ask for; SpecError where they contradict each other."""
    name = chip(soc).name
    if name not in FAMILIES:
        raise SpecError(f"--soc: expected one of {', '.join(FAMILIES)}, the names packages are built for; got {soc!r}")
    if model_name and (topk or hidden):
        raise SpecError("--model: give it, or --topk with --hidden, not both")
    if bool(topk) != bool(hidden):
        missing, given = ("--hidden", f"--topk {topk}") if topk else ("--topk", f"--hidden {hidden}")
        raise SpecError(f"{given}: needs {missing} too; without both every kernel takes any shape")
    limit = chip(name).topk_limit
    if limit and topk > limit:
        raise SpecError(f"--topk: {name} takes at most {limit} slots a token, got {topk}")
    shapes: tuple[tuple[int, int], ...] = ()
    options = ""
    if model_name:
        found = model(model_name)
        shapes, options = ((found.topk, found.hidden),), f"--model {model_name}"
    elif topk:
        shapes, options = ((topk, hidden),), f"--topk {topk} --hidden {hidden}"
    options += f" --dtype {data}" if data else ""
    options += f" --weight-dtype {weight}" if weight else ""
    pairs = tuple((d, p) for d in ([data] if data else DTYPES) for p in ([weight] if weight else DTYPES))
    return ProjectSpec(name, shapes, pairs, options.strip())


class Project:
    """One project: its operators, and all its files."""

    owned: tuple[str, ...] = ("op_kernel/*.h", "host/*.cpp", "op_api/*.h")
    """Patterns of the files of which a project of other options has others."""

    option = "--project"
    """The command-line option that asks for one."""

    def __init__(self, spec: ProjectSpec, in_python: bool = False):
        self.spec = spec
        self._in_python = in_python
        self.operators = tuple(self._operator(operator) for operator in OPERATORS.values())

    def _operator(self, operator: Operator) -> ProjectOperator:
        forwards = not self._in_python and operator.name == "token_unpermute_grad" and self.spec.soc in FORWARDING
        kernels = project_kernels(operator, self.spec.pairs, self.spec.shapes, self.spec.soc)
        columns = columns_of(kernels, self.spec.pairs)
        forward = _forward(operator) if forwards else None
        return ProjectOperator(operator, kernels, columns, branches_of(columns), forward, self._in_python)

    @cached_property
    def files(self) -> dict[str, str]:
        """Path below the project's folder -> text."""
        found = {path: self.text(template, path) for path, template in SHARED.items()}
        if self.forwards:
            found[FORWARDED] = self.text(FORWARDED, FORWARDED)
        for operator in self.operators:
            found |= self.operator_files(operator, OF_OPERATOR)
            for column in operator.columns:
                path = f"host/{operator.op_snake}_column{column.number}.cpp"
                found[path] = self.text("host/kernel_column.cpp", path, operator=operator, column=column)
            for kernel in operator.kernels:
                found |= {
                    f"op_kernel/{name}": text for name, text in kernel.emitted.files.items() if name.endswith(".h")
                }
        return found

    def operator_files(self, operator: ProjectOperator, templates: Mapping[str, str]) -> dict[str, str]:
        """Files of one operator; names of paths and templates have its name for ``{name}``."""
        named = {path.format(name=operator.name): text.format(name=operator.name) for path, text in templates.items()}
        return {path: self.text(template, path, operator=operator) for path, template in named.items()}

    def text(self, template: str, path: str, **context: object) -> str:
        """One file, long lines of C++ broken."""
        mark = "#" if path.endswith((".txt", ".cmake", ".sh", ".py")) else "//"
        header = (f"{mark} Generated by moegrad {__version__}; do not edit.", f"{mark} rewrite: {self.command}")
        context |= {"project": self, "soc": self.spec.soc, "operators": self.operators, "header": header}
        text = render(f"project/{template}.j2", **context)
        if not path.endswith((".cpp", ".h")):
            return text
        return "\n".join(wrap(line) for line in text.split("\n"))

    @property
    def command(self) -> str:
        """The command that writes the project."""
        return " ".join(filter(None, (f"moegrad generate {self.option} DIR --soc {self.spec.soc}", self.spec.options)))

    @property
    def host_flags(self) -> str:
        """What a build for the host model asks of the compiler."""
        return " ".join((*MODEL_FLAGS, OWN_SYMBOLS))

    @property
    def forwards(self) -> bool:
        """Whether an operator runs as another."""
        return any(operator.forward for operator in self.operators)

    @property
    def topk_limit(self) -> int:
        """Slots a token that the chip takes; 0: no limit."""
        return chip(self.spec.soc).topk_limit or 0

    @property
    def products(self) -> str:
        """What the chip is sold as."""
        return chip(self.spec.soc).products

    @property
    def pair_text(self) -> str:
        """The data types of rows and weights."""
        rows, weights = (
            dict.fromkeys(DTYPES[tag].numpy for tag in tags) for tags in zip(*self.spec.pairs, strict=True)
        )
        every = ", in any combination" if len(self.spec.pairs) > 1 else ""
        return f"of {', '.join(rows)} and of {', '.join(weights)}{every}"

    @property
    def own_shapes(self) -> str:
        """The shapes that have kernels of their own, as the rest of a sentence; nothing where there are none."""
        named = ", ".join(f"topK {topk} and hidden size {hidden}" for topk, hidden in self.spec.shapes)
        return f"; {named} have some of their own" if named else ""


def _forward(operator: Operator) -> Forward:
    """token_unpermute_grad as finalize_routing_v2_grad: each argument is the one with its name in the programs."""
    other = OPERATORS["finalize_routing_v2_grad"]
    own = {row.program_name: row.c_name for row in operator.interface.inputs}
    own |= {row.program_name: row.c_output for row in operator.interface.outputs}
    inputs = [own.get(row.name, "nullptr") for row in other.interface.inputs]
    attributes = [{"active_num": "rows"}.get(row.name, "0") for row in other.interface.attributes]
    outputs = [own[row.name] for row in other.interface.outputs]
    arguments = ", ".join([*inputs, *attributes, *outputs, "workspaceSize", "executor"])
    inner = f"aclnn{pascal(other.op_snake)}"
    return Forward(
        other.api,
        other.op_snake,
        inner,
        f"if (!{operator.interface.attributes[0].c_name} && rows != 0)",
        own["expanded_x"],
        f"{inner}GetWorkspaceSize(\n            {arguments})",
    )
