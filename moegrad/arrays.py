"""Arrays of any kind in, NumPy inside, the caller's kind out.

NumPy arrays pass as they are. Everything else comes and goes through DLPack without a copy, read and written
by `_native` rather than by NumPy because NumPy knows no bfloat16 there.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from . import _native

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

DLPACK_DTYPES: dict[tuple[int, int], np.dtype[Any]] = {
    (0, 8): np.dtype(np.int8),
    (0, 16): np.dtype(np.int16),
    (0, 32): np.dtype(np.int32),
    (0, 64): np.dtype(np.int64),
    (1, 8): np.dtype(np.uint8),
    (1, 16): np.dtype(np.uint16),
    (1, 32): np.dtype(np.uint32),
    (1, 64): np.dtype(np.uint64),
    (2, 16): np.dtype(np.float16),
    (2, 32): np.dtype(np.float32),
    (2, 64): np.dtype(np.float64),
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (5, 64): np.dtype(np.complex64),
    (5, 128): np.dtype(np.complex128),
    (6, 8): np.dtype(np.bool_),
}
"""DLPack (type code, bits) of every type that a message may have to name, not only of those accepted."""

DLPACK_CODES = {dtype: key for key, dtype in DLPACK_DTYPES.items()}

CPU = 1
DEVICES = {
    1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm",
    11: "rocm_host", 12: "ext_dev", 13: "cuda_managed", 14: "oneapi", 15: "webgpu", 16: "hexagon", 17: "maia",
    18: "trn",
}  # fmt: skip
"""DLPack's device types."""


def as_array(where: str, value: Any) -> Array:
    """View `value` as a plain NumPy array, sharing its memory; `where` opens the messages.

    TypeError: neither a NumPy array nor something with DLPack, a masked array, or a dtype that DLPack cannot
        say.
    ValueError: not on the CPU, or a tensor that autograd is recording.
    """
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{where}: expected a plain array, got a masked one (use value.filled(0))")
        return value.view(np.ndarray)
    view = _native.exchange_view(value, DLPACK_DTYPES)
    if view is not None:
        return view
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"{where}: expected an array (NumPy's, or one with DLPack), got {type(value).__name__}")
    if getattr(value, "requires_grad", False):
        raise ValueError(f"{where}: expected a tensor outside autograd (use .detach()), got requires_grad=True")
    if _is_lazily_negated(value):
        raise ValueError(f"{where}: expected stored values, got a tensor with the negative bit (use .resolve_neg())")
    _check_device(where, value)
    try:
        return _native.read_dlpack(_capsule(value), DLPACK_DTYPES)
    except BufferError as error:
        raise TypeError(f"{where}: expected an array that DLPack can share, got {_kind(value)}: {error}") from error


def like(gradient: Any, array: Array) -> Any:
    """`array` as the kind of array that `gradient` is; `array` itself where that kind has no from_dlpack."""
    if isinstance(gradient, np.ndarray):
        return array
    code = DLPACK_CODES[array.dtype]
    made = _native.exchange_like(type(gradient), array, *code)
    if made is not None:
        return made
    for namespace in _namespaces(gradient):
        maker = getattr(namespace, "from_dlpack", None)
        if maker is not None:
            return maker(_native.Exported(array, *code))
    return array


def _namespaces(value: Any) -> list[Any]:
    """Modules that may make arrays of the kind of `value`, the array API's own answer first."""
    found = [value.__array_namespace__()] if hasattr(value, "__array_namespace__") else []
    return found + [sys.modules.get(base.__module__.partition(".")[0]) for base in type(value).__mro__]


def _check_device(where: str, value: Any) -> None:
    """Refuse, by name, whatever is not in the CPU's memory."""
    try:
        code, number = value.__dlpack_device__()
    except (BufferError, RuntimeError, ValueError, TypeError) as error:
        raise ValueError(f"{where}: expected an array on the CPU, got {_kind(value)}: {error}") from error
    if code != CPU:
        device = f"{DEVICES.get(int(code), f'DLPack device type {int(code)}')}:{number}"
        raise ValueError(f"{where}: expected an array on the CPU, got one on {device}")


def _capsule(value: Any) -> object:
    """The DLPack capsule of `value`, versioned where its library can; BufferError when it declines."""
    try:
        try:
            return value.__dlpack__(max_version=(1, 0))
        except TypeError:
            return value.__dlpack__()
    except (RuntimeError, ValueError, TypeError) as error:
        raise BufferError(str(error)) from error


def _is_lazily_negated(value: Any) -> bool:
    """Whether the memory of a torch tensor holds the negative of its values, which DLPack does not say."""
    negated = getattr(value, "is_neg", None)
    return callable(negated) and bool(negated())


def _kind(value: Any) -> str:
    """`torch.Tensor` and the like, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
