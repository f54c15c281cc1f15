"""Collects the lines of a function, indented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CODE_WIDTH = 120


def wrap(line: str, width: int = CODE_WIDTH) -> str:
    """A line, broken behind commas where it is too long, its rest under the bracket that is open there.

    A comment behind it moves above it.
    """
    if len(line) <= width or line.lstrip().startswith("//") or line.startswith((" * ", "/*")):
        return line
    code, separator, comment = line.partition("  // ")
    if separator:
        indent = " " * (len(line) - len(line.lstrip()))
        return f"{indent}// {comment}\n{wrap(code, width)}"
    cut = line.rfind(", ", 0, width)
    while cut >= 0 and line.count('"', 0, cut) % 2:  # inside a string
        cut = line.rfind(", ", 0, cut)
    if cut < 0:
        target, equals, value = line.partition(" = ")
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        return f"{target} =\n{indent}{value}" if equals else line
    column = _open_bracket(line[: cut + 1])
    if column + max(map(len, line[cut + 2 :].split(", "))) > width:
        column = len(line) - len(line.lstrip()) + 4
    return f"{line[: cut + 1]}\n{wrap(' ' * column + line[cut + 2 :], width)}"


def _open_bracket(text: str) -> int:
    """Column behind the innermost bracket that `text` leaves open; its indent where none is."""
    stack: list[int] = []
    for column, character in enumerate(text):
        if character in "([{":
            stack.append(column)
        elif character in ")]}" and stack:
            stack.pop()
    return stack[-1] + 1 if stack else len(text) - len(text.lstrip())


class Lines:
    """Statements at a current depth."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *texts: str) -> None:
        """Statements, one a line."""
        self.lines += ["    " * self.depth + text if text else "" for text in texts]

    def otherwise(self, body: Sequence[str]) -> None:
        """The other branch of the block that was closed last; a lone `if` in it joins the `else`."""
        outer = [line for line in body if not line.startswith(" ")]
        if outer[0].startswith("if (") and all(line.startswith("}") for line in outer[1:]):
            self.lines[-1] += f" else {body[0]}"
            self.add(*body[1:])
            return
        self.lines[-1] += " else {"
        self.depth += 1
        self.add(*body)
        self.depth -= 1
        self.add("}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A braced block behind a head; one that stays empty leaves no trace."""
        start = len(self.lines)
        self.add(head + " {")
        self.depth += 1
        yield
        self.depth -= 1
        if len(self.lines) == start + 1:
            self.lines.pop()
        else:
            self.add("}")
