"""Prints programs for people and for other MLIR tools."""

from __future__ import annotations

import re
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from .parsing import function


def program_text(module: ModuleOp, generic: bool = False) -> str:
    """Text of a program's function, its signature one tensor a line.

    With `generic`, the generic form of the whole module, which ``mlir-opt
    --allow-unregistered-dialect`` accepts.
    """
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module if generic else function(module))
    text = stream.getvalue().strip() + "\n"
    return text if generic else _one_tensor_a_line(text)


def _one_tensor_a_line(text: str) -> str:
    """Breaks the first line, the signature, behind its brackets and between its tensors."""
    signature, body = text.split("\n", 1)
    signature = re.sub(r"\(%", "(\n    %", signature, count=1)
    signature = re.sub(r"\}, (?=%|tensor|memref)", "},\n    ", signature)
    signature = re.sub(r"\}\) -> \(", "}\n  ) -> (\n    ", signature)
    signature = re.sub(r"\}\) (?=attributes|\{$)", "}\n  ) ", signature)
    return f"{signature}\n{body}"
