"""Real models: experts, topK and hidden size of their MoE layers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

from .errors import SpecError


@dataclass(frozen=True)
class Model:
    """Routing shape of one model."""

    name: str
    experts: int
    topk: int
    hidden: int


def models() -> list[Model]:
    """All models of ``models.csv``, in its order."""
    text = files(__package__).joinpath("models.csv").read_text(encoding="utf-8")
    return [
        Model(row["model"], int(row["experts"]), int(row["topk"]), int(row["hidden"]))
        for row in csv.DictReader(text.splitlines())
    ]


def model(name: str) -> Model:
    """The model of that name; SpecError lists the known ones."""
    found = {row.name: row for row in models()}
    if name not in found:
        raise SpecError(f"model: expected one of {', '.join(found)}; got {name!r}")
    return found[name]


def shapes() -> list[tuple[int, int]]:
    """Every (topK, hidden) of the models, once, sorted."""
    return sorted({(row.topk, row.hidden) for row in models()})
