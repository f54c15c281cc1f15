"""How names are spelled in the languages that sources are printed in."""

from __future__ import annotations

import re


def camel(name: str) -> str:
    """``grad_expanded_x`` as ``gradExpandedX``: an identifier without underscores, whatever `name` is."""
    head, *rest = [part for part in re.split(r"[^0-9A-Za-z]+", name) if part] or ["x"]
    word = head[0].lower() + head[1:] + "".join(part[0].upper() + part[1:] for part in rest)
    return f"x{word}" if word[0].isdigit() else word


def pascal(name: str) -> str:
    """``token_unpermute_grad`` as ``TokenUnpermuteGrad``, as operator types are named."""
    word = camel(name)
    return word[0].upper() + word[1:]
