"""Calls that are refused, each with its code and words: nulls, dtypes, formats, modes, memory of outputs.

The rows are those of section 5 of the contract and of the host checks of the operators this package stands in for.
Where the two name different codes, the contract's counts. Those of shapes are in wrong_shapes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moegrad.aclnn import FUNCTIONS, Tensor

from .calls import (
    BF16,
    EXPERTS,
    F16,
    FINALIZE,
    HIDDEN,
    INVALID,
    MISSING,
    SLOTS,
    TILING,
    TOKENS,
    TOPK,
    UNPERMUTE,
    Arguments,
    finalize,
    names_of,
    nans,
    ones,
    plain,
    strided,
    unpermute,
)

FORMAT_NCHW = 0


@dataclass
class Bad:
    """A call that is refused."""

    id: str
    name: str
    arguments: Callable[[], Arguments]
    status: int
    text: str
    """All that comes after `<function>: `."""


def on_finalize(id: str, status: int, text: str, mode: int = 0, **changes: Any) -> Bad:
    return Bad(f"finalize-{id}", FINALIZE, lambda: finalize(mode, **changes), status, text)


def on_plain(id: str, status: int, text: str, **changes: Any) -> Bad:
    return Bad(f"finalize-plain-{id}", FINALIZE, lambda: plain(**changes), status, text)


def on_unpermute(id: str, status: int, text: str, padded: bool = False, **changes: Any) -> Bad:
    return Bad(f"unpermute-{id}", UNPERMUTE, lambda: unpermute(padded, **changes), status, text)


NULLS = [
    on_finalize("grad-null", MISSING, "gradY: expected a tensor, got null", grad_y=None),
    on_finalize("index-null", MISSING, "expandedRowIdx: expected a tensor, got null", expanded_row_idx=None),
    on_finalize("rows-out-null", MISSING, "gradExpandedXOut: expected a tensor, got null", grad_expanded_x=None),
    on_finalize(
        "scales-out-null",
        MISSING,
        "gradScalesOut: expected a tensor with scalesOptional, got null",
        grad_scales=None,
    ),
    on_finalize(
        "scales-without-x",
        MISSING,
        "expandedXOptional: expected a tensor with scalesOptional, got null",
        expanded_x=None,
    ),
    on_finalize(
        "scales-without-x-in-capacity-mode",
        MISSING,
        "expandedXOptional: expected a tensor with scalesOptional, got null",
        mode=1,
        expanded_x=None,
    ),
    on_finalize(
        "bias-without-experts",
        MISSING,
        "expertIdxOptional: expected a tensor with biasOptional, got null",
        expert_idx=None,
    ),
    on_plain(
        "bias-without-experts-and-scales",
        MISSING,
        "expertIdxOptional: expected a tensor with biasOptional, got null",
        bias=ones(EXPERTS, HIDDEN),
    ),
    on_plain("rows-out-null", MISSING, "gradExpandedXOut: expected a tensor, got null", grad_expanded_x=None),
    on_unpermute("rows-null", MISSING, "permuteTokens: expected a tensor, got null", permuted_tokens=None),
    on_unpermute(
        "grad-null", MISSING, "unpermutedTokensGrad: expected a tensor, got null", unpermuted_tokens_grad=None
    ),
    on_unpermute("index-null", MISSING, "sortedIndices: expected a tensor, got null", sorted_indices=None),
    on_unpermute(
        "rows-out-null", MISSING, "permutedTokensGradOut: expected a tensor, got null", permuted_tokens_grad=None
    ),
    on_unpermute(
        "probs-out-null", MISSING, "probsGradOut: expected a tensor with probsOptional, got null", probs_grad=None
    ),
    on_unpermute(
        "probs-out-null-padded",
        MISSING,
        "probsGradOut: expected a tensor with probsOptional, got null",
        padded=True,
        probs_grad=None,
    ),
]

ANY_FLOAT = "expected dtype float16, bfloat16 or float32"


def dtype_rows() -> Iterator[Bad]:
    """Every argument with a dtype that it may not have."""
    wrong: list[tuple[str, npt.DTypeLike, str]] = [
        ("int32", np.int32, "int32"),
        ("double", np.float64, "float64"),
        ("uint16", np.uint16, "uint16"),
    ]
    for tag, dtype, spelled in wrong:
        yield on_finalize(
            f"grad-{tag}", INVALID, f"gradY: {ANY_FLOAT}, got {spelled}", grad_y=ones(TOKENS, HIDDEN, dtype=dtype)
        )
        yield on_finalize(
            f"scales-{tag}",
            INVALID,
            f"scalesOptional: {ANY_FLOAT}, got {spelled}",
            scales=ones(TOKENS, TOPK, dtype=dtype),
        )
        yield on_unpermute(
            f"probs-{tag}", INVALID, f"probsOptional: {ANY_FLOAT}, got {spelled}", probs=ones(TOKENS, TOPK, dtype=dtype)
        )
        yield on_unpermute(
            f"grad-{tag}",
            INVALID,
            f"unpermutedTokensGrad: {ANY_FLOAT}, got {spelled}",
            unpermuted_tokens_grad=ones(TOKENS, HIDDEN, dtype=dtype),
        )
    like_grad = "expected dtype float32, that of gradY, got"
    for tag, other, spelled in (("f16", F16, "float16"), ("bf16", BF16, "bfloat16")):
        x, bias = ones(SLOTS, HIDDEN, dtype=other), ones(EXPERTS, HIDDEN, dtype=other)
        yield on_finalize(f"x-{tag}", INVALID, f"expandedXOptional: {like_grad} {spelled}", expanded_x=x)
        yield on_finalize(f"bias-{tag}", INVALID, f"biasOptional: {like_grad} {spelled}", bias=bias)
        yield on_finalize(f"rows-out-{tag}", INVALID, f"gradExpandedXOut: {like_grad} {spelled}", grad_expanded_x=x)
        yield on_finalize(
            f"scales-out-{tag}",
            INVALID,
            f"gradScalesOut: expected dtype float32, that of scalesOptional, got {spelled}",
            grad_scales=nans(TOKENS, TOPK, dtype=other),
        )
        like = f"expected dtype float32, that of unpermutedTokensGrad, got {spelled}"
        yield on_unpermute(f"rows-{tag}", INVALID, f"permuteTokens: {like}", permuted_tokens=x)
        yield on_unpermute(f"rows-out-{tag}", INVALID, f"permutedTokensGradOut: {like}", permuted_tokens_grad=x)
        yield on_unpermute(
            f"probs-out-{tag}",
            INVALID,
            f"probsGradOut: expected dtype float32, that of probsOptional, got {spelled}",
            probs_grad=nans(TOKENS, TOPK, dtype=other),
        )
    for tag, integer in (("int64", np.int64), ("uint32", np.uint32), ("float32", np.float32)):
        index = np.arange(SLOTS).astype(integer)
        yield on_finalize(
            f"index-{tag}", INVALID, f"expandedRowIdx: expected dtype int32, got {tag}", expanded_row_idx=index
        )
        yield on_finalize(
            f"experts-{tag}",
            INVALID,
            f"expertIdxOptional: expected dtype int32, got {tag}",
            expert_idx=np.zeros((TOKENS, TOPK), integer),
        )
        yield on_unpermute(
            f"index-{tag}", INVALID, f"sortedIndices: expected dtype int32, got {tag}", sorted_indices=index
        )


def format_rows() -> Iterator[Bad]:
    """Every tensor in another format."""
    got = "expected format ND (2), got format 0"
    for make, name, on in ((finalize, FINALIZE, "finalize"), (unpermute, UNPERMUTE, "unpermute")):
        op = FUNCTIONS[name]
        inputs, _, outputs = names_of(name)
        spelled = dict(zip([*inputs, *outputs], C_NAMES[op.name], strict=True))
        for argument, c_name in spelled.items():

            def changed(make: Callable[..., Arguments] = make, argument: str = argument) -> Arguments:
                arguments = make()
                return arguments | {argument: Tensor(arguments[argument], FORMAT_NCHW)}

            yield Bad(f"{on}-{argument}-nchw", name, changed, INVALID, f"{c_name}: {got}")


C_NAMES = {
    "finalize_routing_v2_grad": (
        "gradY",
        "expandedRowIdx",
        "expandedXOptional",
        "scalesOptional",
        "expertIdxOptional",
        "biasOptional",
        "gradExpandedXOut",
        "gradScalesOut",
    ),
    "token_unpermute_grad": (
        "permuteTokens",
        "unpermutedTokensGrad",
        "sortedIndices",
        "probsOptional",
        "permutedTokensGradOut",
        "probsGradOut",
    ),
}
"""Tensors as C callers know them."""

MODES = [
    on_finalize(
        f"mode-{mode}", TILING, f"dropPadMode: expected 0 (dropless) or 1 (drop/pad), got {mode}", drop_pad_mode=mode
    )
    for mode in (2, -1, 2**31, -(2**63), 2**63 - 1)
] + [
    on_finalize(
        f"{attribute}-{value}",
        TILING,
        f"{spelled}: expected a positive integer with dropPadMode 1, got {value}",
        mode=1,
        **{attribute: value},
    )
    for attribute, spelled in (("expert_num", "expertNum"), ("expert_capacity", "expertCapacity"))
    for value in (0, -1, -(2**63))
]


MEMORY = [
    on_finalize(
        "rows-out-strided",
        INVALID,
        "gradExpandedXOut: expected a contiguous tensor, got shape (6, 4), strides (8, 2)",
        grad_expanded_x=strided(nans(SLOTS, HIDDEN)),
    ),
    on_finalize(
        "rows-out-pitched",
        INVALID,
        "gradExpandedXOut: expected a contiguous tensor, got shape (6, 4), strides (7, 1)",
        grad_expanded_x=nans(SLOTS, 7)[:, :HIDDEN],
    ),
    on_finalize(
        "scales-out-transposed",
        INVALID,
        "gradScalesOut: expected a contiguous tensor, got shape (3, 2), strides (1, 3)",
        grad_scales=nans(TOPK, TOKENS).T,
    ),
    on_unpermute(
        "rows-out-strided",
        INVALID,
        "permutedTokensGradOut: expected a contiguous tensor, got shape (6, 4), strides (8, 2)",
        permuted_tokens_grad=strided(nans(SLOTS, HIDDEN)),
    ),
    on_unpermute(
        "probs-out-transposed",
        INVALID,
        "probsGradOut: expected a contiguous tensor, got shape (3, 2), strides (1, 3)",
        probs_grad=nans(TOPK, TOKENS).T,
    ),
]
