"""The ``moe`` dialect: tensor level, slot level and the plan levels of the targets."""

from xdsl.context import Context
from xdsl.dialects import builtin, func
from xdsl.ir import Dialect

from .slot import SLOT_OPS
from .tensor import TENSOR_OPS
from .types import DTypeParam

Moe = Dialect("moe", [*TENSOR_OPS, *SLOT_OPS], [DTypeParam])


def context() -> Context:
    """A context that knows everything a moegrad program may hold."""
    ctx = Context()
    for dialect in (builtin.Builtin, func.Func, Moe):
        ctx.load_dialect(dialect)
    return ctx


__all__ = ["DTypeParam", "Moe", "context"]
