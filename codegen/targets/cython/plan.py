"""What a Cython template needs: lists of finished lines, which the template only lays out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter or local variable of a kernel."""

    name: str
    type: str
    """C type: a pointer for a tensor, ``int64_t`` for a size."""

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class KernelSource:
    """One kernel of a module: a C function for one token and one for the loop over tokens."""

    key: str
    """Name of the kernel in full."""
    shape_key: str
    """``k8__h7168``"""
    parameters: tuple[Parameter, ...]
    """Tensors, then the sizes that are not bound."""
    token_parameters: tuple[Parameter, ...]
    """What the loop over tokens hands to each token: parameters that its body reads, and run-time decisions."""
    tokens: str
    """Extent of the loop over tokens: a symbol."""
    setup: tuple[str, ...]
    """Declarations and statements before the loop over tokens."""
    body: tuple[str, ...]
    """Declarations and statements of the token function, indented."""
    finish: tuple[str, ...]
    """Statements of each thread after its last token."""
    launch_arguments: tuple[str, ...]
    """How the uniform entry reads each parameter from its two arrays."""

    @property
    def token_arguments(self) -> tuple[str, ...]:
        """Names of the token's parameters, as the loop over tokens passes them."""
        return tuple(parameter.name for parameter in self.token_parameters)


@dataclass(frozen=True)
class Entry:
    """The Python function that runs the one kernel of a module on typed memoryviews."""

    key: str
    shape_key: str
    parameters: tuple[str, ...]
    """Typed memoryviews with their names."""
    outputs: int
    """How many of the parameters are written."""
    shapes: tuple[str, ...]
    """For the docstring: ``grad_y: (R, H) bf16 as uint16 bits``."""
    checks: tuple[str, ...]
    """Sizes, and the statements that hold each dimension against them."""
    arguments: tuple[str, ...]
    """Arguments of the kernel's call."""


@dataclass(frozen=True)
class ModuleSource:
    """One ``.pyx`` file."""

    header: tuple[str, ...]
    """Comment lines at the top."""
    include: str
    """The C header that the kernels include."""
    declarations: tuple[str, ...]
    """Functions of it that they use."""
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]
    kernels: tuple[KernelSource, ...]
    entry: Entry | None
