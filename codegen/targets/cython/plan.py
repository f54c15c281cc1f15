"""What a Cython template needs: every field is decided, the template only lays it out."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter or local variable of a kernel."""

    name: str
    type: str
    """C type: a pointer for a tensor, ``int64_t`` for a size."""


@dataclass(frozen=True)
class KernelSource:
    """One kernel of a module: a C function for one token and one for the loop over tokens."""

    key: str
    """Name of the kernel in full."""
    shape_key: str
    """``k8__h7168``"""
    parameters: tuple[Parameter, ...]
    """Tensors, then the sizes that are not bound."""
    flags: tuple[Parameter, ...]
    """Run-time decisions that the loop over tokens hands to each token."""
    constants: tuple[tuple[str, int], ...]
    """Sizes that are bound, by symbol."""
    tokens: str
    """Extent of the loop over tokens: a symbol."""
    setup: tuple[str, ...]
    """Statements before the loop over tokens."""
    variables: tuple[Parameter, ...]
    """Local variables of the token function."""
    body: tuple[str, ...]
    """Statements of the token function, indented."""
    arguments: tuple[str, ...]
    """How the uniform entry reads each parameter from its two arrays."""

    @property
    def token_parameters(self) -> tuple[Parameter, ...]:
        """What the loop over tokens hands to each token: the parameters and flags that its body reads."""
        words = set(re.findall(r"\w+", "\n".join(self.body)))
        return tuple(parameter for parameter in (*self.parameters, *self.flags) if parameter.name in words)


@dataclass(frozen=True)
class EntryArgument:
    """One argument of the Python entry."""

    name: str
    declaration: str
    """Typed memoryview."""
    shape: str
    """For the docstring, such as ``(R, H), bf16 as uint16 bits``."""


@dataclass(frozen=True)
class SizeCheck:
    """A dimension that must agree with a size."""

    argument: str
    size: str
    """Expression of the dimension's size."""
    symbol: str
    dimension: int


@dataclass(frozen=True)
class Entry:
    """The Python function that runs the one kernel of a module on typed memoryviews."""

    key: str
    shape_key: str
    arguments: tuple[EntryArgument, ...]
    outputs: int
    """How many of the arguments are written."""
    sizes: tuple[tuple[str, str], ...]
    """Symbol, and the expression that gives it."""
    checks: tuple[SizeCheck, ...]
    call: str
    """Arguments of the kernel's call."""


@dataclass(frozen=True)
class ModuleSource:
    """One ``.pyx`` file."""

    header: tuple[str, ...]
    """Comment lines at the top."""
    declarations: tuple[str, ...]
    """Functions of the C header that the kernels use."""
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]
    kernels: tuple[KernelSource, ...]
    entry: Entry | None
