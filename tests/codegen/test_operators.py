"""The supported matrix, the models and the sets of kernels."""

from __future__ import annotations

import pytest

from moegrad.codegen.dtypes import DTYPES
from moegrad.codegen.errors import SpecError
from moegrad.codegen.generate import program_of
from moegrad.codegen.models import model, models, shapes
from moegrad.codegen.operators import OPERATORS, dtype_pairs, kernel_of, make_spec, operator, program_mode
from moegrad.codegen.parsing import builtin_text, function
from moegrad.codegen.sets import SETS, by_module, default_set, model_set, models_set, reference_set
from moegrad.codegen.spec import ANY, KernelSpec

from .helpers import MODE_IDS, MODES


def test_the_modes_are_those_of_the_contract() -> None:
    assert {name: [mode.name for mode in each.modes] for name, each in OPERATORS.items()} == {
        "token_unpermute_grad": ["plain", "probs", "padded", "padded_probs"],
        "finalize_routing_v2_grad": ["plain", "scales", "scales_bias"],
    }


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_every_mode_has_a_program_that_says_what_it_computes(name: str, mode: str) -> None:
    found = operator(name).mode(mode)
    assert program_mode(f"{name}__{mode}") is found
    assert builtin_text(found.program).startswith("// ")
    assert function(program_of(make_spec(name, mode, "bf16"))).sym_name.data == found.program


@pytest.mark.parametrize(("name", "mode"), MODES, ids=MODE_IDS)
def test_a_spec_of_a_mode(name: str, mode: str) -> None:
    found = operator(name).mode(mode)
    topk = 1 if found.per_row else 4
    spec = make_spec(name, mode, "bf16", topk=topk, hidden=64)
    assert spec == KernelSpec(f"{name}__{mode}", "bf16", "bf16" if found.weighted else "", topk, 64)
    assert len(dtype_pairs(found)) == (9 if found.weighted else 3)


@pytest.mark.parametrize("mode", ["plain", "probs"])
def test_modes_of_equal_mathematics_share_a_kernel(mode: str) -> None:
    shared = {"plain": "plain", "probs": "scales"}[mode]
    spec = make_spec("token_unpermute_grad", mode, "f16", topk=2, hidden=7)
    own = make_spec("finalize_routing_v2_grad", shared, "f16", topk=2, hidden=7)
    assert kernel_of(spec) == own
    assert kernel_of(own) == own
    assert str(program_of(spec)) == str(program_of(own))


def test_a_program_file_is_its_own_kernel() -> None:
    spec = KernelSpec("scale_squared", "f16")
    assert program_mode(spec.program) is None
    assert kernel_of(spec) == spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("moe_grad", "plain", "f16"),
            "operator: expected one of token_unpermute_grad, finalize_routing_v2_grad; got 'moe_grad'",
        ),
        (
            ("finalize_routing_v2_grad", "padded", "f16"),
            "mode: finalize_routing_v2_grad has the modes plain, scales, scales_bias; got 'padded'",
        ),
        (
            ("token_unpermute_grad", "plain", "f16", "f16"),
            "weight dtype: token_unpermute_grad plain has no weights, got 'f16'",
        ),
        (
            ("token_unpermute_grad", "padded", "f16", "", 2),
            "topk: token_unpermute_grad padded has one slot a row, got 2",
        ),
        (("token_unpermute_grad", "plain", "f64"), "dtype: expected one of f16, bf16, f32, got 'f64'"),
    ],
    ids=["operator", "mode", "weight", "topk", "dtype"],
)
def test_what_is_outside_the_matrix_is_refused(arguments: tuple[str, str, str], message: str) -> None:
    with pytest.raises(SpecError) as error:
        make_spec(*arguments)
    assert str(error.value) == message


def test_models() -> None:
    found = {each.name: each for each in models()}
    assert len(found) == len(models()) == 16
    assert (found["gpt-oss-120b"].topk, found["gpt-oss-120b"].hidden) == (4, 2880)
    assert model("kimi-k2").experts == 384
    assert all(each.topk <= each.experts for each in models())
    assert shapes() == sorted({(each.topk, each.hidden) for each in models()})


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(SpecError, match=r"^model: expected one of llama-4-scout, .*kimi-k2; got 'gpt-5'$"):
        model("gpt-5")


@pytest.mark.parametrize("chosen", sorted(SETS))
def test_a_set_has_no_kernel_twice(chosen: str) -> None:
    specs = SETS[chosen]()
    assert len(set(specs)) == len(specs)


def test_the_reference_set_has_one_kernel_a_mode() -> None:
    assert [spec.program for spec in reference_set()] == [f"{name}__{mode}" for name, mode in MODES]


def test_the_default_set_covers_every_dtype_of_every_mode() -> None:
    ready = default_set()
    assert len(ready) == (3 + 9 + 9) + (3 + 9)
    for name, each in OPERATORS.items():
        for mode in each.modes:
            for data, weight in dtype_pairs(mode):
                assert kernel_of(make_spec(name, mode.name, data, weight, 1 if mode.per_row else ANY, ANY)) in ready


def test_the_set_of_models_is_the_default_one_and_every_model() -> None:
    parts = set(default_set()).union(*(model_set(each.name) for each in models()))
    assert set(models_set()) == parts
    distinct = len(shapes()) + 1
    hiddens = len({hidden for _, hidden in shapes()}) + 1
    assert len(parts) == (3 + 9 + 9) * distinct + (3 + 9) * hiddens


def test_modules_group_all_shapes_of_one_program_and_dtypes() -> None:
    modules = by_module(reversed(models_set()))
    assert len(modules) == 3 + 9 + 9 + 3 + 9
    assert list(modules) == sorted(modules)
    for name, group in modules.items():
        assert group == sorted(group)
        assert {spec.module for spec in group} == {name}
    assert sum(map(len, modules.values())) == len(models_set())
    assert {spec.data for spec in models_set()} == set(DTYPES)
