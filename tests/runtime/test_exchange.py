"""Arrays of libraries with DLPack's table of C functions: the same results and refusals, by the shorter way."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moegrad import _native, arrays, calls, checks, finalize_routing_v2_grad, token_unpermute_grad

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
FRESH, USED, TABLE = b"dltensor_versioned", b"used_dltensor_versioned", b"dlpack_exchange_api"
FLAGS, DEVICE, STRIDES = 24, 40, 64
"""Where these stand in a versioned tensor; its major version comes first."""

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.Py_IncRef.argtypes = [ctypes.py_object]

FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    """The table as dlpack.h lays it out."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", FromObject),
        ("to_object", ToObject),
        ("from_object_in_place", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


def exported(array: Any) -> _native.Exported:
    return _native.Exported(array, *arrays.DLPACK_CODES[array.dtype])


def write(kind: Any, value: int) -> Callable[[int], None]:
    """Writes to memory: `write(c_int32, 2)(address)`."""

    def change(address: int) -> None:
        kind.from_address(address).value = value

    return change


def library(
    major: int = 1,
    previous: int | None = None,
    fails: bool = False,
    device: int = 1,
    edits: dict[int, Callable[[int], None]] | None = None,
) -> Any:
    """A library's array type, with a table of its own; `longer` and `shorter` list the ways that were taken."""

    class Tensor:
        longer: list[str] = []  # noqa: RUF012
        shorter: list[str] = []  # noqa: RUF012
        requires_grad = False

        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return (device, 0)

        def __dlpack__(self, **options: Any) -> object:
            self.longer.append("out")
            return exported(self.array).__dlpack__(**options)

        def __array_namespace__(self) -> ModuleType:
            self.longer.append("in")
            namespace = ModuleType("library")
            namespace.from_dlpack = lambda other: Tensor(  # type: ignore[attr-defined]
                _native.read_dlpack(other.__dlpack__(max_version=(1, 0)), arrays.DLPACK_DTYPES)
            )
            return namespace

    def from_object(value: Any, tensor: Any) -> int:
        Tensor.shorter.append("out")
        if fails:
            return -1
        capsule: Any = exported(value.array).__dlpack__(max_version=(1, 0))
        tensor[0] = api.PyCapsule_GetPointer(capsule, FRESH)
        api.PyCapsule_SetName(capsule, USED)
        for offset, change in ({DEVICE: write(ctypes.c_int32, device)} | (edits or {})).items():
            change(tensor[0] + offset)
        return 0

    def to_object(tensor: int, made: Any) -> int:
        Tensor.shorter.append("in")
        if fails:
            return -1
        value = Tensor(_native.read_dlpack(api.PyCapsule_New(tensor, FRESH, None), arrays.DLPACK_DTYPES))
        api.Py_IncRef(value)
        made[0] = id(value)
        return 0

    Tensor.table = Table(major, 0, previous, None, FromObject(from_object), ToObject(to_object))  # type: ignore[attr-defined]
    Tensor.__dlpack_c_exchange_api__ = api.PyCapsule_New(ctypes.addressof(Tensor.table), TABLE, None)  # type: ignore[attr-defined]
    return Tensor


def call(kind: Any, data: Any = F32) -> dict[str, Any]:
    """A call of `kind` whose row gradient is [[6, 8], [2, 4]] and whose weight gradient [[3], [7]]."""
    given = {
        "grad_y": np.array([[1, 2], [3, 4]], data),
        "expanded_row_idx": np.array([1, 0], np.int32),
        "expanded_x": np.ones((2, 2), data),
        "scales": np.full((2, 1), 2, F32),
    }
    return {name: kind(array) for name, array in given.items()}


@pytest.mark.parametrize("data", [np.float16, BF16, F32], ids=str)
def test_the_shorter_way_there_and_back(data: Any) -> None:
    kind = library()
    for _ in range(2):
        rows, scales = finalize_routing_v2_grad(**call(kind, data))
        assert type(rows) is kind
        assert type(scales) is kind
        assert (rows.array.dtype, scales.array.dtype) == (data, F32)
        assert rows.array.tolist() == [[6, 8], [2, 4]]
        assert scales.array.tolist() == [[3], [7]]
    assert not kind.longer
    assert set(kind.shorter) == {"out", "in"}


def test_outputs_are_written_in_place() -> None:
    kind = library()
    out = (kind(np.zeros((2, 2), F32)), kind(np.zeros((2, 1), F32)))
    rows, scales = finalize_routing_v2_grad(**call(kind), out=out)
    assert (rows, scales) == out
    assert out[0].array.tolist() == [[6, 8], [2, 4]]
    assert out[1].array.tolist() == [[3], [7]]
    mixed = (np.zeros((2, 2), F32), None)
    rows, _ = token_unpermute_grad(np.ones((2, 2), F32), out[0], kind(np.array([1, 0], np.int32)), out=mixed)
    assert rows is mixed[0]
    assert rows.tolist() == [[2, 4], [6, 8]]
    assert not kind.longer


def test_such_calls_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    calls._remembered.clear()
    counted, settle = [], checks.settle

    def counting(*arguments: Any) -> Any:
        counted.append(arguments)
        return settle(*arguments)

    monkeypatch.setattr(checks, "settle", counting)
    for kind in (library(), np.asarray, library()):
        finalize_routing_v2_grad(**call(kind))
    assert len(counted) == 1


def test_a_call_that_cannot_be_remembered_asks_each_tensor_once() -> None:
    kind = library()
    numbers: dict[str, Any] = {"active_num": np.int64(0)}
    finalize_routing_v2_grad(**call(kind), **numbers)
    assert kind.shorter == ["out"] * 4 + ["in"] * 2


def test_shapes_of_a_library_are_remembered() -> None:
    class Size(tuple[int, ...]):
        pass

    calls._remembered.clear()
    rows, index = np.ones((2, 3), F32), np.array([1, 0], np.int32)
    for shape in (Size((2, 3)), [2, 3], (2, 3)):
        token_unpermute_grad(rows, rows, index, None, True, shape)
    assert len(calls._remembered) == 1


@pytest.mark.parametrize("changes", [{"major": 2}, {"major": 0}, {"fails": True}])
def test_the_longer_way_where_the_table_does_not_serve(changes: dict[str, Any]) -> None:
    kind = library(**changes)
    rows, scales = finalize_routing_v2_grad(**call(kind))
    assert type(rows) is type(scales) is kind
    assert rows.array.tolist() == [[6, 8], [2, 4]]
    assert set(kind.longer) == {"out", "in"}


def test_an_older_version_of_the_table_is_found() -> None:
    older = library()
    kind = library(major=2, previous=ctypes.addressof(older.table))
    finalize_routing_v2_grad(**call(kind))
    assert older.shorter
    assert not kind.shorter


def test_subclasses_and_things_that_are_no_table_go_the_longer_way() -> None:
    kind = library()

    class Sub(kind):  # type: ignore[misc, valid-type]
        """Its library might read it otherwise."""

    class Wrong(kind):  # type: ignore[misc, valid-type]
        __dlpack_c_exchange_api__ = 7

    for odd in (Sub, Wrong):
        kind.shorter.clear()
        rows, _ = finalize_routing_v2_grad(**call(odd))
        assert rows.array.tolist() == [[6, 8], [2, 4]]
        assert not kind.shorter


@pytest.mark.parametrize("remembered", [False, True])
def test_refusals_are_those_of_the_longer_way(remembered: bool) -> None:
    kind, cuda = library(), library(device=2)
    if remembered:
        finalize_routing_v2_grad(**call(kind))
    arguments = call(kind)
    out = (cuda(np.zeros((2, 2), F32)), kind(np.zeros((2, 1), F32)))
    with pytest.raises(ValueError, match=r"grad_expanded_x in out: expected an array on the CPU, got one on cuda:0$"):
        finalize_routing_v2_grad(**arguments, out=out)
    with pytest.raises(ValueError, match=r"grad_y: expected an array on the CPU, got one on cuda:0$"):
        finalize_routing_v2_grad(**arguments | {"grad_y": cuda(np.ones((2, 2), F32))})
    arguments["scales"].requires_grad = True
    with pytest.raises(ValueError, match=r"scales: expected a tensor outside autograd \(use \.detach\(\)\)"):
        finalize_routing_v2_grad(**arguments)
    arguments["scales"].requires_grad = False
    arguments["expanded_x"].is_neg = lambda: True
    with pytest.raises(ValueError, match=r"expanded_x: expected stored values, got a tensor with the negative bit"):
        finalize_routing_v2_grad(**arguments)
    arguments["expanded_x"] = kind(np.ones((2, 2), np.float64))
    with pytest.raises(TypeError, match=r"expanded_x: expected dtype float32, the dtype of grad_y, got float64$"):
        finalize_routing_v2_grad(**arguments)
    with pytest.raises(ValueError, match=r"expanded_x: expected an array with scales, got None$"):
        finalize_routing_v2_grad(**arguments | {"expanded_x": None, "grad_y": cuda(np.ones((2, 2), F32))})
    with pytest.raises(ValueError, match=r"expanded_row_idx: expected distinct values in \[0, 1\], got 1 at \[0\]"):
        finalize_routing_v2_grad(**call(kind) | {"expanded_row_idx": kind(np.array([1, 1], np.int32))})


def test_memory_lives_as_long_as_anyone_looks_at_it() -> None:
    class Watched(np.ndarray[Any, Any]):
        pass

    kind = library()
    array = np.ones(3, F32).view(Watched)
    alive = weakref.ref(array)
    view = _native.exchange_view(kind(array), arrays.DLPACK_DTYPES)
    assert view is not None
    del array
    gc.collect()
    assert alive() is not None
    made = _native.exchange_like(kind, view[:2], *arrays.DLPACK_CODES[F32])
    del view
    gc.collect()
    assert made.array.tolist() == [1, 1]
    assert alive() is not None
    del made
    gc.collect()
    assert alive() is None


def test_a_read_only_tensor_is_no_output() -> None:
    kind = library(edits={FLAGS: write(ctypes.c_uint64, 1)})
    rows, _ = finalize_routing_v2_grad(**call(kind))
    assert rows.array.tolist() == [[6, 8], [2, 4]]
    out = (kind(np.zeros((2, 2), F32)), kind(np.zeros((2, 1), F32)))
    with pytest.raises(ValueError, match="grad_expanded_x in out: expected a writeable array"):
        finalize_routing_v2_grad(**call(kind), out=out)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()])
def test_a_tensor_may_leave_its_strides_out(shape: tuple[int, ...]) -> None:
    kind = library(edits={STRIDES: write(ctypes.c_size_t, 0)})
    array = np.arange(np.prod(shape, dtype=int), dtype=F32).reshape(shape)
    view = _native.exchange_view(kind(array), arrays.DLPACK_DTYPES)
    assert view is not None
    assert view.shape == shape
    np.testing.assert_array_equal(view, array)


def test_an_error_of_the_library_is_not_left_behind() -> None:
    kind = library()

    class Fails(kind):  # type: ignore[misc, valid-type]
        """Its C function is the one that asks for a truth value: -1, with an exception set."""

        table = Table(1, 0, None, None, FromObject(("PyObject_IsTrue", api)), kind.table.to_object)
        __dlpack_c_exchange_api__ = api.PyCapsule_New(ctypes.addressof(table), TABLE, None)

        def __bool__(self) -> bool:
            raise RuntimeError("not for a tensor")

    assert _native.exchange_view(Fails(np.ones(3, F32)), arrays.DLPACK_DTYPES) is None
    rows, _ = finalize_routing_v2_grad(**call(Fails))
    assert rows.array.tolist() == [[6, 8], [2, 4]]


@pytest.mark.parametrize(
    ("edits", "dtypes"), [({}, {}), ({0: write(ctypes.c_uint32, 2)}, arrays.DLPACK_DTYPES)], ids=["dtype", "version"]
)
def test_a_tensor_that_is_not_understood_is_given_back(edits: Any, dtypes: Any) -> None:
    kind = library(edits=edits)
    array = np.ones(3, F32)
    alive = weakref.ref(array)
    assert _native.exchange_view(kind(array), dtypes) is None
    del array
    gc.collect()
    assert alive() is None
