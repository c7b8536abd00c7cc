"""Exponentials, logarithms, roots, circular and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ops.numeric import binary, elementwise

_LN2: Final = math.log(2.0)
_POSITIVE: Final[dict[str, Any]] = {"low": 0.25, "high": 4.0}
_ROUND: Final = (0.0, -0.0, 1.0, -2.5, 30.0, 1e-30, np.inf, -np.inf, np.nan)
"""Specials of the circular functions: reducing huge angles is the code generator's own test."""


# Exponentials and logarithms
exp = elementwise("exp", lambda b, x: b.exp(x), np.exp, lambda g, y, x: (g * y,))
expm1 = elementwise("expm1", lambda b, x: b.expm1(x), np.expm1, lambda g, y, x: (g * (y + 1),))
log = elementwise("log", lambda b, x: b.log(x), np.log, lambda g, y, x: (g / x,), **_POSITIVE)
log1p = elementwise(
    "log1p", lambda b, x: b.log1p(x), np.log1p, lambda g, y, x: (g / (x + 1),), low=-0.75
)
sigmoid = elementwise(
    "sigmoid", lambda b, x: b.sigmoid(x), lambda x: np.exp(-np.logaddexp(0, -x)),
    lambda g, y, x: (g * y * (1 - y),), rtol=4e-6,
)  # fmt: skip


def _softplus_rule(b: Any, x: Any) -> Any:
    return b.maximum(x, b.const(0, x.dtype)) + b.log1p(b.exp(-b.abs(x)))


softplus = elementwise(
    "softplus", _softplus_rule, lambda x: np.logaddexp(x, np.zeros_like(x)),
    lambda g, y, x: (g * sigmoid(x),),
)  # fmt: skip

# Roots
sqrt = elementwise(
    "sqrt", lambda b, x: b.sqrt(x), np.sqrt, lambda g, y, x: (g * 0.5 / y,), **_POSITIVE
)
rsqrt = elementwise(
    "rsqrt", lambda b, x: b.rsqrt(x), lambda x: 1 / np.sqrt(x),
    lambda g, y, x: (g * -0.5 * y * y * y,), **_POSITIVE,
)  # fmt: skip

# Circular functions
sin = elementwise(
    "sin", lambda b, x: b.sin(x), np.sin, lambda g, y, x: (g * cos(x),), specials=_ROUND
)
cos = elementwise(
    "cos", lambda b, x: b.cos(x), np.cos, lambda g, y, x: (-g * sin(x),), specials=_ROUND
)
tan = elementwise(
    "tan", lambda b, x: b.tan(x), np.tan, lambda g, y, x: (g * (y * y + 1),), low=-1.4, high=1.4,
    specials=_ROUND,
)  # fmt: skip
asin = elementwise(
    "asin", lambda b, x: b.asin(x), np.arcsin, lambda g, y, x: (g * rsqrt(1 - x * x),), low=-0.9,
    high=0.9,
)  # fmt: skip
acos = elementwise(
    "acos", lambda b, x: b.acos(x), np.arccos, lambda g, y, x: (-g * rsqrt(1 - x * x),), low=-0.9,
    high=0.9,
)  # fmt: skip
atan = elementwise("atan", lambda b, x: b.atan(x), np.arctan, lambda g, y, x: (g / (x * x + 1),))
atan2 = binary(
    "atan2", lambda b, y, x: b.atan2(y, x), np.arctan2,
    lambda g, z, y, x: (g * x / (x * x + y * y), -g * y / (x * x + y * y)), "f",
    specials=(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan),
)  # fmt: skip

# Hyperbolic functions
sinh = elementwise("sinh", lambda b, x: b.sinh(x), np.sinh, lambda g, y, x: (g * cosh(x),))
cosh = elementwise("cosh", lambda b, x: b.cosh(x), np.cosh, lambda g, y, x: (g * sinh(x),))
tanh = elementwise("tanh", lambda b, x: b.tanh(x), np.tanh, lambda g, y, x: (g * (1 - y * y),))


def _huge(x: Any) -> float:
    """Beyond this, 1 is nothing against x * x, which is still finite."""
    return 1e150 if x.dtype.size == 8 else 1e15


def _with_sign(b: Any, x: Any, magnitude: Any) -> Any:
    return b.select(b.less(x, b.const(0, x.dtype)), -magnitude, magnitude)


def _asinh_rule(b: Any, x: Any) -> Any:
    a, huge = b.abs(x), b.const(_huge(x), x.dtype)
    near = b.minimum(a, huge)  # keeps the square finite
    exact = b.log1p(near + near * near / (b.sqrt(near * near + 1.0) + 1.0))
    return _with_sign(b, x, b.select(b.less(huge, a), b.log(a) + _LN2, exact))


def _acosh_rule(b: Any, x: Any) -> Any:
    huge = b.const(_huge(x), x.dtype)
    t = b.maximum(b.minimum(x, huge), b.const(0, x.dtype)) - 1.0  # below 1 the root is NaN
    return b.select(b.less(huge, x), b.log(x) + _LN2, b.log1p(t + b.sqrt(t * (t + 2.0))))


def _atanh_rule(b: Any, x: Any) -> Any:
    a = b.abs(x)
    return _with_sign(b, x, b.log1p(a * 2.0 / (1.0 - a)) * 0.5)


asinh = elementwise("asinh", _asinh_rule, np.arcsinh, lambda g, y, x: (g * rsqrt(x * x + 1),))
acosh = elementwise(
    "acosh", _acosh_rule, np.arccosh, lambda g, y, x: (g * rsqrt(x * x - 1),), low=1.25
)
atanh = elementwise(
    "atanh", _atanh_rule, np.arctanh, lambda g, y, x: (g / (1 - x * x),), low=-0.9, high=0.9,
    rtol=4e-6,
)  # fmt: skip


# The error function
def _each(function: Any) -> Any:
    """The reference that applies a function of the standard library to every element."""
    many = np.vectorize(function, otypes=[np.float64])
    return lambda x: many(x.astype(np.float64)).astype(x.dtype)


def _bell(g: Any, x: Any, sign: float) -> Any:
    """The slope of `erf`: 2 / sqrt(pi) * exp(-x * x)."""
    return g * (sign * 2 / math.sqrt(math.pi)) * exp(-(x * x))


erf = elementwise(
    "erf", lambda b, x: b.erf(x), _each(math.erf), lambda g, y, x: (_bell(g, x, 1.0),)
)
