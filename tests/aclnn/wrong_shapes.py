"""Calls that are refused for shapes that do not go together, all with the same code.

Numbers are those of the rules of finalize_routing_v2_grad in section 5 of the contract.
"""

from __future__ import annotations

from .calls import HIDDEN, SLOTS, TILING, TOKENS, ints, nans, ones
from .wrong_calls import on_finalize, on_plain, on_unpermute

FINALIZE_SHAPES = [
    # 8: ranks of gradient and indices
    on_finalize("grad-rank-1", TILING, "gradY: expected shape (R, H), got shape (12,)", grad_y=ones(12)),
    on_finalize("grad-rank-3", TILING, "gradY: expected shape (R, H), got shape (1, 3, 4)", grad_y=ones(1, 3, 4)),
    on_finalize("grad-rank-0", TILING, "gradY: expected shape (R, H), got shape ()", grad_y=ones()),
    on_finalize(
        "index-rank-2", TILING, "expandedRowIdx: expected shape (N,), got shape (3, 2)", expanded_row_idx=ints(3, 2)
    ),
    on_finalize("index-rank-0", TILING, "expandedRowIdx: expected shape (N,), got shape ()", expanded_row_idx=ints()),
    # 10: rank of the rows
    on_finalize(
        "x-rank-1", TILING, "expandedXOptional: expected shape (M, H) = (M, 4), got shape (24,)", expanded_x=ones(24)
    ),
    on_finalize(
        "x-rank-3-dropless",
        TILING,
        "expandedXOptional: expected shape (M, H) = (M, 4), got shape (2, 3, 4)",
        expanded_x=ones(2, 3, 4),
    ),
    on_finalize(
        "x-rank-2-capacity",
        TILING,
        "expandedXOptional: expected shape (E, C, H) = (2, 5, 4), got shape (10, 4)",
        mode=1,
        expanded_x=ones(10, 4),
    ),
    # 11: ranks of weights, experts and bias
    on_finalize(
        "scales-rank-1", TILING, "scalesOptional: expected shape (R, K) = (3, K), got shape (6,)", scales=ones(6)
    ),
    on_finalize(
        "experts-rank-1",
        TILING,
        "expertIdxOptional: expected shape (R, K) = (3, 2), got shape (6,)",
        expert_idx=ints(6),
    ),
    on_finalize("bias-rank-1", TILING, "biasOptional: expected shape (E, H) = (E, 4), got shape (8,)", bias=ones(8)),
    # 12: number of rows
    on_finalize(
        "x-rows",
        TILING,
        "expandedXOptional: expected M = N = 6 rows, one for each slot, got shape (5, 4)",
        expanded_x=ones(5, 4),
    ),
    on_finalize(
        "x-rows-limited",
        TILING,
        "expandedXOptional: expected M = activeNum = 4 rows, got shape (6, 4)",
        active_num=4,
    ),
    on_finalize(
        "x-capacity",
        TILING,
        "expandedXOptional: expected shape (E, C, H) = (2, 5, 4), got shape (2, 4, 4)",
        mode=1,
        expanded_x=ones(2, 4, 4),
    ),
    on_finalize(
        "x-experts-and-capacity-swapped",
        TILING,
        "expandedXOptional: expected shape (E, C, H) = (2, 5, 4), got shape (5, 2, 4)",
        mode=1,
        expanded_x=ones(5, 2, 4),
    ),
    # 13: hidden size of the rows
    on_finalize(
        "x-hidden",
        TILING,
        "expandedXOptional: expected shape (M, H) = (M, 4), got shape (6, 5)",
        expanded_x=ones(6, 5),
    ),
    # 14: weights
    on_finalize(
        "scales-tokens", TILING, "scalesOptional: expected shape (R, K) = (3, K), got shape (2, 3)", scales=ones(2, 3)
    ),
    on_finalize(
        "scales-topk",
        TILING,
        "scalesOptional: expected shape (R, K) = (3, 2) for the 6 elements of expandedRowIdx, got shape (3, 1)",
        scales=ones(3, 1),
        expert_idx=None,
        bias=None,
    ),
    on_finalize(
        "index-short",
        TILING,
        "expandedRowIdx: expected N = R * K elements for R, K = (3, 2), got shape (5,)",
        expanded_row_idx=ints(5),
    ),
    # 15: experts and bias
    on_finalize(
        "experts-tokens",
        TILING,
        "expertIdxOptional: expected shape (R, K) = (3, 2), got shape (2, 3)",
        expert_idx=ints(2, 3),
    ),
    on_finalize(
        "experts-topk",
        TILING,
        "expertIdxOptional: expected shape (R, K) = (3, 2), got shape (3, 1)",
        expert_idx=ints(3, 1),
    ),
    on_finalize(
        "bias-experts",
        TILING,
        "biasOptional: expected shape (E, H) = (2, 4), got shape (3, 4)",
        mode=1,
        bias=ones(3, 4),
    ),
    on_finalize(
        "bias-hidden", TILING, "biasOptional: expected shape (E, H) = (E, 4), got shape (2, 3)", bias=ones(2, 3)
    ),
    on_finalize(
        "bias-without-rows",
        TILING,
        "biasOptional: expected at least one expert, got shape (0, 4)",
        bias=ones(0, HIDDEN),
    ),
    # 17: no weights
    on_plain(
        "index-not-a-multiple",
        TILING,
        "expandedRowIdx: expected N = R * K elements, a multiple of R = 3, got shape (5,)",
        expanded_row_idx=ints(5),
        grad_expanded_x=nans(5, HIDDEN),
    ),
    on_plain(
        "slots-without-tokens",
        TILING,
        "expandedRowIdx: expected N = R * K elements, a multiple of R = 0, got shape (6,)",
        grad_y=ones(0, HIDDEN),
    ),
    # 18: gradient of the rows
    on_finalize(
        "rows-out-rank-1",
        TILING,
        "gradExpandedXOut: expected shape (M, H) = (6, 4), got shape (24,)",
        grad_expanded_x=nans(24),
    ),
    on_finalize(
        "rows-out-rank-3",
        TILING,
        "gradExpandedXOut: expected shape (M, H) = (6, 4), got shape (1, 6, 4)",
        grad_expanded_x=nans(1, 6, 4),
    ),
    on_finalize(
        "rows-out-rows",
        TILING,
        "gradExpandedXOut: expected shape (M, H) = (6, 4), got shape (7, 4)",
        grad_expanded_x=nans(7, 4),
    ),
    on_finalize(
        "rows-out-hidden",
        TILING,
        "gradExpandedXOut: expected shape (M, H) = (6, 4), got shape (6, 3)",
        grad_expanded_x=nans(6, 3),
    ),
    on_plain(
        "rows-out-limited",
        TILING,
        "gradExpandedXOut: expected shape (M, H) = (4, 4), got shape (6, 4)",
        active_num=4,
    ),
    on_finalize(
        "rows-out-rank-2-capacity",
        TILING,
        "gradExpandedXOut: expected shape (E, C, H) = (2, 5, 4), got shape (10, 4)",
        mode=1,
        grad_expanded_x=nans(10, 4),
    ),
    on_finalize(
        "rows-out-capacity",
        TILING,
        "gradExpandedXOut: expected shape (E, C, H) = (2, 5, 4), got shape (5, 2, 4)",
        mode=1,
        grad_expanded_x=nans(5, 2, 4),
    ),
    on_finalize(
        "rows-out-hidden-capacity",
        TILING,
        "gradExpandedXOut: expected shape (E, C, H) = (2, 5, 4), got shape (2, 5, 3)",
        mode=1,
        grad_expanded_x=nans(2, 5, 3),
    ),
    # 19: gradient of the weights
    on_finalize(
        "scales-out-rank",
        TILING,
        "gradScalesOut: expected shape (R, K) = (3, 2), got shape (6,)",
        grad_scales=nans(6),
    ),
    on_finalize(
        "scales-out-tokens",
        TILING,
        "gradScalesOut: expected shape (R, K) = (3, 2), got shape (2, 3)",
        grad_scales=nans(2, 3),
    ),
    on_finalize(
        "scales-out-topk",
        TILING,
        "gradScalesOut: expected shape (R, K) = (3, 2), got shape (3, 1)",
        grad_scales=nans(3, 1),
    ),
    # 20: nothing to compute with
    on_plain(
        "hidden-0",
        TILING,
        "gradY: expected a hidden size H of at least 1, got shape (3, 0)",
        grad_y=ones(TOKENS, 0),
        grad_expanded_x=nans(SLOTS, 0),
    ),
]


UNPERMUTE_SHAPES = [
    on_unpermute(
        "rows-rank-1", TILING, "permuteTokens: expected shape (M, H), got shape (24,)", permuted_tokens=ones(24)
    ),
    on_unpermute(
        "rows-rank-3",
        TILING,
        "permuteTokens: expected shape (M, H), got shape (1, 6, 4)",
        permuted_tokens=ones(1, 6, 4),
    ),
    on_unpermute(
        "grad-hidden",
        TILING,
        "unpermutedTokensGrad: expected shape (R, H) = (R, 4), got shape (3, 5)",
        unpermuted_tokens_grad=ones(3, 5),
    ),
    on_unpermute(
        "grad-rank-1",
        TILING,
        "unpermutedTokensGrad: expected shape (R, H) = (R, 4), got shape (12,)",
        unpermuted_tokens_grad=ones(12),
    ),
    on_unpermute(
        "index-rank-2", TILING, "sortedIndices: expected shape (N,), got shape (3, 2)", sorted_indices=ints(3, 2)
    ),
    on_unpermute(
        "index-short",
        TILING,
        "sortedIndices: expected N = R * K elements for R, K = (3, 2), got shape (5,)",
        sorted_indices=ints(5),
    ),
    on_unpermute(
        "probs-rank-1", TILING, "probsOptional: expected shape (R, K) = (3, K), got shape (6,)", probs=ones(6)
    ),
    on_unpermute(
        "probs-tokens", TILING, "probsOptional: expected shape (R, K) = (3, K), got shape (2, 3)", probs=ones(2, 3)
    ),
    on_unpermute(
        "probs-topk",
        TILING,
        "probsOptional: expected shape (R, K) = (3, 2) for the 6 elements of sortedIndices, got shape (3, 1)",
        probs=ones(3, 1),
    ),
    on_unpermute(
        "rows-too-many",
        TILING,
        "permuteTokens: expected at most N = 6 rows, one for each slot, got shape (7, 4)",
        permuted_tokens=ones(7, HIDDEN),
        permuted_tokens_grad=nans(7, HIDDEN),
    ),
    on_unpermute(
        "rows-out-rows",
        TILING,
        "permutedTokensGradOut: expected shape (M, H) = (6, 4), got shape (5, 4)",
        permuted_tokens_grad=nans(5, HIDDEN),
    ),
    on_unpermute(
        "rows-out-rank",
        TILING,
        "permutedTokensGradOut: expected shape (M, H) = (6, 4), got shape (24,)",
        permuted_tokens_grad=nans(24),
    ),
    on_unpermute(
        "probs-out-topk",
        TILING,
        "probsGradOut: expected shape (R, K) = (3, 2), got shape (3, 1)",
        probs_grad=nans(3, 1),
    ),
    on_unpermute(
        "probs-out-rank", TILING, "probsGradOut: expected shape (R, K) = (3, 2), got shape (6,)", probs_grad=nans(6)
    ),
    on_unpermute(
        "hidden-0",
        TILING,
        "unpermutedTokensGrad: expected a hidden size H of at least 1, got shape (3, 0)",
        permuted_tokens=ones(SLOTS, 0),
        unpermuted_tokens_grad=ones(TOKENS, 0),
        permuted_tokens_grad=nans(SLOTS, 0),
    ),
    # padded_mode
    on_unpermute(
        "padded-index",
        TILING,
        "sortedIndices: expected shape (M,) = (10,), got shape (6,)",
        padded=True,
        sorted_indices=ints(6),
    ),
    on_unpermute(
        "padded-probs",
        TILING,
        "probsOptional: expected M = 10 elements in any shape, got shape (2, 4)",
        padded=True,
        probs=ones(2, 4),
    ),
    on_unpermute(
        "padded-probs-out",
        TILING,
        "probsGradOut: expected shape (2, 5), that of probsOptional, got shape (10,)",
        padded=True,
        probs_grad=nans(10),
    ),
    on_unpermute(
        "padded-rows-out",
        TILING,
        "permutedTokensGradOut: expected shape (M, H) = (10, 4), got shape (6, 4)",
        padded=True,
        permuted_tokens_grad=nans(6, HIDDEN),
    ),
    *(
        on_unpermute(
            f"restore-shape-{number}",
            TILING,
            f"restoreShapeOptional: expected (R, H) = (3, 4), the shape of unpermutedTokensGrad, got {spelled}",
            padded=True,
            restore_shape=shape,
        )
        for number, (shape, spelled) in enumerate(
            [([3, 5], "(3, 5)"), ([4, 3], "(4, 3)"), ([3], "(3,)"), ([3, 4, 1], "(3, 4, 1)"), ([-3, -4], "(-3, -4)")]
        )
    ),
]
