"""First phases that are refused: with which code and which words, and what stays as it was."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moegrad.aclnn import AclnnError, Session, Tensor

from .calls import (
    BF16,
    BOTH,
    F32,
    FINALIZE,
    MISSING,
    TILING,
    UNPERMUTE,
    Arguments,
    Array,
    names_of,
    nans,
    ones,
    ordered,
)
from .raw import raw
from .wrong_calls import MEMORY, MODES, NULLS, Bad, dtype_rows, format_rows
from .wrong_shapes import FINALIZE_SHAPES, UNPERMUTE_SHAPES

EVERY = [*NULLS, *dtype_rows(), *format_rows(), *MODES, *FINALIZE_SHAPES, *UNPERMUTE_SHAPES, *MEMORY]


def outputs_of(name: str, arguments: Arguments) -> list[Array]:
    found = [arguments[each] for each in names_of(name)[2] if arguments[each] is not None]
    return [each.array if isinstance(each, Tensor) else each for each in found]


@pytest.mark.parametrize("bad", EVERY, ids=lambda bad: bad.id)
def test_a_wrong_call_is_refused(bad: Bad, session: Session) -> None:
    arguments = bad.arguments()
    before = [each.tobytes() for each in outputs_of(bad.name, arguments)]
    with pytest.raises(AclnnError) as caught:
        session.run(bad.name, *ordered(bad.name, arguments))
    assert (caught.value.status, caught.value.text) == (
        bad.status,
        f"{bad.name}GetWorkspaceSize: {bad.text}",
    )
    assert [each.tobytes() for each in outputs_of(bad.name, arguments)] == before


@pytest.mark.parametrize("bad", EVERY, ids=lambda bad: bad.id)
def test_a_refused_call_touches_nothing(bad: Bad, session: Session) -> None:
    call = raw(session, bad.name, bad.arguments())
    assert call.first() == bad.status
    assert call.untouched()
    assert call.unchanged()
    call.close()


@pytest.mark.parametrize("bad", [*NULLS, *MODES, *UNPERMUTE_SHAPES], ids=lambda bad: bad.id)
def test_ascend950_refuses_the_same(bad: Bad, session_950: Session) -> None:
    arguments = {
        name: value.astype(BF16) if _is_fp32(value) and name not in WEIGHTS else value
        for name, value in bad.arguments().items()
    }
    call = raw(session_950, bad.name, arguments)
    assert call.first() == bad.status
    assert session_950.recent_error().endswith(f": {bad.text}")
    assert call.untouched()
    assert call.unchanged()
    call.close()


WEIGHTS = ("scales", "probs", "grad_scales", "probs_grad")


def _is_fp32(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == F32


@BOTH
@pytest.mark.parametrize("place", ["workspaceSize", "executor"])
def test_no_place_for_the_results(name: str, make: Callable[[], Arguments], place: str, session: Session) -> None:
    call = raw(session, name, make())
    places: list[Any] = [ctypes.byref(call.size), ctypes.byref(call.executor)]
    places[["workspaceSize", "executor"].index(place)] = ctypes.c_void_p()
    assert session.library[f"{name}GetWorkspaceSize"](*call.passed, *places) == MISSING
    assert session.recent_error() == f"{name}GetWorkspaceSize: {place}: expected a place to write to, got null"
    assert call.untouched()
    call.close()


@pytest.mark.parametrize("topk", [512, 513])
@pytest.mark.parametrize("operator", [FINALIZE, UNPERMUTE])
def test_the_limit_of_topk(operator: str, topk: int, session: Session) -> None:
    index, x, weights = np.arange(topk, dtype=np.int32), ones(topk, 8), ones(1, topk)
    rows, gradient = nans(topk, 8), nans(1, topk)
    calls: dict[str, list[Any]] = {
        FINALIZE: [ones(1, 8), index, x, weights, None, None, 0, 0, 0, 0, rows, gradient],
        UNPERMUTE: [x, ones(1, 8), index, weights, False, None, rows, gradient],
    }
    arguments = calls[operator]
    if topk == 512:
        session.run(operator, *arguments)
        assert (gradient == 8).all()
        return
    with pytest.raises(AclnnError) as caught:
        session.run(operator, *arguments)
    assert caught.value.status == TILING
    assert "512" in caught.value.text
    assert "513" in caught.value.text
    assert np.isnan(rows).all()
    assert np.isnan(gradient).all()


@pytest.mark.parametrize("operator", [FINALIZE, UNPERMUTE])
def test_the_limit_of_topk_without_weights(operator: str, session: Session) -> None:
    rows, index = nans(513, 8), np.arange(513, dtype=np.int32)
    inputs = (
        [ones(1, 8), index, None, None, None, None] if operator == FINALIZE else [ones(513, 8), ones(1, 8), index, None]
    )
    attributes = [0, 0, 0, 0] if operator == FINALIZE else [False, None]
    with pytest.raises(AclnnError) as caught:
        session.run(operator, *inputs, *attributes, rows, None)
    assert caught.value.status == TILING
    assert np.isnan(rows).all()
