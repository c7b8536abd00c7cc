"""`linear` and `bilinear`."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.linalg.product import WIDE
from weft.eager.functions.recall.memory import of_any_sizes
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.ops.linalg import linear as formulas

__all__ = ["bilinear", "linear"]

_linear = recorded(formulas.linear)


@of_any_sizes
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`.

    Args:
        input: (..., in), any number of leading dimensions.
        weight: (out, in), or (in) for one output without its dimension.
        bias: (out).
    """
    given = (input, weight, bias)
    kinds = {lazy_of(x).type.dtype for x in given if x is not None}
    if len(kinds) > 1 or not kinds <= WIDE:
        return _linear(input, weight, bias)
    return _linear(*[None if x is None else x.long() for x in given]).to(input.dtype)


_bilinear = recorded(formulas.bilinear)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """`y[..., k] = input1[..., :] @ weight[k] @ input2[..., :] + bias[k]`.

    Args:
        input1: (..., in1).
        input2: (..., in2).
        weight: (out, in1, in2).
        bias: (out).
    """
    return _bilinear(input1, input2, weight, bias)
