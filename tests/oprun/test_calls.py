"""Operators that work: both phases, strided and absent tensors, empty ones, every column, every kind of attribute."""

from __future__ import annotations

import numpy as np
import pytest

from .package import Array, Script, array_of, faults


def values(shape: tuple[int, ...], dtype: str, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(dtype)


def scaled_add(x: Array, y: Array | None, scale: int, shift: int, negate: bool = False) -> Array:
    wide = np.float32(-scale if negate else scale) * x.astype("f4") + np.float32(shift)
    return (wide if y is None else wide + y.astype("f4")).astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 700)])
@pytest.mark.parametrize("with_y", [False, True], ids=["alone", "with_y"])
def test_each_column_and_key(script: Script, dtype: str, shape: tuple[int, ...], with_y: bool) -> None:
    x, y = values(shape, dtype), values(shape, dtype, 2)
    script.tensor("x", x)
    script.tensor("y", y)
    script.tensor("z", np.full_like(x, 99))
    script.prepare("ScaledAdd", f"x,{'y' if with_y else '-'},-", "i3,b0,l-", "z,-")
    script.run("ScaledAdd")
    script.read("z")
    prepared, ran, read = script.results()
    assert (prepared.status, ran.status) == (0, 0), ran.text
    assert prepared.text == "100"
    np.testing.assert_array_equal(array_of(read, x), scaled_add(x, y if with_y else None, 3, 7))


def test_attributes_and_optional_output(script: Script) -> None:
    x = values((4, 4), "float32")
    script.tensor("x", x)
    script.tensor("z", np.zeros_like(x))
    script.tensor("doubled", np.zeros_like(x))
    script.tensor("mask", np.ones(1, "i4"))
    script.int_list("shifts", [10, -3, 1])
    script.prepare("ScaledAdd", "x,-,mask", "i2,b1,lshifts", "z,doubled")
    script.run("ScaledAdd")
    script.read("z")
    script.read("doubled")
    _, ran, z, doubled = script.results()
    assert ran.status == 0, ran.text
    expected = scaled_add(x, None, 2, 8, negate=True)
    np.testing.assert_array_equal(array_of(z, x), expected)
    np.testing.assert_array_equal(array_of(doubled, x), 2 * expected)


def test_strided_inputs_are_gathered_into_the_workspace(script: Script) -> None:
    whole_x, whole_y = values((6, 8), "float16"), values((4, 3), "float16", 2)
    x, y = whole_x[1:4, ::2], whole_y.T
    script.tensor("x", whole_x, x)
    script.tensor("y", whole_y, y)
    z = np.zeros(x.shape, x.dtype)
    script.tensor("z", z)
    script.prepare("ScaledAdd", "x,y,-", "i1,b0,l-", "z,-")
    script.run("ScaledAdd")
    script.read("z")
    script.read("x")
    prepared, ran, read, untouched = script.results()
    assert ran.status == 0, ran.text
    assert prepared.text == "1536", "512 for the workspace of 100 bytes, 512 for each copy of 24"
    np.testing.assert_array_equal(array_of(read, z), scaled_add(x, y, 1, 7))
    np.testing.assert_array_equal(array_of(untouched, whole_x), whole_x)


def test_contiguous_view_at_an_offset_is_not_copied(script: Script) -> None:
    whole, result = values((6, 4), "float32"), np.full((5, 4), 99, "f4")
    script.tensor("x", whole, whole[2:5])
    script.tensor("z", result, result[1:4])
    script.prepare("ScaledAdd", "x,-,-", "i1,b0,l-", "z,-")
    script.run("ScaledAdd")
    script.read("z")
    prepared, ran, read = script.results()
    assert (prepared.text, ran.status) == ("100", 0), ran.text
    result[1:4] = scaled_add(whole[2:5], None, 1, 7)
    np.testing.assert_array_equal(array_of(read, result), result)


def test_broadcast_input(script: Script) -> None:
    row = values((5,), "float32")
    x = np.broadcast_to(row, (3, 5))
    script.tensor("x", row, x)
    script.tensor("z", np.zeros((3, 5), "f4"))
    script.prepare("ScaledAdd", "x,-,-", "i1,b0,l-", "z,-")
    script.run("ScaledAdd")
    script.read("z")
    _, ran, read = script.results()
    assert ran.status == 0, ran.text
    np.testing.assert_array_equal(array_of(read, np.zeros((3, 5), "f4")), scaled_add(x, None, 1, 7))


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_all_outputs_empty_launch_nothing(script: Script, shape: tuple[int, ...]) -> None:
    script.tensor("x", np.zeros(shape, "f4"))
    script.tensor("z", np.zeros((9, 0), "f4"))  # a shape that the tiling function would refuse
    script.prepare("ScaledAdd", "x,-,-", "i1,b0,l-", "z,-")
    script.run("ScaledAdd")
    assert [(answer.status, answer.text) for answer in script.results()] == [(0, "0"), (0, "")]


@pytest.mark.parametrize(("fault", "statuses"), [("NONE", [0, 0]), ("SILENT", [561002])])
def test_empty_outputs_of_an_operator_that_launches_all_the_same(
    script: Script, fault: str, statuses: list[int]
) -> None:
    script.tensor("x", np.zeros((0, 4), "f4"))
    script.tensor("z", np.zeros((0, 4), "f4"))
    script.prepare("Careless", "x,-,-", f"i{faults()[fault]}", "z")
    for _ in statuses[1:]:
        script.run("Careless")
    assert [answer.status for answer in script.results()] == statuses


def test_an_executor_runs_once(script: Script) -> None:
    script.tensor("x", np.zeros(4, "f4"))
    script.tensor("z", np.zeros(4, "f4"))
    script.prepare("ScaledAdd", "x,-,-", "i1,b0,l-", "z,-")
    script.run("ScaledAdd")
    script.run("ScaledAdd")
    assert [answer.status for answer in script.results()] == [0, 0, 161002]


@pytest.mark.parametrize(
    ("dims", "strides", "offset", "storage", "expected"),
    [
        ((2, 3), (3, 1), 0, 6, "contiguous 0 6 0 1 2 3 4 5"),
        ((3, 2), (1, 3), 0, 6, "strided 0 6 0 3 1 4 2 5"),
        ((2, 3), (-3, -1), 5, 6, "strided 0 6 5 4 3 2 1 0"),
        ((2, 2), (4, -1), 1, 6, "strided 0 6 1 0 5 4"),
        ((2, 2, 2), (8, 0, 1), 1, 16, "strided 1 10 1 2 1 2 9 10 9 10"),
        ((1, 3), (99, 1), 2, 5, "contiguous 2 3 2 3 4"),
        ((2, 0, 3), (5, 7, 11), 0, 1, "contiguous 0 0"),
        ((), (), 3, 4, "contiguous 3 1 3"),
        ((2, 3, 2), (6, 2, 1), 0, 12, "contiguous 0 12 0 1 2 3 4 5 6 7 8 9 10 11"),
        ((2, 2, 2), (8, 2, 1), 0, 16, "strided 0 12 0 1 2 3 8 9 10 11"),
    ],
)
def test_gather(
    script: Script, dims: tuple[int, ...], strides: tuple[int, ...], offset: int, storage: int, expected: str
) -> None:
    script.gather(dims, strides, offset, storage)
    assert script.answers() == [expected]


def test_inference(script: Script) -> None:
    script.shape("x", "float16", (-1, 7))
    script.infer("ScaledAdd", "x,-,-", "i1,b0,l-")
    (answer,) = script.results()
    assert (answer.status, answer.text) == (0, "z:1,-1,7 doubled:1,-1,7")
