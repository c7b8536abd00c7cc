"""Exponentials, logarithms, roots, circular and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.declaration.fact import IN_FLOAT32
from weft.ops.declaration.numeric import binary, elementwise
from weft.ops.elementwise.compare import isinf, logical_or, select

_LN2: Final = math.log(2.0)
_POSITIVE: Final[dict[str, Any]] = {"low": 0.25, "high": 4.0}
_ROUND: Final = (0.0, -0.0, 1.0, -2.5, 30.0, 1e-30, np.inf, -np.inf, np.nan)
"""Specials of the circular functions: huge angles are tested with the code generator."""


# Exponentials and logarithms
exp = elementwise(
    "exp", lambda b, x: b.exp(x), np.exp, lambda g, y, x: (g * y,), kinds="fc", facts=IN_FLOAT32
)


def _expm1_reference(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.expm1(x)
    # NumPy's complex expm1 loses digits near 0 and the limits at infinity.
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * np.sin(x.imag / 2) ** 2 + 0.0
    near = np.empty_like(x)
    near.real, near.imag = real, np.exp(x.real) * np.sin(x.imag)
    return np.where(np.isfinite(x), near, np.exp(x) - 1)


expm1 = elementwise(
    "expm1", lambda b, x: b.expm1(x), _expm1_reference, lambda g, y, x: (g * exp(x),), kinds="fc",
    facts=IN_FLOAT32,
)  # fmt: skip
log = elementwise(
    "log", lambda b, x: b.log(x), np.log, lambda g, y, x: (g / x,), **_POSITIVE, kinds="fc",
    facts=IN_FLOAT32,
)  # fmt: skip


def _log1p_reference(x: Array) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    near = np.empty_like(x)  # where NumPy's loses all digits
    near.real = np.log1p(x.real * (2 + x.real) + x.imag**2) / 2
    near.imag = np.arctan2(x.imag, 1 + x.real)
    return np.where(np.abs(x) < 0.5, near, np.log1p(x))


log1p = elementwise(
    "log1p", lambda b, x: b.log1p(x), _log1p_reference, lambda g, y, x: (g / (x + 1),), low=-0.75,
    kinds="fc", facts=IN_FLOAT32,
)  # fmt: skip


def _sigmoid_of_complex(x: Array) -> Any:
    right = x.real >= 0
    small = np.exp(np.where(right, -x, x))  # cannot overflow
    return np.where(right, 1, small) / (1 + small)


def _sigmoid_reference(x: Array) -> Any:
    return _sigmoid_of_complex(x) if x.dtype.kind == "c" else np.exp(-np.logaddexp(0, -x))


def _sigmoid_fast(x: Array) -> Any:
    return _sigmoid_of_complex(x) if x.dtype.kind == "c" else 1 / (1 + np.exp(-x))


sigmoid = elementwise(
    "sigmoid", lambda b, x: b.sigmoid(x), _sigmoid_reference,
    lambda g, y, x: (g * y * (1 - y),), rtol=4e-6, fast=_sigmoid_fast, kinds="fc",
)  # fmt: skip


def _softplus_rule(b: Any, x: Any) -> Any:
    return b.maximum(x, b.const(0, x.dtype)) + b.log1p(b.exp(-b.abs(x)))


softplus = elementwise(
    "softplus", _softplus_rule, lambda x: np.logaddexp(x, np.zeros_like(x)),
    lambda g, y, x: (g * sigmoid(x),),
    fast=lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    facts=IN_FLOAT32,
)  # fmt: skip

# Roots
sqrt = elementwise(
    "sqrt", lambda b, x: b.sqrt(x), np.sqrt, lambda g, y, x: (g * 0.5 / y,), **_POSITIVE, kinds="fc"
)
rsqrt = elementwise(
    "rsqrt", lambda b, x: b.rsqrt(x), lambda x: 1 / np.sqrt(x),
    lambda g, y, x: (g * -0.5 * y * y * y,), **_POSITIVE, kinds="fc", facts=IN_FLOAT32)  # fmt: skip

# Circular functions
sin = elementwise(
    "sin", lambda b, x: b.sin(x), np.sin, lambda g, y, x: (g * cos(x),), specials=_ROUND, kinds="fc"
)
cos = elementwise(
    "cos",
    lambda b, x: b.cos(x),
    np.cos,
    lambda g, y, x: (-g * sin(x),),
    specials=_ROUND,
    kinds="fc",
)
tan = elementwise(
    "tan", lambda b, x: b.tan(x), np.tan, lambda g, y, x: (g * (y * y + 1),), low=-1.4, high=1.4,
    specials=_ROUND, kinds="fc", facts=IN_FLOAT32)  # fmt: skip
asin = elementwise(
    "asin", lambda b, x: b.asin(x), np.arcsin, lambda g, y, x: (g * rsqrt(1 - x * x),), low=-0.9,
    high=0.9, kinds="fc", facts=IN_FLOAT32)  # fmt: skip
acos = elementwise(
    "acos", lambda b, x: b.acos(x), np.arccos, lambda g, y, x: (-g * rsqrt(1 - x * x),), low=-0.9,
    high=0.9, kinds="fc", facts=IN_FLOAT32)  # fmt: skip
atan = elementwise(
    "atan", lambda b, x: b.atan(x), np.arctan, lambda g, y, x: (g / (x * x + 1),), kinds="fc"
)


def _atan2_vjp(g: Any, z: Any, y: Any, x: Any) -> tuple[Any, ...]:
    """At 0, 0, where the angle has no derivative, 0."""
    zero, one = (constant_of(v, x.dtype) for v in (0, 1))
    scale = catalogue.stop_gradient(catalogue.maximum(catalogue.abs(x), catalogue.abs(y)))
    none = catalogue.equal(scale, zero)
    scale = select(logical_or(none, isinf(scale)), one, scale)  # keeps the squares finite
    u, v = x / scale, y / scale
    square = select(none, one, u * u + v * v)
    dy, dx = (select(none, zero, w / square / scale) for w in (u, v))
    return g * dy, -g * dx


atan2 = binary(
    "atan2", lambda b, y, x: b.atan2(y, x), np.arctan2, _atan2_vjp, "f",
    specials=(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan),
)  # fmt: skip

# Hyperbolic functions
sinh = elementwise(
    "sinh", lambda b, x: b.sinh(x), np.sinh, lambda g, y, x: (g * cosh(x),), kinds="fc",
    facts=IN_FLOAT32,
)  # fmt: skip
cosh = elementwise(
    "cosh", lambda b, x: b.cosh(x), np.cosh, lambda g, y, x: (g * sinh(x),), kinds="fc",
    facts=IN_FLOAT32,
)  # fmt: skip
tanh = elementwise(
    "tanh", lambda b, x: b.tanh(x), np.tanh, lambda g, y, x: (g * (1 - y * y),), kinds="fc"
)


_HUGE: Final = {8: 1e150, 4: 1e15, 2: 1e4}
"""By size of the dtype: beyond this, 1 is negligible beside x * x, which is still finite."""


def _with_sign(b: Any, x: Any, magnitude: Any) -> Any:
    zero = b.const(0, x.dtype)
    signed = b.select(b.less(x, zero), -magnitude, magnitude)
    return b.select(b.equal(x, zero), x, signed)  # -0 stays -0


def _asinh_rule(b: Any, x: Any) -> Any:
    a, huge = b.abs(x), b.const(_HUGE[x.dtype.size], x.dtype)
    near = b.minimum(a, huge)  # keeps the square finite
    exact = b.log1p(near + near * near / (b.sqrt(near * near + 1.0) + 1.0))
    return _with_sign(b, x, b.select(b.less(huge, a), b.log(a) + _LN2, exact))


def _acosh_rule(b: Any, x: Any) -> Any:
    huge = b.const(_HUGE[x.dtype.size], x.dtype)
    t = b.maximum(b.minimum(x, huge), b.const(0, x.dtype)) - 1.0  # below 1 the root is NaN
    return b.select(b.less(huge, x), b.log(x) + _LN2, b.log1p(t + b.sqrt(t * (t + 2.0))))


def _atanh_rule(b: Any, x: Any) -> Any:
    a = b.abs(x)
    return _with_sign(b, x, b.log1p(a * 2.0 / (1.0 - a)) * 0.5)


asinh = elementwise(
    "asinh", _asinh_rule, np.arcsinh, lambda g, y, x: (g * rsqrt(x * x + 1),), kinds="fc"
)


def _acosh_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    if x.dtype.is_complex:  # a single root of the product would take the other branch
        return (g * rsqrt(x - 1) * rsqrt(x + 1),)
    return (g * rsqrt(x * x - 1),)


acosh = elementwise(
    "acosh", _acosh_rule, np.arccosh, _acosh_vjp, low=1.25, kinds="fc", facts=IN_FLOAT32
)
atanh = elementwise(
    "atanh", _atanh_rule, np.arctanh, lambda g, y, x: (g / (1 - x * x),), low=-0.9, high=0.9,
    rtol=4e-6, kinds="fc", facts=IN_FLOAT32)  # fmt: skip


# The error function
def _each(function: Any) -> Any:
    """A reference that applies a standard library function to every element."""
    many = np.vectorize(function, otypes=[np.float64])
    return lambda x: many(x.astype(np.float64)).astype(x.dtype)


def _bell(g: Any, x: Any, sign: float) -> Any:
    """The derivative of `erf`: 2 / sqrt(pi) * exp(-x * x)."""
    return g * (sign * 2 / math.sqrt(math.pi)) * exp(-(x * x))


# (1 + 2a) * exp(a * a) * erfc(a) = P((a - K) / (a + K)) for 0 <= a, as in M. Shepherd and J.
# Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981). Interpolated at
# Chebyshev nodes with 60 digits; relative errors 2.7e-8 and 1.3e-17. Beyond LIMIT erfc is 0.
_ERFC_NARROW: Final = (
    1.2769783772382342, -0.09276395615163709, -0.16603042661674952, 0.16405505998931041,
    -0.0542140763830808, -0.008061450416373732, 0.00866313715949238, 0.0013282917414349008,
    -0.0012623772030692952, -0.00042332225749326576,
)  # fmt: skip
_ERFC_WIDE: Final = (
    1.2329951186255526, -0.13962111684056286, 0.015379652102621091, 0.0680970542547336,
    -0.10103906603637362, 0.09373283499690535, -0.0663303658110103, 0.03716751556105671,
    -0.016197734065502876, 0.005031969765051122, -0.0007577732963739462, -0.00019925553476007838,
    0.0001506220523230599, -2.4403160497192634e-05, -1.1224293594679385e-05,
    5.718067004785881e-06, 3.006053020270926e-07, -8.356886054802244e-07, 6.326381936013846e-08,
    1.1597564919712835e-07, -7.796210935750394e-09, -1.3952812123042382e-08,
    -1.907388627007971e-09,
)  # fmt: skip


# 2 / sqrt(pi) * (-1)**n / (n! (2n + 1)): further terms are below 2e-8 up to 0.75.
_ERF_SERIES: Final = tuple(
    2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(8)
)


def fast_erf(x: Array) -> Array:
    """The error function: in NumPy to 2e-7 for float32, by `math.erf` for wider dtypes."""
    if x.dtype != np.float32:
        return _each(math.erf)(x)
    a = np.abs(x)
    s = a * a
    near = np.full_like(x, _ERF_SERIES[-1])
    for c in reversed(_ERF_SERIES[:-1]):
        near *= s
        near += np.float32(c)
    a = np.minimum(a, np.float32(4))  # where erfc is below half an ulp of 1
    q = (a - 2) / (a + 2)
    far = np.full_like(x, _ERFC_NARROW[-1])
    for c in reversed(_ERFC_NARROW[:-1]):
        far *= q
        far += np.float32(c)
    far = 1 - np.exp(-a * a) * far / (2 * a + 1)
    return np.where(s < np.float32(0.5625), x * near, np.copysign(far, x))


erf = elementwise(
    "erf", lambda b, x: b.erf(x), _each(math.erf), lambda g, y, x: (_bell(g, x, 1.0),),
    fast=fast_erf,
)  # fmt: skip


def _erfc_rule(b: Any, x: Any) -> Any:
    wide = x.dtype.size == 8
    table, k, limit = (_ERFC_WIDE, 4.0, 27.3) if wide else (_ERFC_NARROW, 2.0, 10.1)
    a = b.minimum(b.abs(x), b.const(limit, x.dtype))
    q = (a - k) / (a + k)
    p = b.const(table[-1], x.dtype)
    for c in reversed(table[:-1]):
        p = b.fma(p, q, b.const(c, x.dtype))
    s = a * a
    lost = b.fma(a, a, -s)  # the rounding error of the square, which exp(-s) would magnify
    tail = b.exp(-s) * (1.0 - lost) * p / (a * 2.0 + 1.0)
    return b.select(b.less(x, b.const(0, x.dtype)), 2.0 - tail, tail)


erfc = elementwise(
    "erfc", _erfc_rule, _each(math.erfc), lambda g, y, x: (_bell(g, x, -1.0),), low=-4, high=6,
    specials=_ROUND,
)  # fmt: skip
