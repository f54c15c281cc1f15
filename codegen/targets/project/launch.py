"""Writes a project for direct launch: the kernels with <<<...>>>, and a PyTorch binding."""

from __future__ import annotations

from functools import cached_property

from ...chips import chip
from ...dtypes import DTYPES
from .emit import Project, ProjectSpec

SHARED = {
    "CMakeLists.txt": "launch/CMakeLists.txt",
    "README.md": "launch/README.md",
    "example.py": "launch/example.py",
    "moegrad_torch.asc": "launch/moegrad_torch.asc",
    "moegrad_torch.h": "launch/moegrad_torch.h",
    "common/moegrad_contract.h": "common/moegrad_contract.h",
    "common/moegrad_rules.h": "common/moegrad_rules.h",
    "common/moegrad_checks.h": "common/moegrad_checks.h",
    "common/moegrad_choice.h": "common/moegrad_choice.h",
}
"""File -> its template."""

OF_OPERATOR = {
    "moegrad_{name}_torch.h": "launch/operator.h",
    "common/moegrad_{name}_contract.h": "common/contract.h",
}
"""The same for each operator."""


class LaunchProject(Project):
    """One project for direct launch."""

    owned = ("kernels/*",)
    option = "--launch"

    def __init__(self, spec: ProjectSpec):
        super().__init__(spec, in_python=True)

    @cached_property
    def files(self) -> dict[str, str]:
        """Path below the project's folder -> text."""
        found = {path: self.text(template, path) for path, template in SHARED.items()}
        for operator in self.operators:
            found |= self.operator_files(operator, OF_OPERATOR)
            for kernel in operator.kernels:
                found |= {
                    f"kernels/{name}": text for name, text in kernel.emitted.files.items() if not name.endswith(".cpp")
                }
        return found

    @property
    def kernel_files(self) -> list[str]:
        """Names of the kernels, without extension; operators share some."""
        return sorted({kernel.file for operator in self.operators for kernel in operator.kernels})

    @property
    def architecture(self) -> str:
        """What the compiler calls the chip."""
        return f"dav-{chip(self.spec.soc).arch}"

    @property
    def torch_dtypes(self) -> tuple[str, str]:
        """Dtypes of rows and weights of the example."""
        data, weight = self.spec.pairs[-1]
        return DTYPES[data].numpy, DTYPES[weight].numpy
