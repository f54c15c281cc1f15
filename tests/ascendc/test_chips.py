"""The chip table, and what is refused before anything is emitted (field case 16)."""

from __future__ import annotations

import pytest

from moegrad.codegen.chips import CHIPS, MOVES, REDUCTION, UNABLE, chip, require
from moegrad.codegen.errors import LoweringError, SpecError
from moegrad.codegen.generate import ascend_kernel
from moegrad.codegen.operators import make_spec

SPEC = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 8, 64)


@pytest.mark.parametrize(
    ("name", "cores", "ub_bytes", "arch"),
    [
        ("ascend910b1", 48, 196352, 2201),
        ("ascend910b4", 40, 196352, 2201),
        ("ascend910_93", 48, 196352, 2201),
        ("ascend950", 64, 253952, 3510),
    ],
)
def test_the_table_holds_what_the_host_query_returns(name: str, cores: int, ub_bytes: int, arch: int) -> None:
    found = CHIPS[name]
    assert (found.vector_cores, found.ub_bytes, found.arch) == (cores, ub_bytes, arch)
    assert found.compiler_flag == f"dav-{arch}"


@pytest.mark.parametrize(("alias", "name"), [("A2", "ascend910b"), ("a3", "ascend910_93"), ("950", "ascend950")])
def test_aliases(alias: str, name: str) -> None:
    assert chip(alias).name == name


@pytest.mark.parametrize("name", UNABLE)
def test_an_unable_chip_is_refused_with_what_it_lacks(name: str) -> None:
    with pytest.raises(SpecError, match=rf"chip: {name} has no DataCopyPad.*expected one of ascend910b, "):
        ascend_kernel(SPEC, name)


def test_an_invented_chip_is_refused_with_what_is_known() -> None:
    with pytest.raises(SpecError, match=r"chip: expected one of ascend910b, .*ascend950.*, got 'ascend9000'"):
        ascend_kernel(SPEC, "ascend9000")


def test_an_interface_that_does_not_take_a_type_is_named() -> None:
    require(chip("a2"), MOVES, "bf16")
    with pytest.raises(SpecError, match=r"ascend910b: WholeReduceSum: expected an element type of f16, f32, got bf16"):
        require(chip("a2"), REDUCTION, "bf16")


def test_only_2201_gets_vector_barriers() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 8, 64)
    on_a2, on_950 = (ascend_kernel(spec, name).files[f"{spec.key}.h"] for name in ("ascend910b", "ascend950"))
    assert "PipeBarrier<PIPE_V>" in on_a2
    assert "PipeBarrier" not in on_950


def test_topk_beyond_the_operator_page_is_refused() -> None:
    with pytest.raises(LoweringError, match="topk: ascend910b takes 1 to 512 slots a token, got 513"):
        ascend_kernel(make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 513, 64))
