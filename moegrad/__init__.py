"""moegrad: the backward pass of MoE token routing, on arrays.

    import moegrad
    grad_x, grad_scales = moegrad.finalize_routing_v2_grad(grad_y, expanded_row_idx, expanded_x, scales)

Importing this package loads NumPy and ml_dtypes only. The compiler that generated the kernels is
`moegrad.codegen`, with dependencies of its own.
"""

from __future__ import annotations

from .config import __version__, get_include, show_config
from .converters import choice_major_to_token_major, invert_row_map
from .operators import finalize_routing_v2_grad, token_unpermute_grad

__all__ = [
    "__version__",
    "choice_major_to_token_major",
    "finalize_routing_v2_grad",
    "get_include",
    "invert_row_map",
    "show_config",
    "token_unpermute_grad",
]
