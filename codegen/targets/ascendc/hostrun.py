"""Runs kernels on the host model: NumPy arrays in, arrays, findings and counters out."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16
import numpy as np
import numpy.typing as npt

from ...dialect.types import element
from ...dtypes import storage
from ...errors import BuildError, LoweringError
from ...parsing import function
from ...passes.ascend_names import KernelNames
from ...signature import SLOTS, TOPK, Tensor, signature, tokens_symbol
from .emit import AscendKernel
from .traffic import Traffic, traffic

Array = npt.NDArray[Any]

SATURATE, NO_AUTO_SYNC, STRICT_UB, FUSED_MAC = 1, 2, 4, 8
"""Switches of a run: saturating casts; no automatic synchronisation; the strict UB budget; fused rounding."""

PACKAGE, LAUNCH = "", "_launch"
"""The two entries of a kernel."""

_INPUT, _OUTPUT = 0, 1
_VIRTUAL = 1
_POISON = 0xA5


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("role", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("window_offset", ctypes.c_uint64),
        ("window_bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("struct_bytes", ctypes.c_uint32),
        ("block_count", ctypes.c_uint32),
        ("arrays", ctypes.POINTER(_Array)),
        ("array_count", ctypes.c_uint32),
        ("switches", ctypes.c_uint32),
        ("workspace_bytes", ctypes.c_uint64),
        ("tiling", ctypes.c_void_p),
        ("tiling_bytes", ctypes.c_uint64),
        ("tiling_key", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("max_diagnostics", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Window:
    """Some rows of a tensor that is too large to exist: the others are address space only."""

    data: Array
    """(n, H), rows `first` to `first` + n; what a run stores there for an output."""
    first: int
    rows: int
    """Rows of the whole tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole tensor."""
        return (self.rows, *self.data.shape[1:])


@dataclass(frozen=True)
class HostRun:
    """What one run gave."""

    outputs: dict[str, Array]
    report: dict[str, Any]
    """The host model's report: status, diagnostics, counters, time."""
    tiling: dict[str, int]
    traffic: Traffic

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """Findings, each with name, severity, place, message and mend."""
        return list(self.report["diagnostics"])

    @property
    def clean(self) -> bool:
        """Whether there is nothing to report, not even a warning."""
        return not self.diagnostics and self.report["status"] == 0

    @property
    def counters(self) -> dict[str, float]:
        """Bytes, transfers, instructions, events."""
        return dict(self.report["counters"])

    def profile(self) -> dict[str, float]:
        """What a run cost, by name, for a table: traffic against the least, transfers, instructions, modelled times."""
        kept = (
            *("transfers_in", "mean_bytes_in", "transfers_out", "mean_bytes_out", "vector_ops", "vector_repeats"),
            *("reduce_repeats", "scalar_ub_reads", "scalar_gm_reads", "barriers", "events_set", "sync_alls"),
        )
        account = {
            "row_bytes": self.traffic.rows,
            "least_row_bytes": self.traffic.least_rows,
            "ratio": self.traffic.ratio,
            "index_and_weight_bytes": self.traffic.elements,
            "zero_bytes": self.traffic.zeros,
        }
        return account | {name: self.counters[name] for name in kept} | dict(self.report["time"])


class HostKernel:
    """One kernel of a built library."""

    def __init__(self, library: Path, kernel: AscendKernel):
        self.kernel = kernel
        self.library = ctypes.CDLL(str(library))
        self.tensors: list[Tensor] = signature(function(kernel.module))
        self.names = KernelNames.of(function(kernel.module))

    def tiling(
        self, sizes: Mapping[str, int], every_row_named: bool = False, cores: int = 0, ub_bytes: int = 0
    ) -> dict[str, int]:
        """The tiling data of a call, by field; LoweringError where the tiling function refuses it.

        `sizes` by symbol. `cores` and `ub_bytes` of 0 are those that the host model says the chip has.
        """
        words, _ = self._tiling(sizes, every_row_named, cores, ub_bytes)
        return words

    def _tiling(
        self, sizes: Mapping[str, int], every_row_named: bool, cores: int, ub_bytes: int
    ) -> tuple[dict[str, int], ctypes.Array[ctypes.c_int64]]:
        source, described = self.kernel.source, self.describe()
        words = (ctypes.c_int64 * len(source.fields))()
        ctypes.memset(words, _POISON, ctypes.sizeof(words))
        by_name = {self.names.sizes[symbol]: size for symbol, size in sizes.items() if symbol in self.names.sizes}
        values = (ctypes.c_int64 * max(1, len(source.sizes)))(*(by_name[field.name] for field in source.sizes))
        fill = getattr(self.library, f"moegrad_tiling_{source.symbol}")
        fill.restype = ctypes.c_char_p
        fill.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        problem = fill(
            values, every_row_named, cores or described["vector_cores"], ub_bytes or described["ub_bytes"], words
        )
        if problem is not None:
            raise LoweringError(f"{self.kernel.spec.key}: tiling: {problem.decode()}, got {dict(sizes)}")
        return {field.name: value for field, value in zip(source.fields, words, strict=True)}, words

    def describe(self) -> dict[str, Any]:
        """Chip, architecture, UB bytes and cores of the host model that the kernel was built for."""
        describe = self.library.moegrad_hostmodel_describe
        describe.restype = ctypes.c_char_p
        found: dict[str, Any] = json.loads(describe())
        return found

    def run(
        self,
        inputs: Mapping[str, Array | Window],
        sizes: Mapping[str, int] | None = None,
        *,
        windows: Mapping[str, Window] | None = None,
        every_row_named: bool = False,
        cores: int = 0,
        entry: str = PACKAGE,
        seed: int = 0,
        switches: int = 0,
    ) -> HostRun:
        """Runs the kernel on C-contiguous arrays by tensor name.

        `sizes` gives what no input's shape says, such as the rows of an output, by symbol. `windows` are outputs
        of which only some rows exist; the arrays in them are written.
        """
        arrays = {tensor.name: self._input(tensor, inputs) for tensor in self.tensors if not tensor.output}
        known = self._sizes(arrays, dict(sizes or {}))
        outputs: dict[str, Array | Window] = dict(windows or {})
        for tensor in self.tensors:
            if tensor.output and tensor.name not in outputs:
                outputs[tensor.name] = np.zeros([known[dim] for dim in tensor.dims], _numpy(tensor))
        fields, words = self._tiling(known, every_row_named, cores, 0)
        ordered = [(arrays | outputs)[tensor.name] for tensor in self.tensors]
        report = self._launch(ordered, fields["blockCount"], words, entry, seed, switches)
        moved = report["counters"]["gm_bytes_in"] + report["counters"]["gm_bytes_out"]
        account = traffic(function(self.kernel.module), arrays, known, fields, moved)
        written = {t.name: _data(outputs[t.name]) for t in self.tensors if t.output}
        return HostRun(written, report, fields, account)

    def _input(self, tensor: Tensor, inputs: Mapping[str, Array | Window]) -> Array | Window:
        if tensor.name not in inputs:
            raise LoweringError(f"{self.kernel.spec.key}: expected an array for {tensor.name}, got {sorted(inputs)}")
        given, wanted = inputs[tensor.name], _numpy(tensor)
        if _data(given).dtype != wanted:
            raise LoweringError(f"{tensor.name}: expected an array of {wanted}, got {_data(given).dtype}")
        return given if isinstance(given, Window) else np.ascontiguousarray(given)

    def _sizes(self, arrays: Mapping[str, Array | Window], known: dict[str, int]) -> dict[str, int]:
        for tensor in self.tensors:
            if not tensor.output and len(tensor.dims) == len(arrays[tensor.name].shape):
                for symbol, size in zip(tensor.dims, arrays[tensor.name].shape, strict=True):
                    if known.setdefault(symbol, size) != size:
                        raise LoweringError(f"{tensor.name}: expected {symbol} = {known[symbol]}, got {size}")
        if SLOTS in known and TOPK not in known:
            tokens = known.get(tokens_symbol(function(self.kernel.module)))
            known[TOPK] = known[SLOTS] // tokens if tokens else self.kernel.spec.topk or 1
        return known

    def _launch(
        self,
        arrays: Sequence[Array | Window],
        blocks: int,
        words: ctypes.Array[ctypes.c_int64],
        entry: str,
        seed: int,
        switches: int,
    ) -> dict[str, Any]:
        described = (_Array * len(arrays))()
        for slot, array, tensor in zip(described, arrays, self.tensors, strict=True):
            data = _data(array)
            slot.data, slot.bytes = data.ctypes.data, data.nbytes
            if isinstance(array, Window):
                row = data.nbytes // len(data)
                slot.bytes, slot.flags = array.rows * row, _VIRTUAL
                slot.window_offset, slot.window_bytes = array.first * row, data.nbytes
            slot.role, slot.name = (_OUTPUT if tensor.output else _INPUT), tensor.name.encode()
        launch = _Launch(ctypes.sizeof(_Launch), blocks, described, len(arrays), switches)
        launch.tiling, launch.tiling_bytes, launch.seed = ctypes.addressof(words), ctypes.sizeof(words), seed
        start = getattr(self.library, f"moegrad_launch_{self.kernel.source.symbol}{entry}")
        start.restype = ctypes.c_int32
        text = ctypes.c_void_p()
        status = start(ctypes.byref(launch), ctypes.byref(text))
        raw = ctypes.string_at(text.value or 0)
        self.library.moegrad_hostmodel_free(text)
        report: dict[str, Any] = json.loads(raw)
        if status == 2:
            raise BuildError(f"{self.kernel.spec.key}: launch: {report['diagnostics']}")
        return report


def _data(array: Array | Window) -> Array:
    return array.data if isinstance(array, Window) else array


def _numpy(tensor: Tensor) -> np.dtype[Any]:
    return np.dtype(storage(element(tensor.type)).numpy)
