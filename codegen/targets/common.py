"""What the printers of all targets share."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..dialect.types import element
from ..dtypes import DType, from_mlir
from ..errors import LoweringError


def float_type(value: SSAValue) -> DType:
    """Row of the dtype table for the element type of a value."""
    row = from_mlir(element(value.type))
    if row is None:
        raise LoweringError(f"%{value.name_hint}: {value.type} should have been bound by specialize")
    return row
