"""specialize: every dtype and size that is asked for is bound, everywhere."""

from __future__ import annotations

from dataclasses import fields

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, i1, i32

from moegrad.codegen.dialect import context
from moegrad.codegen.dialect.tensor import RepeatRowsOp
from moegrad.codegen.dialect.types import DTypeParam, element, shape
from moegrad.codegen.dtypes import DTYPES, from_mlir
from moegrad.codegen.errors import LoweringError
from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec, operator
from moegrad.codegen.parsing import builtin_program, function, parse_program
from moegrad.codegen.passes.specialize import SpecializePass
from moegrad.codegen.signature import signature

from ..helpers import MODE_IDS, MODES, sizes_of


def specialised(module: ModuleOp, **options: str | int) -> ModuleOp:
    """The program after the pass, verified."""
    module = module.clone()
    SpecializePass(**options).apply(context(), module)  # type: ignore[arg-type]
    module.verify()
    return module


@pytest.mark.parametrize("data", DTYPES)
@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_everything_is_bound(name: str, mode: str, data: str) -> None:
    found = operator(name).mode(mode)
    spec = make_spec(name, mode, data, "f32" if found.weighted else "", 1 if found.per_row else 4, 96)
    module = specialised(
        program_of(spec), data=spec.data, weight=spec.weight, topk=spec.topk, hidden=spec.hidden, symbol=spec.key
    )
    func = function(module)
    assert func.sym_name.data == spec.key
    assert sizes_of(module) == ({"H": 96} if found.per_row else {"K": 4, "H": 96})
    values = [*func.args, *(result for op in func.body.block.ops for result in op.results)]
    for value in values:
        assert not isinstance(element(value.type), DTypeParam)
        assert element(value.type) in (i1, i32) or from_mlir(element(value.type)) is not None
    for tensor in signature(func):
        bound = {"H": 96, "K": 4}
        assert shape(tensor.type) == tuple(bound.get(dim, DYNAMIC_INDEX) for dim in tensor.dims)
        if tensor.is_rows:
            assert element(tensor.type) == DTYPES[data].mlir
    rows = [value for value in values if len(shape(value.type)) == 2 and element(value.type) not in (i1, i32)]
    assert {shape(value.type)[1] for value in rows} <= {96, 4}
    assert all(op.topk is not None for op in func.walk() if isinstance(op, RepeatRowsOp))


def test_what_is_not_asked_for_stays_open() -> None:
    module = specialised(builtin_program("scales"), data="bf16", weight="f16")
    assert sizes_of(module) == {}
    assert "?x?xbf16" in str(module)
    assert function(module).sym_name.data == "scales"
    assert all(op.topk is None for op in module.walk() if isinstance(op, RepeatRowsOp))


def test_the_input_stays_as_it_is_in_the_pipeline() -> None:
    module = builtin_program("scales")
    before = str(module)
    specialised(module, data="f16", weight="f16", hidden=3)
    assert str(module) == before


@pytest.mark.parametrize(("options", "symbol"), [({}, "D"), ({"data": "f16"}, "P"), ({"weight": "f16"}, "D")])
def test_a_dtype_that_nobody_gives_is_refused(options: dict[str, str], symbol: str) -> None:
    with pytest.raises(LoweringError) as error:
        specialised(builtin_program("scales"), **options)
    assert str(error.value) == f'specialize: no dtype given for the program\'s !moe.dtype<"{symbol}">'


FIXED = """
func.func @fixed(%grad: tensor<?x64xf32> {moe.dims = ["R", "H"]}, %index: tensor<?x2xi32> {moe.dims = ["R", "K"]})
    -> (tensor<?x?xf32> {moe.dims = ["M", "H"], moe.name = "out"}) {
  %rows = moe.repeat_rows %grad : (tensor<?x64xf32>) -> tensor<?x?xf32>
  %out = moe.scatter_rows %rows to %index rows "M" : (tensor<?x?xf32>, tensor<?x2xi32>) -> tensor<?x?xf32>
  func.return %out : tensor<?x?xf32>
}
"""


def test_sizes_that_the_program_fixes_are_bound() -> None:
    module = specialised(parse_program(FIXED, "fixed.mlir"))
    assert sizes_of(module) == {"H": 64, "K": 2}
    assert shape(function(module).function_type.outputs.data[0]) == (DYNAMIC_INDEX, 64)
    assert [op.topk.value.data for op in module.walk() if isinstance(op, RepeatRowsOp) and op.topk] == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 65}, "specialize: the program fixes H = 64, asked for 65"),
        ({"topk": 3}, "specialize: the program fixes K = 2, asked for 3"),
    ],
    ids=["hidden", "topk"],
)
def test_a_size_that_contradicts_the_program_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(LoweringError) as error:
        specialised(parse_program(FIXED, "fixed.mlir"), **options)
    assert str(error.value) == message


def test_options_have_documented_defaults() -> None:
    assert {field.name: field.default for field in fields(SpecializePass)} == {
        "data": "",
        "weight": "",
        "topk": 0,
        "hidden": 0,
        "symbol": "",
    }
