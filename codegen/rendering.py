"""Renders templates: strict about names, free of dates, machines and order of generation."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import jinja2


@cache
def environment() -> jinja2.Environment:
    """The one Jinja environment; an unknown name in a template is an error."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def template_text(name: str) -> str:
    """Text of a template by its path below ``templates/``."""
    return files("moegrad.templates").joinpath(name).read_text(encoding="utf-8")


def render(template: str, **context: object) -> str:
    """A template filled in."""
    return environment().get_template(template).render(**context)


def digest(*texts: str) -> str:
    """Short stable digest of everything that decides a generated file."""
    joined = "\0".join(texts).encode()
    return hashlib.sha256(joined).hexdigest()[:16]
