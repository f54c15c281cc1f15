"""Real text as words, and words as vectors: the input of the demonstration's router."""

from __future__ import annotations

import hashlib
import re
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["FILES", "embed", "words"]

FILES = (
    "argparse.py",
    "ast.py",
    "difflib.py",
    "doctest.py",
    "inspect.py",
    "optparse.py",
    "pdb.py",
    "pickletools.py",
    "random.py",
    "statistics.py",
    "tarfile.py",
    "threading.py",
    "typing.py",
    "weakref.py",
)
"""Files of Python's standard library with much English in them. A file that is not there is skipped."""

_WORD = re.compile(r"[A-Za-z]+")


def words(count: int) -> tuple[str, ...]:
    """The first `count` words, in lower case, an equal share from the start of each file.

    Raises FileNotFoundError where the standard library has no sources.
    """
    texts = _texts()
    found: list[str] = []
    for number, text in enumerate(texts):
        share = -(-(count - len(found)) // (len(texts) - number))
        found += _WORD.findall(text.lower())[:share]
    return tuple(found)


@cache
def _texts() -> tuple[str, ...]:
    folder = Path(sysconfig.get_path("stdlib"))
    texts = tuple((folder / name).read_text(encoding="utf-8") for name in FILES if (folder / name).is_file())
    if not texts:
        raise FileNotFoundError(f"no sources of Python's standard library: expected {', '.join(FILES)}")
    return texts


def embed(text: Sequence[str], hidden: int) -> npt.NDArray[np.float32]:
    """A vector for each word, (len(text), hidden), standard normal, drawn from a hash of the word."""
    vectors: dict[str, npt.NDArray[np.float32]] = {}
    for word in text:
        if word not in vectors:
            vectors[word] = _vector(word, hidden)
    return np.stack([vectors[word] for word in text]) if text else np.zeros((0, hidden), np.float32)


def _vector(word: str, hidden: int) -> npt.NDArray[np.float32]:
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little")).standard_normal(hidden, np.float32)
