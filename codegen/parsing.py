"""Reads programs: MLIR text in, a verified module with one function out, errors with their place."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Position

from .dialect import context
from .errors import ProgramError

DIMS, NAME = "moe.dims", "moe.name"


class LocatingParser(Parser):
    """A parser that gives every operation the place where its text starts."""

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        op.location = self._place(start)
        return op

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
    try:
        module = LocatingParser(context(), text, name).parse_module()
    except ParseError as error:
        line, column = _line_col(text, error.span.start)
        raise ProgramError(f"{name}:{line}:{column}: {error.msg}\n{_excerpt(text, line, column)}") from error
    except DiagnosticException as error:
        raise ProgramError(f"{name}: {error}") from error
    verify_located(module, text, name)
    func = _only_function(module, name)
    _check_signature(func, text, name)
    _name_arguments(func)
    return module


def verify_located(module: ModuleOp, text: str, name: str) -> None:
    """Verifies each operation alone, so that a failure has the place of its own operation."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except DiagnosticException as error:
            raise _located(op, str(error), text, name) from error


def function(module: ModuleOp) -> FuncOp:
    """The function of a program."""
    return next(op for op in module.ops if isinstance(op, FuncOp))


def _only_function(module: ModuleOp, name: str) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1 or len(list(module.ops)) != 1:
        raise ProgramError(f"{name}: a program is one func.func, got {len(list(module.ops))} operations")
    if len(functions[0].body.blocks) != 1:
        raise ProgramError(f"{name}: func.func: the body must be one block")
    return functions[0]


def _check_signature(func: FuncOp, text: str, name: str) -> None:
    """Every tensor of the signature names its dimensions; the body returns what it promises."""
    signature = [
        *zip(func.function_type.inputs, _attributes(func, "arg_attrs"), strict=True),
        *zip(func.function_type.outputs, _attributes(func, "res_attrs"), strict=True),
    ]
    for position, (type_, attributes) in enumerate(signature):
        if not isinstance(type_, TensorType | MemRefType):
            raise _located(
                func, f"func.func: argument {position} must be a tensor or a memref, got {type_}", text, name
            )
        dims = attributes.data.get(DIMS)
        if not isinstance(dims, ArrayAttr) or not all(isinstance(dim, StringAttr) for dim in dims):
            message = f'func.func: argument {position} needs {DIMS} = ["R", "H"] or the like, got {attributes}'
            raise _located(func, message, text, name)
        if len(dims) != len(type_.get_shape()):
            message = f"func.func: argument {position}: {DIMS} must name {len(type_.get_shape())} dimensions"
            raise _located(func, f"{message} of {type_}, got {dims}", text, name)
    last = func.body.block.last_op
    if not isinstance(last, ReturnOp):
        raise _located(func, "func.func: the body must end in func.return", text, name)
    returned = tuple(value.type for value in last.arguments)
    if returned != func.function_type.outputs.data:
        expected = ", ".join(map(str, func.function_type.outputs))
        got = ", ".join(map(str, returned))
        raise _located(last, f"func.return: expected ({expected}), got ({got})", text, name)


def _attributes(func: FuncOp, which: str) -> list[DictionaryAttr]:
    count = len(func.function_type.inputs if which == "arg_attrs" else func.function_type.outputs)
    attributes = func.arg_attrs if which == "arg_attrs" else func.res_attrs
    return list(attributes) if attributes is not None else [DictionaryAttr({})] * count


def _name_arguments(func: FuncOp) -> None:
    """Writes each argument's SSA name to ``moe.name``, which survives any printer."""
    named = []
    for position, (value, attributes) in enumerate(zip(func.args, _attributes(func, "arg_attrs"), strict=True)):
        hint = StringAttr(value.name_hint or f"arg{position}")
        named.append(DictionaryAttr({NAME: attributes.data.get(NAME, hint)} | attributes.data))
    func.arg_attrs = ArrayAttr(named)
    outputs = enumerate(_attributes(func, "res_attrs"))
    func.res_attrs = ArrayAttr(
        DictionaryAttr({NAME: StringAttr(f"out{position}")} | attributes.data) for position, attributes in outputs
    )


def _located(op: Operation, message: str, text: str, name: str) -> ProgramError:
    where = op.location
    if not isinstance(where, FileLineColLoc):
        return ProgramError(f"{name}: {message}")
    line, column = where.line.data, where.column.data
    return ProgramError(f"{name}:{line}:{column}: {message}\n{_excerpt(text, line, column)}")


def _line_col(text: str, position: int) -> tuple[int, int]:
    position = min(position, len(text))
    return text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1


def _excerpt(text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    return f"  {shown}\n  {' ' * (column - 1)}^"
