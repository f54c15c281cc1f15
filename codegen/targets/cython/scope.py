"""Names of local variables: unique where they are alive, shared between branches where types agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .plan import Parameter


class Scope:
    """Hands out names; a name is free again when the block that introduced it ends."""

    def __init__(self, reserved: Iterable[str]):
        self._alive: list[set[str]] = [set(reserved)]
        self._types: dict[str, str] = {}

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A block of its own."""
        self._alive.append(set())
        yield
        self._alive.pop()

    def new(self, hint: str, type_: str) -> str:
        """A name like `hint` for a variable of C type `type_`."""
        hint = hint.removesuffix("_f32")
        name, number = hint, 1
        while any(name in names for names in self._alive) or self._types.get(name, type_) != type_:
            number += 1
            name = f"{hint}{number}"
        self._alive[-1].add(name)
        self._types[name] = type_
        return name

    def declared(self) -> list[Parameter]:
        """Every variable handed out, in order."""
        return [Parameter(name, type_) for name, type_ in self._types.items()]
