"""Types of the ``moe`` dialect and the predicates its verifiers share."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.utils.exceptions import VerifyException

from ..dtypes import from_mlir


@irdl_attr_definition
class DTypeParam(ParametrizedAttribute, TypeAttribute):
    """An element type that `specialize` binds: ``!moe.dtype<"D">`` for data, ``"P"`` for weights."""

    name = "moe.dtype"

    symbol: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[StringAttr]:
        """``<"D">`` or ``<"P">``, so that anything else has its place in the message."""
        with parser.in_angle_brackets():
            place = parser.pos
            symbol = parser.parse_str_literal('"D" or "P"')
        if symbol not in ("D", "P"):
            parser.raise_error(f'!moe.dtype: expected "D" or "P", got "{symbol}"', place)
        return [StringAttr(symbol)]


def is_float(type_: Attribute) -> bool:
    """Whether `type_` is a float of the dtype table or a parameter for one."""
    return isinstance(type_, DTypeParam) or from_mlir(type_) is not None


def element(type_: Attribute) -> Attribute:
    """Element type of a tensor or memref; a scalar type is its own element."""
    if isinstance(type_, TensorType | MemRefType):
        scalar: Attribute = type_.get_element_type()
        return scalar
    return type_


def shape(type_: Attribute) -> tuple[int, ...]:
    """Shape of a tensor or memref, () for a scalar; DYNAMIC_INDEX stands for an unknown size."""
    if isinstance(type_, TensorType | MemRefType):
        return type_.get_shape()
    return ()


def count(sizes: Iterable[int]) -> int:
    """Number of elements, DYNAMIC_INDEX where a size is unknown."""
    sizes = tuple(sizes)
    return DYNAMIC_INDEX if DYNAMIC_INDEX in sizes else prod(sizes)


def compatible(left: int, right: int) -> bool:
    """Whether two sizes may be equal at run time."""
    return DYNAMIC_INDEX in (left, right) or left == right


def fail(op: Operation, operand: str, value: SSAValue | Attribute | str, expected: str) -> VerifyException:
    """The exception of a broken rule: names the operation, the value and what was expected."""
    type_ = value.type if isinstance(value, SSAValue) else value
    name = f" (%{value.name_hint})" if isinstance(value, SSAValue) and value.name_hint else ""
    return VerifyException(f"{op.name}: '{operand}'{name} must be {expected}, got {type_}")


def expect_float(op: Operation, operand: str, value: SSAValue) -> None:
    """The element type must be a float that the project knows."""
    if not is_float(element(value.type)):
        raise fail(op, operand, value, "of element type f16, bf16, f32 or !moe.dtype")


def expect_rows(op: Operation, operand: str, value: SSAValue, rank: int | None = None) -> None:
    """A tensor of rows: rank 2 (rows, hidden) at tensor level, rank 1 (hidden) at slot level."""
    ranks = (1, 2) if rank is None else (rank,)
    if not isinstance(value.type, TensorType) or len(shape(value.type)) not in ranks:
        raise fail(op, operand, value, f"a tensor of rank {' or '.join(map(str, ranks))}")
    expect_float(op, operand, value)


def expect_index(op: Operation, operand: str, value: SSAValue) -> None:
    """A map from slots to rows: a rank-1 (slots) or rank-2 (tokens, topK) tensor of i32."""
    if not isinstance(value.type, TensorType) or len(shape(value.type)) not in (1, 2):
        raise fail(op, operand, value, "a tensor of rank 1 or 2")
    if element(value.type) != i32:
        raise fail(op, operand, value, "of element type i32")


def expect_count(op: Operation, operand: str, value: SSAValue, slots: int, of: str) -> None:
    """The value must hold one element for each of `slots` rows (unknown sizes pass)."""
    if not compatible(count(shape(value.type)), slots):
        raise fail(op, operand, value, f"of {slots} elements, one for each row of '{of}'")


def expect_same_shape(op: Operation, operand: str, value: SSAValue, other: SSAValue, of: str) -> None:
    """Equal ranks, and equal sizes where both are known."""
    left, right = shape(value.type), shape(other.type)
    if len(left) != len(right) or not all(map(compatible, left, right)):
        raise fail(op, operand, value, f"of the shape of '{of}', {other.type}")


def expect_same_element(op: Operation, operand: str, value: SSAValue, other: SSAValue, of: str) -> None:
    """Equal element types: only moe.cast and arithmetic convert."""
    if element(value.type) != element(other.type):
        raise fail(op, operand, value, f"of the element type of '{of}', {other.type}")


def is_predicate(type_: Attribute) -> bool:
    """Whether the element type is i1."""
    return isinstance(element(type_), IntegerType) and element(type_) == i1
