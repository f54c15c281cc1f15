"""What the templates of a device project need of one operator: text and lists of lines, from its description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap

from ...arguments import ALWAYS, DATA, INDEX, OPTIONAL, WEIGHT, Argument, Interface
from ...dtypes import DTYPES
from ...naming import camel, pascal
from ...operators import Operator
from .kernels import Branch, Column, ProjectKernel

_ROLES = {DATA: "Role::kData", WEIGHT: "Role::kWeight", INDEX: "Role::kIndex"}
_LISTS = {DATA: "data", WEIGHT: "weight", INDEX: "index"}


@dataclass(frozen=True)
class Forward:
    """How an operator's common modes run as another operator of the package."""

    api: str
    op_snake: str
    inner: str
    condition: str
    rows: str
    """The tensor whose first dimension is the number of rows that exist."""
    call: str


@dataclass(frozen=True)
class ProjectOperator:
    """One operator of a project."""

    operator: Operator
    kernels: tuple[ProjectKernel, ...]
    """In the order the tiling function looks for one."""
    columns: tuple[Column, ...]
    branches: tuple[Branch, ...]
    forward: Forward | None = None
    in_python: bool = False
    """Whether messages name arguments as Python callers know them."""

    # ---- names ----

    @property
    def name(self) -> str:
        """In snake case, as everywhere in moegrad."""
        return self.operator.name

    @property
    def summary(self) -> str:
        """What it computes."""
        return self.operator.summary[0].upper() + self.operator.summary[1:]

    @property
    def vendor_snake(self) -> str:
        """Name in the headers of the operator pages."""
        return f"moe_{self.name}"

    @property
    def api(self) -> str:
        """Name of the second phase on the operator pages."""
        return self.operator.api

    @property
    def called(self) -> str:
        """Name in messages."""
        return self.name if self.in_python else f"{self.api}GetWorkspaceSize"

    @property
    def op_snake(self) -> str:
        """Name of the operator type in snake case, and of its kernel's entry."""
        return self.operator.op_snake

    @property
    def op_type(self) -> str:
        """Operator type: not the toolkit's own, which stays what it is."""
        return pascal(self.op_snake)

    @property
    def inner(self) -> str:
        """The second phase that the toolkit writes from the definition."""
        return f"aclnn{self.op_type}"

    @property
    def inner_headers(self) -> list[str]:
        """Operators whose phases the public ones call."""
        return [self.op_snake] + ([self.forward.op_snake] if self.forward else [])

    @property
    def guard(self) -> str:
        """Start of include guards."""
        return self.op_snake.upper()

    @property
    def data_macro(self) -> str:
        """Macro with the data type of the gradient while a kernel is compiled."""
        return f"ORIG_DTYPE_{self._face.gradient.upper()}"

    @property
    def weight_macro(self) -> str:
        """Macro with the data type of the weights."""
        return f"ORIG_DTYPE_{self._face.weights.upper()}"

    @property
    def _face(self) -> Interface:
        return self.operator.interface

    # ---- C prototypes ----

    @property
    def input_names(self) -> list[str]:
        """Inputs in C."""
        return [row.c_name for row in self._face.inputs]

    @property
    def attribute_names(self) -> list[str]:
        """Attributes in C."""
        return [row.c_name for row in self._face.attributes]

    @property
    def output_names(self) -> list[str]:
        """Outputs in C."""
        return [row.c_output for row in self._face.outputs]

    @cached_property
    def _parameters(self) -> list[str]:
        tensors = [f"const aclTensor *{name}" for name in self.input_names]
        attributes = [f"{row.spelling.c}{row.c_name}" for row in self._face.attributes]
        outputs = [f"const aclTensor *{name}" for name in self.output_names]
        return [*tensors, *attributes, *outputs, "uint64_t *workspaceSize", "aclOpExecutor **executor"]

    def _first(self, name: str) -> str:
        parameters = ",\n    ".join(self._parameters)
        return f"aclnnStatus {name}GetWorkspaceSize(\n    {parameters})"

    @staticmethod
    def _second(name: str) -> str:
        parameters = "void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream"
        return f"aclnnStatus {name}(\n    {parameters})"

    @property
    def first_phase(self) -> str:
        """Prototype of the public first phase."""
        return self._first(self.api)

    @property
    def second_phase(self) -> str:
        """Prototype of the public second phase."""
        return self._second(self.api)

    @property
    def inner_first_phase(self) -> str:
        """Prototype of the first phase that the toolkit writes."""
        return self._first(self.inner)

    @property
    def inner_second_phase(self) -> str:
        """Prototype of the second phase that the toolkit writes."""
        return self._second(self.inner)

    @property
    def inner_call(self) -> str:
        """Call of the inner first phase with the arguments of the public one."""
        names = [*self.input_names, *self.attribute_names, *self.output_names, "workspaceSize", "executor"]
        return f"{self.inner}GetWorkspaceSize(\n        {', '.join(names)})"

    @property
    def documented(self) -> list[str]:
        """All arguments with their shapes, for the comment of the public header."""
        rows = [(row.c_name, row.role, *map(_shape, row.shapes), row.note) for row in self._face.inputs]
        rows += [(row.c_name, row.spelling.c.strip(), "", "", row.note) for row in self._face.attributes]
        rows += [(row.c_output, row.role, *map(_shape, row.shapes), "result") for row in self._face.outputs]
        switch = self._face.attributes[0].c_name
        lines = []
        for name, kind, ordinary, capacity, note in rows:
            shape = ordinary if ordinary == capacity else f"{ordinary}; {capacity} with {switch}"
            text = "; ".join(part for part in (shape, note) if part)
            first, *rest = wrap(text, 68) or [""]
            lines.append(f"{name:<24} {kind:<20} {first}".rstrip())
            lines += [" " * 46 + line for line in rest]
        return lines

    # ---- checks ----

    @property
    def given_attributes(self) -> list[str]:
        """Attributes as the checks take them; what a list holds is seen by the tiling function only."""
        return [row.spelling.given.format(row.c_name) for row in self._face.attributes]

    @property
    def unneeded(self) -> str:
        """Statement that leaves out the output that a call without weights has no use for."""
        weights, output = self._input(self._face.weights).c_name, self._face.outputs[1].c_output
        return f"{output} = {weights} == nullptr ? nullptr : {output};"

    @property
    def contract_inputs(self) -> list[str]:
        """Rows of the table of inputs."""
        return [_row(row, row.name if self.in_python else row.c_name, self._needs(row)) for row in self._face.inputs]

    @property
    def contract_outputs(self) -> list[str]:
        """Rows of the table of outputs."""
        return [_row(row, row.name if self.in_python else row.c_output, self._needs(row)) for row in self._face.outputs]

    @property
    def contract_attributes(self) -> list[str]:
        """Names of the attributes, as strings."""
        return [f'"{row.name if self.in_python else row.c_name}"' for row in self._face.attributes]

    @property
    def contract_rules(self) -> list[str]:
        """Functions of the rules, for ordinary and capacity mode."""
        return [", ".join(pascal(rule) for rule in rules) for rules in self._face.rules]

    @property
    def roles(self) -> list[int]:
        """Positions of gradient, indices and weights."""
        return [self._position(name) for name in (self._face.gradient, self._face.indices, self._face.weights)]

    def _needs(self, row: Argument) -> str:
        fixed = {ALWAYS: "kAlways", OPTIONAL: "kOptional"}
        return fixed.get(row.needed) or str(self._position(row.needed))

    def _position(self, name: str) -> int:
        return [row.name for row in self._face.inputs].index(name)

    def _input(self, name: str) -> Argument:
        return self._face.inputs[self._position(name)]

    # ---- definition, tiling and kernel ----

    @property
    def columns_of(self) -> dict[str, str]:
        """Data types of D and P, one for each column."""
        return {
            "D": ", ".join(f"ge::{DTYPES[column.data_tag].graph}" for column in self.columns),
            "P": ", ".join(f"ge::{DTYPES[column.weight_tag].graph}" for column in self.columns),
        }

    @property
    def definitions(self) -> list[str]:
        """Statements of the operator definition."""
        lines = [line for row in self._face.inputs for line in _definition("Input", row, row.needed == ALWAYS)]
        for attribute in self._face.attributes:
            lines.append(f'this->Attr("{attribute.name}").AttrType(OPTIONAL).{attribute.spelling.definition};')
        return lines + [line for row in self._face.outputs for line in _definition("Output", row, row.needed == ALWAYS)]

    @property
    def attribute_kinds(self) -> list[str]:
        """Kinds of the attributes as the tiling function reads them."""
        return [f"AttributeKind::k{pascal(row.kind)}" for row in self._face.attributes]

    @property
    def mode_constants(self) -> list[str]:
        """Declarations of the numbers of the modes."""
        return [
            f"constexpr int32_t k{pascal(mode.name)} = {number};" for number, mode in enumerate(self.operator.modes, 1)
        ]

    @property
    def mode_choice(self) -> list[str]:
        """Statements that return the mode of a call: those that ask for most come first."""
        lines = []
        for mode in sorted(self.operator.modes, key=lambda mode: not mode.also):
            capacity = self.operator.capacity(mode)
            tests = [] if capacity is None else [f"call.Column() == {int(capacity)}"]
            weights = f"call.inputs[{self._position(self._face.weights)}].present"
            tests.append(weights if mode.weighted else f"!{weights}")
            if mode.also:
                tests.append(f"call.inputs[{self._position(mode.also)}].present")
            lines.append(f"if ({' && '.join(tests)}) {{")
            lines += [f"    return k{pascal(mode.name)};", "}"]
        return [*lines, "return -1;"]

    # ---- PyTorch ----

    @property
    def torch_schema(self) -> str:
        """Schema of the operator in torch.library."""
        inputs = [
            f"Tensor {row.name}" if row.needed == ALWAYS else f"Tensor? {row.name}=None" for row in self._face.inputs
        ]
        attributes = [row.spelling.schema.format(row.name) for row in self._face.attributes]
        return f"{self.name}({', '.join([*inputs, *attributes])}) -> (Tensor, Tensor)"

    @property
    def torch_parameters(self) -> str:
        """Parameters of its functions, as torch.library hands them."""
        inputs = [
            f"const {'at::Tensor' if row.needed == ALWAYS else 'torch_binding::OptionalTensor'}& {row.name}"
            for row in self._face.inputs
        ]
        return ", ".join([*inputs, *(f"{row.spelling.torch} {row.name}" for row in self._face.attributes)])

    @property
    def torch_inputs(self) -> list[str]:
        """Inputs of its functions."""
        return [row.name for row in self._face.inputs]

    @property
    def torch_attributes(self) -> list[str]:
        """Attributes of its functions as the checks take them."""
        return [f"AttributeOf({row.name})" for row in self._face.attributes]

    @property
    def key_table(self) -> list[str]:
        """Tiling keys with what they stand for."""
        return [f"{branch.key}  {branch.text}" for branch in self.branches]

    @property
    def entry(self) -> str:
        """Signature of the kernel's entry."""
        names = [camel(row.name) for row in (*self._face.inputs, *self._face.outputs)]
        arguments = ", ".join(f"GM_ADDR {name}" for name in [*names, "workspace", "tiling"])
        return f'extern "C" __global__ __aicore__ void {self.op_snake}({arguments})'


def _shape(shape: tuple[str, ...] | None) -> str:
    return "M elements in any shape" if shape is None else f"({', '.join(shape)})"


def _row(row: Argument, name: str, needs: str) -> str:
    shapes = ", ".join(f'"{"".join(shape) if shape else "*"}"' for shape in row.shapes)
    return f'{{"{name}", {_ROLES[row.role]}, {needs}, {{{shapes}}}}}'


def _definition(kind: str, row: Argument, required: bool) -> list[str]:
    need = "REQUIRED" if required else "OPTIONAL"
    contiguous = ".AutoContiguous()" if kind == "Input" else ""
    types = f".DataType({_LISTS[row.role]}).Format(format).UnknownShapeFormat(format)"
    return [f'this->{kind}("{row.name}")', f"    .ParamType({need}){types}{contiguous};"]
