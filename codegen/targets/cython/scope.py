"""Names in a kernel: those of tensors, and local variables that branches share where types agree."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .lanes import DECLARATIONS
from .plan import Parameter

_WORDS = """
auto break case char const continue default do double enum extern float goto inline int long register restrict return
short signed sizeof static struct switch typedef union unsigned void volatile
cdef cpdef ctypedef cimport nogil gil noexcept bint lanes prange range NULL
int32_t int64_t uint16_t PyCapsule_New KERNELS TENSORS SIZES ValueError MemoryError
t tensors sizes num_threads status run
""".split()

RESERVED = frozenset([*keyword.kwlist, *keyword.softkwlist, *DECLARATIONS, *_WORDS])
"""Names that a kernel's text uses itself, and those that Cython and C keep for themselves."""


def tensor_names(names: Iterable[str], symbols: Iterable[str]) -> dict[str, str]:
    """Tensor -> its name in a kernel: its own, unless that is no identifier or means something else there."""
    names = list(names)
    taken = RESERVED | set(symbols) | decision_names(names)
    found: dict[str, str] = {}
    for name in names:
        found[name] = _free(_identifier(name), taken | set(found.values()))
    return found


def decision_names(tensors: Iterable[str]) -> set[str]:
    """Names of what a kernel decides once a call for each tensor."""
    return {f"{decision}_{tensor}" for tensor in tensors for decision in ("stream", "lead")}


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{word}" if not word or word[0].isdigit() else word


def _free(word: str, taken: Iterable[str]) -> str:
    name, number = word, 1
    while name in taken:
        number += 1
        name = f"{word}{number}"
    return name


class Scope:
    """Hands out names; a name is free again when the block that introduced it ends."""

    def __init__(self, reserved: Iterable[str]):
        self._alive: list[set[str]] = [set(reserved) | RESERVED]
        self._types: dict[str, str] = {}

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A block of its own."""
        self._alive.append(set())
        yield
        self._alive.pop()

    def new(self, hint: str, type_: str) -> str:
        """A name like `hint` for a variable of C type `type_`."""
        others = {name for name, other in self._types.items() if other != type_}
        name = _free(_identifier(hint.removesuffix("_f32")), others.union(*self._alive))
        self._alive[-1].add(name)
        self._types[name] = type_
        return name

    def declared(self) -> list[Parameter]:
        """Every variable handed out, in order."""
        return [Parameter(name, type_) for name, type_ in self._types.items()]
