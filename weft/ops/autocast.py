"""Mixed precision: the element type in which each operation runs while casts are automatic.

Products run in a half-precision type, where hardware is fastest and float32 sums keep the error
small. What loses digits by cancellation, overflows, or adds up many terms runs in float32. Other
operations take what they are given, promoted to the widest input. Weights stay float32: only the
casts that feed products round them, and gradients come back through those casts in float32.
(Micikevicius et al., "Mixed Precision Training", 2017; the division is PyTorch's.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from weft.errors import DTypeError
from weft.ir.dtype import DType, float32, float64
from weft.ir.node import Value
from weft.ops.base import REGISTRY, Boundary
from weft.ops.convert import cast
from weft.ops.numeric import HALVES

Policy = Literal["low", "float32", "widest"]

LOW: Final = frozenset(
    {
        "attention", "conv", "conv_grad_input", "conv_grad_weight", "matmul",
        # functions that are mostly products
        "added", "bilinear", "conv_transpose", "einsum", "gru", "gru_cell", "inner", "linear",
        "lstm", "lstm_cell", "multi_head_attention", "plainly_added", "rnn", "rnn_cell",
        "tensordot",
    }
)  # fmt: skip
"""Run in the half-precision type; the result has it, too. Sums inside are kept in float32."""

IN_FLOAT32: Final = frozenset(
    {
        # wide range, or digits lost where the derivative is steep
        "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "logit", "softplus", "power",
        "raised", "reciprocal", "rsqrt", "acos", "asin", "acosh", "atanh", "cosh", "sinh", "tan",
        "erfinv", "lgamma", "digamma", "polygamma",
        # many steps
        "lstm_sequence", "lstm_sequence_grad",
        # many terms
        "sum", "sum_to", "prod", "mean", "variance", "std", "norm", "logsumexp", "nansum",
        "nanmean", "accumulated", "cumsum", "cumprod", "softmax",
        "log_softmax", "gumbel_softmax",
        # normalisation
        "batch_norm", "batch_norm_eval", "group_norm", "instance_norm", "layer_norm",
        "local_response_norm", "matrix_norm", "normalize", "rms_norm", "vector_norm",
        # distances
        "cosine_similarity", "distances", "pairwise_distance", "pdist",
        # losses
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
        "cross_entropy", "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
        "kl_div",
        "l1_loss", "l2_loss", "margin_of_distances", "margin_ranking_loss", "mse_loss",
        "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
        "poisson_nll_loss",
        "sigmoid_cross_entropy", "smooth_l1_loss", "soft_cross_entropy", "soft_margin_loss",
        "softmax_cross_entropy", "sparse_softmax_cross_entropy", "triplet_margin_loss",
    }
)  # fmt: skip
"""Run in float32, and give it."""

_UNTOUCHED: Final = frozenset(
    {
        "barrier", "call", "flash_attention", "flash_attention_grad", "head_attention",
        "head_attention_grad", "host_call", "lag_gather", "lag_update", "slice_update",
    }
)  # fmt: skip
"""Functions and kernels get what their caller gave; an array keeps its type when a part is
assigned."""


def policy(name: str) -> Policy | None:
    """How an operation treats its floating inputs while casts are automatic.

    `"low"`: cast to the half-precision type. `"float32"`: half precision is cast to float32.
    `"widest"`: cast to the widest type among them. `None`: left as they are.

    Args:
        name: of an operation of the catalogue, or of a function that is recorded as one call,
            such as `linear`; one that no table names takes the widest type.

    >>> policy("matmul"), policy("softmax"), policy("add"), policy("tanh")
    ('low', 'float32', 'widest', None)
    """
    if name in LOW:
        return "low"
    if name in IN_FLOAT32:
        return "float32"
    if name in _UNTOUCHED:
        return None
    op = REGISTRY.get(name)
    if op is None:
        return "widest"
    several = len(op.inputs) > 1 or any(declared.startswith("*") for declared in op.inputs)
    return "widest" if several and not isinstance(op.lower, Boundary) else None


def input_dtypes(name: str, dtypes: Sequence[DType], low: DType) -> tuple[DType, ...]:
    """The element types in which the operation `name` takes inputs of the given types.

    What is not floating stays as it is. A float64 input is a wish for digits: the operation then
    runs in float64.

    Args:
        low: the half-precision type, bfloat16 or float16.

    Raises:
        DTypeError: `low` is another type.
    """
    if low not in HALVES:
        raise DTypeError(f"autocast: expected bfloat16 or float16, got {low}")
    rule = policy(name)
    if rule is None:
        return tuple(dtypes)
    to = _common([dtype for dtype in dtypes if dtype.is_floating], rule, low)
    return tuple(to if to is not None and d.is_floating else d for d in dtypes)


def _common(floats: Sequence[DType], rule: Policy, low: DType) -> DType | None:
    """The one type for all floating inputs of an operation; `None` where there are none."""
    if not floats or float64 in floats:
        return float64 if floats else None
    if rule == "low":
        return low
    return floats[0] if rule == "widest" and len(set(floats)) == 1 else float32


def cast_inputs(name: str, args: Sequence[Any], low: DType) -> tuple[Any, ...]:
    """The inputs of an operation about to be recorded, with the casts that `policy` asks for.

    Args:
        args: as the operation is called; bare numbers and arrays stay as they are, because they
            take the type of the values beside them.
        low: the half-precision type, bfloat16 or float16.

    Raises:
        DTypeError: `low` is another type.
    """
    values = [arg for arg in args if isinstance(arg, Value)]
    wanted = iter(input_dtypes(name, [value.dtype for value in values], low))
    return tuple(_as(arg, next(wanted)) if isinstance(arg, Value) else arg for arg in args)


def _as(value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else cast(value, dtype=dtype)
