"""The chip table, and what is refused before anything is emitted (field case 16, docs/field-cases.md)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from moegrad.codegen.chips import CHIPS, MOVE, REDUCTION, UNABLE, chip, require
from moegrad.codegen.errors import LoweringError, SpecError
from moegrad.codegen.generate import ascend_kernel
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function
from moegrad.codegen.passes.plan_ascend import read_plan
from moegrad.codegen.targets.ascendc.hostbuild import include_dir

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
    require(chip("a2"), MOVE, "bf16")
    with pytest.raises(SpecError, match=r"ascend910b: WholeReduceSum: expected an element type of f16, f32, got bf16"):
        require(chip("a2"), REDUCTION, "bf16")


def test_a_printer_asks_for_what_it_issues(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chip without one of the instructions is refused by the name of the instruction."""
    full = CHIPS["ascend910b"]
    for interface in ("Muls", "Mul", "Cast"):
        less = {name: tags for name, tags in full.supports.items() if name != interface}
        monkeypatch.setitem(CHIPS, "ascend910b", replace(full, supports=less))
        with pytest.raises(SpecError, match=f"ascend910b: {interface}: expected an element type of none, got"):
            ascend_kernel(SPEC)


def test_only_2201_gets_vector_barriers() -> None:
    spec = make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 8, 64)
    on_a2, on_950 = (ascend_kernel(spec, name).files[f"{spec.key}.h"] for name in ("ascend910b", "ascend950"))
    assert "PipeBarrier<PIPE_V>" in on_a2
    assert "PipeBarrier" not in on_950


@pytest.mark.parametrize("name", ["ascend910b", "ascend910_93"])
def test_topk_beyond_the_operator_page_is_refused(name: str) -> None:
    with pytest.raises(LoweringError, match=f"topk: {name} takes 1 to 512 slots a token, got 513"):
        ascend_kernel(make_spec("finalize_routing_v2_grad", "scales", "bf16", "f32", 513, 64), name)


@pytest.mark.parametrize("topk", [513, 2000])
def test_a_950_has_no_limit_but_its_buffer(topk: int) -> None:
    plan = read_plan(function(ascend_kernel(replace(SPEC, topk=topk), "ascend950").module))
    assert plan.sizes is not None
    assert plan.sizes.block_tokens == 1
    with pytest.raises(LoweringError, match="not even 256 elements a row fit in UB"):
        ascend_kernel(replace(SPEC, topk=30000), "ascend950")


def test_the_host_model_has_the_same_table() -> None:
    """Names, architectures and cores of the host model's header, and its UB sizes."""
    header = (include_dir() / "moegrad_hostmodel" / "chip.h").read_text(encoding="utf-8")
    found = re.findall(r"MGH_CHIP_(ascend\w+) (\d{4})(\d{3})\b", header)
    rows = {name: (int(arch), int(cores)) for name, arch, cores in found}
    assert rows == {name: (each.arch, each.vector_cores) for name, each in CHIPS.items()}
    for constant, field in (("kUbBytes", "ub_bytes"), ("kStrictUbBytes", "plan_bytes")):
        sizes = re.search(rf"{constant} = kIs3510 \? (\d+) : (\d+);", header)
        assert sizes is not None
        of_arch = {3510: int(sizes[1]), 2201: int(sizes[2])}
        assert {name: getattr(chip_, field) for name, chip_ in CHIPS.items()} == {
            name: of_arch[chip_.arch] for name, chip_ in CHIPS.items()
        }
