"""Both operators through their two phases on any case there is, held against the oracle."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import HealthCheck, given, settings

from moegrad.aclnn import FUNCTIONS, Session
from moegrad.codegen.targets.project.hostlib import HostLibrary
from moegrad.tools import cases as case_tools
from moegrad.tools.compare import explain

from ..strategies import cases
from .calls import FINALIZE, UNPERMUTE


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_any_case_agrees_with_the_oracle(library: HostLibrary, case: case_tools.Case) -> None:
    if case.weight_dtype is not None:
        case = dataclasses.replace(case, weight_dtype="f32")  # the only one the library has
    name = FINALIZE if case.is_finalize else UNPERMUTE
    op = FUNCTIONS[name]
    given_arguments = case.arguments()
    shape = (case.experts, case.capacity, case.hidden) if case.drop_pad_mode else (case.rows, case.hidden)
    row = np.full(shape, np.nan, case_tools.DTYPES[case.data_dtype])
    weight = np.full_like(given_arguments[op.inputs[op.weights].name], np.nan) if case.has_weights else None
    defaults = {"bool": False, "int": 0, "ints": None}
    attributes = [given_arguments.get(attribute, defaults[kind]) for attribute, kind in op.attributes]
    with Session(str(library.path)) as acl:
        acl.run(name, *[given_arguments.get(each.name) for each in op.inputs], *attributes, row, weight)
    assert explain(row, weight, case.expected()) is None
