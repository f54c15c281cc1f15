"""Reads programs: MLIR text in, a verified module with one function out, errors with their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Input, Position
from xdsl.utils.mlir_lexer import MLIRLexer

from .dialect import context
from .errors import ProgramError
from .program_checks import (
    Problem,
    argument_attributes,
    body_problems,
    form_problems,
    result_attributes,
    signature_problems,
)
from .signature import NAME, signature


class LinearLexer(MLIRLexer):
    """xDSL's lexer; a string that nobody closes is found in linear instead of exponential time."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


class LocatingParser(Parser):
    """A parser that gives every operation the place where its text starts."""

    def __init__(self, text: str, name: str):
        super().__init__(context(), "", name)
        self._parser_state = ParserState(LinearLexer(Input(text, name)))

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        op.location = self._place(start)
        return op

    def place_of(self, error: Exception) -> Position:
        """Where a failure of this parser belongs."""
        undefined = next(iter(self.forward_ssa_references), None)
        if isinstance(error, ParseError) and undefined and error.msg.startswith("values used but not defined"):
            use = re.search(rf"%{re.escape(undefined)}(?![\w$.-])", self.lexer.input.content)
            return use.start() if use else error.span.start
        return error.span.start if isinstance(error, ParseError) else self.pos

    def _place(self, position: Position) -> FileLineColLoc:
        text = self.lexer.input.content
        line, column = _line_col(text, position)
        return FileLineColLoc(StringAttr(self.lexer.input.name), IntAttr(line), IntAttr(column))


def read_program(path: Path) -> ModuleOp:
    """The verified program of a ``.mlir`` file; ProgramError names file, line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(f"{path}: cannot read the program: {error}") from error
    return parse_program(text, str(path))


def builtin_program(name: str) -> ModuleOp:
    """One of the project's own programs, by the name of its file in ``programs/``."""
    return parse_program(builtin_text(name), f"{name}.mlir")


def builtin_text(name: str) -> str:
    """Text of one of the project's own programs."""
    return (files(__package__) / "programs" / f"{name}.mlir").read_text(encoding="utf-8")


def parse_program(text: str, name: str) -> ModuleOp:
    """Parses and verifies a module that holds one function; `name` stands in the messages."""
    module = _parsed(text, name)
    _refuse(form_problems(module), text, name)
    _refuse(_broken_rules(module), text, name)
    func = function(module)
    _refuse(signature_problems(func), text, name)
    _name_tensors(func)
    _refuse(body_problems(func), text, name)
    return module


def function(module: ModuleOp) -> FuncOp:
    """The function of a program."""
    return next(op for op in module.ops if isinstance(op, FuncOp))


def place(op: Operation) -> str:
    """``name:line:column: `` of an operation that was read from text; empty for any other."""
    where = op.location
    if not isinstance(where, FileLineColLoc):
        return ""
    return f"{where.filename.data}:{where.line.data}:{where.column.data}: "


def _parsed(text: str, name: str) -> ModuleOp:
    try:
        parser = LocatingParser(text, name)
    except ParseError as error:  # the first token is read at once
        raise ProgramError(_at(text, name, error.span.start, error.msg)) from error
    try:
        return parser.parse_module()
    except Exception as error:  # malformed attributes raise more kinds than ParseError in xDSL
        message = error.msg if isinstance(error, ParseError) else str(error) or type(error).__name__
        raise ProgramError(_at(text, name, parser.place_of(error), message)) from error


def _broken_rules(module: ModuleOp) -> Iterator[Problem]:
    """Verifies each operation alone, so that a failure has the place of its own operation."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except DiagnosticException as error:
            message = str(error)
            yield Problem(op, message if message.startswith(op.name) else f"{op.name}: {message}")


def _refuse(problems: Iterator[Problem], text: str, name: str) -> None:
    """Raises one ProgramError with every problem, in the order of the text."""
    messages = [_located(problem, text, name) for problem in problems]
    if messages:
        raise ProgramError("\n".join(messages))


def _name_tensors(func: FuncOp) -> None:
    """Writes each tensor's name to ``moe.name``, which survives any printer: an argument's is its SSA name."""
    hints = [value.name_hint or f"arg{position}" for position, value in enumerate(func.args)]
    func.arg_attrs = _named(hints, argument_attributes(func))
    if results := result_attributes(func):
        func.res_attrs = _named([f"out{position}" for position in range(len(results))], results)
    for argument, tensor in zip(func.args, signature(func), strict=False):
        argument.name_hint = tensor.name


def _named(hints: list[str], attributes: list[DictionaryAttr]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(
        DictionaryAttr({NAME: StringAttr(hint)} | each.data) for hint, each in zip(hints, attributes, strict=True)
    )


def _located(problem: Problem, text: str, name: str) -> str:
    where = problem.op.location
    if not isinstance(where, FileLineColLoc):
        return f"{name}: {problem.message}"
    return _with_excerpt(text, name, where.line.data, where.column.data, problem.message)


def _at(text: str, name: str, position: int, message: str) -> str:
    return _with_excerpt(text, name, *_line_col(text, position), message)


def _line_col(text: str, position: int) -> tuple[int, int]:
    position = min(position, len(text))
    return text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1


def _with_excerpt(text: str, name: str, line: int, column: int, message: str) -> str:
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    return f"{name}:{line}:{column}: {message}\n  {shown}\n  {' ' * (column - 1)}^"
