"""Kernel specs: the key and its inverse, order, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import Float64Type, i32

from moegrad.codegen.dtypes import DTYPES, dtype, from_mlir
from moegrad.codegen.errors import SpecError
from moegrad.codegen.sets import models_set, reference_set
from moegrad.codegen.spec import ANY, KernelSpec

tags = st.sampled_from(sorted(DTYPES))
sizes = st.integers(0, 10**6)
programs = st.from_regex("[a-z][a-z0-9_]{0,30}", fullmatch=True) | st.sampled_from(
    ["a__f16", "a__bf16_f32", "a_", "a__k8", "finalize_routing_v2_grad__scales_bias", "x__f32__kany__h1"]
)
specs = st.builds(KernelSpec, programs, tags, st.just("") | tags, sizes, sizes)


@given(specs)
def test_parse_is_the_inverse_of_key(spec: KernelSpec) -> None:
    assert KernelSpec.parse(spec.key) == spec


@given(specs, specs)
def test_equal_keys_mean_equal_specs(left: KernelSpec, right: KernelSpec) -> None:
    assert (left.key == right.key) == (left == right)


@given(st.lists(specs, max_size=6))
def test_specs_sort_by_program_dtypes_and_shape(mixed: list[KernelSpec]) -> None:
    fields = [(s.program, s.data, s.weight, s.topk, s.hidden) for s in sorted(mixed)]
    assert fields == sorted(fields)


@pytest.mark.parametrize("spec", [*reference_set(), *models_set()[::97]], ids=lambda spec: spec.key)
def test_the_keys_of_the_sets_parse_back(spec: KernelSpec) -> None:
    assert KernelSpec.parse(spec.key) == spec
    assert spec.key == f"{spec.module}__{spec.shape_key}"


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        (
            KernelSpec("finalize_routing_v2_grad__scales_bias", "bf16", "f32", 8, 7168),
            "finalize_routing_v2_grad__scales_bias__bf16_f32__k8__h7168",
        ),
        (KernelSpec("token_unpermute_grad__plain", "f16"), "token_unpermute_grad__plain__f16__kany__hany"),
        (KernelSpec("scale_squared", "f32", "f16", ANY, 100), "scale_squared__f32_f16__kany__h100"),
    ],
    ids=["specialised", "generic", "program-file"],
)
def test_key(spec: KernelSpec, key: str) -> None:
    assert spec.key == key


@pytest.mark.parametrize(
    "key",
    [
        *["", "a", "a__f16", "a__f16__k8", "a__f16__k08__h1", "a__f16__k0__h1", "a__f64__k1__h1", "A__f16__k1__h1"],
        *["a__f16__k1__h1 ", "a__f16__k1__h1\n", "a__f16__k-1__h1", "__f16__k1__h1", "a__f16_f16_f16__k1__h1"],
    ],
)
def test_a_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(SpecError) as error:
        KernelSpec.parse(key)
    assert str(error.value) == f"kernel key: expected PROGRAM__D[_P]__kK__hH, got {key!r}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "f64"), "dtype: expected one of f16, bf16, f32, got 'f64'"),
        (("a", ""), "dtype: expected one of f16, bf16, f32, got ''"),
        (("a", "f16", "i8"), "dtype: expected one of f16, bf16, f32, got 'i8'"),
        (("a", "f16", "", -1), "topk: expected a positive number, or 0 for any, got -1"),
        (("a", "f16", "", 1, -8), "hidden: expected a positive number, or 0 for any, got -8"),
        (("A", "f16"), "program: expected a lower-case identifier, got 'A'"),
        (("", "f16"), "program: expected a lower-case identifier, got ''"),
        (("a-b", "f16"), "program: expected a lower-case identifier, got 'a-b'"),
    ],
    ids=["data", "empty-data", "weight", "topk", "hidden", "upper-case", "no-program", "dash"],
)
def test_a_spec_outside_the_grammar_is_refused(arguments: tuple[str, str], message: str) -> None:
    with pytest.raises(SpecError) as error:
        KernelSpec(*arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("alias", ["float16", "half", "fp16", "f16"])
def test_dtypes_have_aliases(alias: str) -> None:
    assert dtype(alias) is DTYPES["f16"]


def test_a_spec_keeps_to_tags_so_that_its_key_parses() -> None:
    with pytest.raises(SpecError, match=r"^dtype: expected one of f16, bf16, f32, got 'float16'$"):
        KernelSpec("a", "float16")


def test_the_dtype_table_is_found_by_mlir_type() -> None:
    assert [from_mlir(row.mlir) for row in DTYPES.values()] == list(DTYPES.values())
    assert from_mlir(Float64Type()) is None
    assert from_mlir(i32) is None
