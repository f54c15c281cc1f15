"""Runs cases through the two-phase C API on the host model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..aclnn import FUNCTIONS, Session
from .cases import DTYPES, Case
from .oracle import Array

_OPERATORS = {op.name: op for op in FUNCTIONS.values()}
_NAN = float("nan")


def run_through_aclnn(case: Case, session: Session) -> tuple[Array, Array | None]:
    """Both phases on poisoned outputs; a status that is not 0 is an AclnnError."""
    op = _OPERATORS[case.operator]
    given = case.arguments()
    row_shape = (case.experts, case.capacity, case.hidden) if case.drop_pad_mode else (case.rows, case.hidden)
    row = np.full(row_shape, _NAN, DTYPES[case.data_dtype])
    weight: Array | None = None
    if case.weight_dtype is not None:
        weight = np.full(given[op.inputs[op.weights].name].shape, _NAN, DTYPES[case.weight_dtype])
    defaults: dict[str, Any] = {"bool": False, "int": 0, "ints": None}
    inputs = [given.get(row.name) for row in op.inputs]
    attributes = [given.get(attribute, defaults[kind]) for attribute, kind in op.attributes]
    session.run(op.api, *inputs, *attributes, row, weight)
    return row, weight
