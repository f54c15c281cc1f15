"""Builds functions around single operations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from moegrad.codegen.dialect import context
from moegrad.codegen.text import program_text


def body(arguments: str, *lines: str) -> ModuleOp:
    """A module with a function of the given arguments and operations, parsed but not verified."""
    text = "\n  ".join([f"func.func @f({arguments}) {{", *lines, "func.return"])
    return Parser(context(), f"{text}\n}}").parse_module()


def refusal(arguments: str, *lines: str) -> str:
    """Why a verifier refuses the operations; the test fails where it does not."""
    module = body(arguments, *lines)
    try:
        module.verify()
    except VerifyException as error:
        return str(error)
    raise AssertionError(f"no verifier objects to {' '.join(lines)}")


def round_trip(arguments: str, lines: Sequence[str]) -> None:
    """Both text forms parse back to the same program, and the custom form keeps the lines as they were."""
    module = body(arguments, *lines)
    module.verify()
    for generic in (False, True):
        again = Parser(context(), program_text(module, generic)).parse_module()
        again.verify()
        assert again.is_structurally_equivalent(module)
        assert program_text(again, generic) == program_text(module, generic)
    printed = re.sub(r"\s+", " ", program_text(module))
    for line in lines:
        assert re.sub(r"\s+", " ", line) in printed
