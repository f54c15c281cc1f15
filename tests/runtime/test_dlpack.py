"""Arrays of other libraries: in through DLPack, results as the caller's kind, outputs written in place."""

from __future__ import annotations

import gc
import sys
import weakref
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moegrad import (
    _native,
    arrays,
    choice_major_to_token_major,
    finalize_routing_v2_grad,
    token_unpermute_grad,
)

BF16 = np.dtype(ml_dtypes.bfloat16)


class Foreign:
    """A library's array: NumPy memory that can only be reached through DLPack."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0), versioned: bool = True) -> None:
        self.array, self.device, self.versioned = array, device, versioned
        self.exported = _native.Exported(array, *arrays.DLPACK_CODES[array.dtype])

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> object:
        if not self.versioned and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.exported.__dlpack__(**options)

    def __array_namespace__(self) -> ModuleType:
        namespace = ModuleType("foreign")
        namespace.from_dlpack = lambda other: Foreign(  # type: ignore[attr-defined]
            _native.read_dlpack(other.__dlpack__(max_version=(1, 0)), arrays.DLPACK_DTYPES)
        )
        return namespace


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("data", [np.float16, BF16, np.float32], ids=str)
def test_the_gradients_kind_comes_back(data: Any, versioned: bool) -> None:
    grad = Foreign(np.array([[1, 2], [3, 4]], data), versioned=versioned)
    rows, scales = finalize_routing_v2_grad(grad, ints(1, 0), np.ones((2, 2), data), np.full((2, 1), 2, np.float32))
    assert type(rows) is Foreign
    assert type(scales) is Foreign
    assert rows.array.dtype == data
    assert rows.array.tolist() == [[6, 8], [2, 4]]
    assert scales.array.tolist() == [[3], [7]]
    rows, _ = token_unpermute_grad(Foreign(np.ones((2, 2), data)), grad.array, Foreign(ints(1, 0)))
    assert type(rows) is np.ndarray, "the gradient decides, not the other arguments"


def test_a_kind_that_cannot_be_made_comes_back_as_numpy() -> None:
    class Plain(Foreign):
        __array_namespace__ = property()

    rows, _ = finalize_routing_v2_grad(Plain(np.ones((1, 2), np.float32)), ints(0))
    assert type(rows) is np.ndarray


@pytest.mark.parametrize(
    ("device", "name"), [((2, 1), "cuda:1"), ((12, 0), "ext_dev:0"), ((99, 0), "DLPack device type 99:0")]
)
def test_other_devices_are_refused_by_name(device: tuple[int, int], name: str) -> None:
    grad = Foreign(np.ones((1, 2), np.float32), device)
    with pytest.raises(ValueError, match=f"grad_y: expected an array on the CPU, got one on {name}$"):
        finalize_routing_v2_grad(grad, ints(0))


def test_a_producer_that_declines_is_quoted() -> None:
    class Declines(Foreign):
        def __dlpack__(self, **options: Any) -> object:
            raise BufferError("not today")

    with pytest.raises(TypeError, match=r"grad_y: expected an array that DLPack can share, got .*Declines: not today$"):
        finalize_routing_v2_grad(Declines(np.ones((1, 2), np.float32)), ints(0))


def test_a_capsule_is_read_once() -> None:
    capsule = Foreign(np.ones(3, np.float32)).__dlpack__()
    _native.read_dlpack(capsule, arrays.DLPACK_DTYPES)
    with pytest.raises(BufferError, match="no DLPack capsule, or one that was used already"):
        _native.read_dlpack(capsule, arrays.DLPACK_DTYPES)
    with pytest.raises(BufferError, match="no DLPack capsule"):
        _native.read_dlpack(object(), arrays.DLPACK_DTYPES)


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3)])
@pytest.mark.parametrize("dtype", list(arrays.DLPACK_CODES), ids=str)
def test_there_and_back(dtype: Any, version: Any) -> None:
    for shape in ((), (0, 3), (2, 3)):
        array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
        capsule = _native.Exported(array, *arrays.DLPACK_CODES[array.dtype]).__dlpack__(max_version=version)
        back = _native.read_dlpack(capsule, arrays.DLPACK_DTYPES)
        assert (back.dtype, back.shape) == (array.dtype, shape)
        assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("consumed", [True, False])
def test_memory_lives_as_long_as_anyone_looks_at_it(version: Any, consumed: bool) -> None:
    class Watched(np.ndarray[Any, Any]):
        pass

    array = np.ones(3, np.float32).view(Watched)
    alive = weakref.ref(array)
    capsule = _native.Exported(array, 2, 32).__dlpack__(max_version=version)
    del array
    gc.collect()
    assert alive() is not None
    view = _native.read_dlpack(capsule, arrays.DLPACK_DTYPES)[1:] if consumed else None
    del capsule
    gc.collect()
    assert (alive() is not None) is consumed
    del view
    gc.collect()
    assert alive() is None


def test_exports_answer_what_consumers_ask() -> None:
    exported: Any = _native.Exported(np.ones(3, np.float32), 2, 32)
    assert exported.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(exported).tolist() == [1, 1, 1]
    copy = _native.read_dlpack(exported.__dlpack__(copy=True, dl_device=(1, 0)), arrays.DLPACK_DTYPES)
    assert not np.shares_memory(copy, np.from_dlpack(exported))
    with pytest.raises(BufferError, match="on the CPU"):
        exported.__dlpack__(dl_device=(2, 0))


class Negated(Foreign):
    """A tensor as torch makes it: its memory holds the negative of its values."""

    def is_neg(self) -> bool:
        return True


def test_a_tensor_with_the_negative_bit_is_refused() -> None:
    grad = Negated(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"grad_y: expected stored values, got a tensor with the negative bit"):
        finalize_routing_v2_grad(grad, np.array([1, 0], np.int32))
    out = (Negated(np.zeros((2, 3), np.float32)), None)
    with pytest.raises(ValueError, match=r"expected stored values, got a tensor with the negative bit"):
        finalize_routing_v2_grad(np.ones((2, 3), np.float32), np.array([1, 0], np.int32), out=out)


# ---- torch ----


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_torch_in_torch_out(torch: Any, name: str) -> None:
    data = getattr(torch, name)
    grad = torch.tensor([[1, 2], [3, 4]], dtype=data)
    idx = torch.tensor([-1, 0, 3, -1], dtype=torch.int32)
    x = torch.tensor([[[10, 20], [30, 40]], [[50, 60], [70, 80]]], dtype=data)
    scales = torch.tensor([[0.5, 0.25], [2, 1]])
    rows, grads = finalize_routing_v2_grad(grad, idx, x, scales, None, None, 1, 0, 2, 2)
    assert torch.equal(rows, torch.tensor([[[0.25, 0.5], [0, 0]], [[0, 0], [6, 8]]], dtype=data))
    assert torch.equal(grads, torch.tensor([[0.0, 50], [530, 0]]))
    assert (rows.dtype, grads.dtype) == (data, torch.float32)
    rows += 1  # the memory is the caller's


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_torch_outputs_are_written_in_place(torch: Any, name: str) -> None:
    data = getattr(torch, name)
    grad = torch.arange(1, 9, dtype=data).reshape(2, 4)
    probs = torch.tensor([[2.0, 1], [1, 3]], dtype=data)
    out = (torch.full((4, 4), torch.nan, dtype=data), torch.full((2, 2), torch.nan, dtype=data))
    got = token_unpermute_grad(torch.ones(4, 4, dtype=data), grad, ints(2, 0, 3, 1), probs, out=out)
    assert got[0] is out[0]
    assert got[1] is out[1]
    assert out[0][[2, 0, 3, 1]].tolist() == [[2, 4, 6, 8], [1, 2, 3, 4], [5, 6, 7, 8], [15, 18, 21, 24]]
    assert out[1].tolist() == [[10, 10], [26, 26]]
    with pytest.raises(ValueError, match="permuted_tokens_grad in out: expected a C-contiguous array"):
        token_unpermute_grad(torch.ones(4, 4, dtype=data), grad, ints(2, 0, 3, 1), out=(out[0].T, None))


def test_torch_kinds_mix_with_numpy(torch: Any) -> None:
    grad = torch.ones(2, 3, dtype=torch.bfloat16)
    out = np.zeros((2, 3), BF16)
    got, none = finalize_routing_v2_grad(grad, torch.tensor([1, 0], dtype=torch.int32), out=(out, None))
    assert got is out
    assert none is None
    assert (out == 1).all()


def test_torch_strides_views_and_empty_tensors(torch: Any) -> None:
    base = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    for view in (
        base[::2],
        base[:, 1::2],
        base.T,
        base[1:3, 2:],
        torch.ones(1, 1, dtype=torch.bfloat16).expand(3, 2),
    ):
        rows, _ = finalize_routing_v2_grad(view, np.arange(len(view) - 1, -1, -1, dtype=np.int32))
        assert torch.equal(rows, view.flip(0))
    rows, _ = finalize_routing_v2_grad(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int32))
    assert rows.shape == (0, 4)


def test_torch_refusals(torch: Any) -> None:
    idx = ints(1, 0)
    with pytest.raises(ValueError, match=r"grad_y: expected a tensor outside autograd \(use \.detach\(\)\)"):
        finalize_routing_v2_grad(torch.ones(2, 2, requires_grad=True), idx)
    with pytest.raises(ValueError, match=r"grad_y: expected an array on the CPU, got torch\.Tensor: .*meta"):
        finalize_routing_v2_grad(torch.ones(2, 2, device="meta"), idx)
    with pytest.raises(TypeError, match=r"grad_y: expected dtype float16, bfloat16 or float32, got float64$"):
        finalize_routing_v2_grad(torch.ones(2, 2, dtype=torch.float64), idx)
    with pytest.raises(TypeError, match="expanded_row_idx: expected dtype int32, got int64"):
        finalize_routing_v2_grad(torch.ones(2, 2), torch.tensor([1, 0]))
    with pytest.raises(TypeError, match="expanded_x: expected dtype bfloat16, the dtype of grad_y, got float32"):
        finalize_routing_v2_grad(torch.ones(2, 2, dtype=torch.bfloat16), idx, torch.ones(2, 2))
    with pytest.raises(TypeError, match="grad_y: expected an array that DLPack can share"):
        finalize_routing_v2_grad(torch.ones(2, 2).to_sparse(), idx)
    with pytest.raises(TypeError, match="unknown DLPack type: code 10, 8 bits"):
        finalize_routing_v2_grad(torch.zeros(2, 2, dtype=torch.float8_e4m3fn), idx)


def test_torch_shared_memory_is_noticed(torch: Any) -> None:
    grad = torch.ones(2, 2)
    with pytest.raises(ValueError, match=r"expected memory of its own, got some shared with grad_y$"):
        finalize_routing_v2_grad(grad, ints(1, 0), out=(grad.numpy(), None))


def test_torch_subclasses_and_parameters(torch: Any) -> None:
    grad = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)
    rows, _ = finalize_routing_v2_grad(grad, ints(1, 0))
    assert type(rows) is torch.Tensor


def test_torch_converters(torch: Any) -> None:
    got = choice_major_to_token_major(torch.tensor([0, 1, 2, 3, 4, 5]), 3, 2)
    assert torch.equal(got, torch.tensor([0, 3, 1, 4, 2, 5], dtype=torch.int32))


def test_torch_is_not_imported_by_moegrad(fresh: Any) -> None:
    assert fresh("import moegrad, sys; print('torch' in sys.modules)") == "False"
    assert "moegrad" in sys.modules
