"""What `import weft as wf` offers of the define-by-run front end: every public name, once."""

from __future__ import annotations

from weft.eager.arithmetic import (
    abs,
    add,
    divide,
    equal,
    exp,
    floor_divide,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    power,
    remainder,
    rsqrt,
    sigmoid,
    sqrt,
    subtract,
    tanh,
)
from weft.eager.autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from weft.eager.promotion import set_default_dtype
from weft.eager.storage import empty_cache
from weft.eager.tensor import Tensor

__all__ = [
    "Tensor",
    "abs",
    "add",
    "divide",
    "empty_cache",
    "enable_grad",
    "equal",
    "exp",
    "floor_divide",
    "greater",
    "greater_equal",
    "is_grad_enabled",
    "less",
    "less_equal",
    "log",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "no_grad",
    "not_equal",
    "power",
    "remainder",
    "rsqrt",
    "set_default_dtype",
    "set_grad_enabled",
    "sigmoid",
    "sqrt",
    "subtract",
    "tanh",
]
