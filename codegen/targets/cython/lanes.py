"""What the C header ``moegrad_lanes.h`` offers to kernels, as Cython declarations.

`{d}` stands for the tag of a dtype and `{c}` for its C storage type.
"""

from __future__ import annotations

from ...dialect.tensor import AddRowsOp, MulRowsOp, SubRowsOp
from ...dtypes import DTYPES

ROW_OPS = {AddRowsOp.name: "lanes_add", SubRowsOp.name: "lanes_sub", MulRowsOp.name: "lanes_mul"}
"""Elementwise operation on rows -> its function on lanes."""

_PLAIN = {
    "lanes_zero": "lanes lanes_zero()",
    "lanes_splat": "lanes lanes_splat(float value)",
    "lanes_add": "lanes lanes_add(lanes lhs, lanes rhs)",
    "lanes_sub": "lanes lanes_sub(lanes lhs, lanes rhs)",
    "lanes_mul": "lanes lanes_mul(lanes lhs, lanes rhs)",
    "lanes_sum": "float lanes_sum(lanes value)",
    "lanes_sum_pairs": "float lanes_sum_pairs(lanes value)",
    "row_put": "void row_put(void* to, const void* row, int64_t nbytes, bint stream)",
    "row_put_ahead": "void row_put_ahead(void* to, void* also, const void* row, int64_t nbytes, const void* ahead,\n"
    "                       bint stream)",
    "row_put_zero": "void row_put_zero(void* to, int64_t nbytes, bint stream)",
    "stream_pays": "bint stream_pays(const void* to, int64_t rows, int64_t row_bytes, int64_t part)",
    "stream_lead": "int64_t stream_lead(const void* to, int64_t row_bytes, int64_t element_bytes, bint stream)",
    "stream_fence": "void stream_fence()",
    "zero_unnamed_rows": "int zero_unnamed_rows(void* to, int64_t rows, int64_t row_bytes,\n"
    "                          const int32_t* index, int64_t slots, int num_threads)",
}

_BY_ROWS = {
    "lanes_load_{d}": "lanes lanes_load_{d}(const {c}* at)",
    "lanes_load_{d}_part": "lanes lanes_load_{d}_part(const {c}* at, int64_t first, int64_t count)",
    "lanes_prefetch_{d}": "void lanes_prefetch_{d}(const {c}* at)",
    "lanes_put_{d}": "void lanes_put_{d}({c}* at, lanes value, bint stream)",
    "lanes_put_{d}_part": "void lanes_put_{d}_part({c}* at, lanes value, int64_t first, int64_t count, bint stream)",
}
"""Functions on rows in memory, for each dtype and for bf16 in pairs."""

_BY_DTYPE = {
    "lanes_round_{d}": "lanes lanes_round_{d}(lanes value)",
    "widen_{d}": "float widen_{d}({c} value)",
    "narrow_{d}": "{c} narrow_{d}(float value)",
}

_STORAGE = {row.tag: row.c for row in DTYPES.values()}

DECLARATIONS: dict[str, str] = _PLAIN | {
    name.format(d=tag): text.format(d=tag, c=c)
    for functions, tags in ((_BY_ROWS, _STORAGE | {"bf16_pairs": _STORAGE["bf16"]}), (_BY_DTYPE, _STORAGE))
    for tag, c in tags.items()
    for name, text in functions.items()
}
"""Function -> declaration."""
