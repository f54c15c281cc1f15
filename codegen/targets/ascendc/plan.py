"""What an Ascend C template needs: every field is text or a list of lines, the template only lays it out."""

from __future__ import annotations

from dataclasses import dataclass

from ...rendering import template_text
from .lines import CODE_WIDTH, wrap

SOLVER = "ascendc/solver.h.j2"
"""Static text of the tiling header of a kernel of any shape."""


@dataclass(frozen=True)
class Parameter:
    """One tensor of a kernel."""

    name: str
    """camelCase, as the kernel's arguments are named."""
    type: str
    """Ascend C element type."""
    shape: str
    """Such as ``(R, H)``."""
    output: bool


@dataclass(frozen=True)
class Field:
    """One field of the tiling data; all of them are ``int64_t``."""

    name: str
    comment: str

    @property
    def text(self) -> str:
        """Its declaration."""
        return f"int64_t {self.name};  // {self.comment}"


@dataclass(frozen=True)
class Method:
    """One member function of the kernel."""

    comment: tuple[str, ...]
    signature: str
    body: tuple[str, ...]
    template: str = ""
    """``template <...>`` line, where it is one."""

    @property
    def text(self) -> str:
        """The function as it stands in the class, without its outer indent."""
        comment = [f"// {line}" for line in self.comment]
        head = [self.template] if self.template else []
        lines = [*comment, *head, f"__aicore__ inline {self.signature}", "{"]
        lines += [f"    {line}" if line else "" for line in self.body]
        return "\n".join(wrap(line, CODE_WIDTH - 4) for line in [*lines, "}"])


@dataclass(frozen=True)
class KernelSource:
    """One kernel: its class, its tiling data and its two entries."""

    key: str
    """Name of the kernel, and of its files."""
    symbol: str
    """Name of its entry, its namespace and, in an operator package, its operator."""
    header: tuple[str, ...]
    """Comment lines at the top of every file."""
    summary: tuple[str, ...]
    """What the kernel does and how UB is laid out, for the comment above the class."""
    parameters: tuple[Parameter, ...]
    constants: tuple[str, ...]
    """Declarations of what is fixed when the kernel is compiled."""
    members: tuple[str, ...]
    """Declarations of queues, buffers, tensors and run-time sizes."""
    span: tuple[str, ...]
    """Fields of what one step works on."""
    init: tuple[str, ...]
    methods: tuple[Method, ...]
    fields: tuple[Field, ...]
    sizes: tuple[Field, ...]
    """Fields of the struct with the sizes of one call."""
    tiling: tuple[str, ...]
    """Statements of the tiling function."""
    tiling_constants: tuple[str, ...]
    solves: bool
    """Whether the tiling function solves the plan, for a kernel of any shape."""

    @property
    def private_text(self) -> str:
        """All functions but the first, which is public."""
        return "\n\n".join(method.text for method in self.methods[1:])

    @property
    def field_lines(self) -> str:
        """Fields of the tiling data as declarations."""
        return "\n".join(field.text for field in self.fields)

    @property
    def size_lines(self) -> str:
        """Sizes of a call as declarations."""
        return "\n".join(field.text for field in self.sizes)

    @property
    def solver(self) -> str:
        """Functions that solve the plan at run time, with blank lines around; nothing where it is fixed."""
        return f"\n{template_text(SOLVER)}" if self.solves else ""

    @property
    def size_reads(self) -> list[str]:
        """Statements that take the sizes of a call from an array."""
        return [f"sizes.{field.name} = values[{number}];" for number, field in enumerate(self.sizes)]

    @property
    def comment(self) -> str:
        """The summary as a comment."""
        return "\n".join(f"// {line}".rstrip() for line in self.summary)

    @property
    def init_text(self) -> str:
        """The function that takes the arguments, as it stands in the class."""
        head = ("Takes tensors in global memory, the split of the call, and the pipe of the entry; lays out UB.",)
        signature = f"void Init({self.arguments}, const TilingData& tiling, AscendC::TPipe* pipe)"
        return Method(head, signature, self.init).text

    @property
    def package_head(self) -> str:
        """Signature of the entry of an operator package."""
        arguments = f"{self.arguments}, GM_ADDR workspace, GM_ADDR tiling"
        return wrap(f'extern "C" __global__ __aicore__ void {self.symbol}({arguments})')

    @property
    def launch_head(self) -> str:
        """Signature of the entry of a direct launch."""
        return wrap(
            f"__global__ __vector__ void {self.symbol}_launch({self.arguments}, {self.scope}::TilingData tiling)"
        )

    @property
    def start_head(self) -> str:
        """Signature of the host function of a direct launch."""
        rest = "bool everyRowNamed, int64_t cores, int64_t ubBytes, void* stream"
        return wrap(f"const char* {self.symbol}_start({self.arguments}, const {self.scope}::Sizes& sizes, {rest})")

    @property
    def start_call(self) -> str:
        """The launch itself, inside the host function."""
        blocks = "static_cast<uint32_t>(tiling.blockCount)"
        return wrap(f"        {self.symbol}_launch<<<{blocks}, 0, stream>>>({self.names}, tiling);")

    @property
    def init_call(self) -> str:
        """The call of Init in an entry, up to the tiling data."""
        return f"kernel.Init({self.names}"

    @property
    def scope(self) -> str:
        """Namespace of everything of the kernel but its entries."""
        return f"moegrad::{self.symbol}"

    @property
    def arguments(self) -> str:
        """Parameters of an entry."""
        return ", ".join(f"GM_ADDR {parameter.name}" for parameter in self.parameters)

    @property
    def names(self) -> str:
        """The arguments of an entry as they are handed on."""
        return ", ".join(parameter.name for parameter in self.parameters)

    @property
    def guard(self) -> str:
        """Start of the include guards."""
        return f"MOEGRAD_{self.symbol.upper()}"
