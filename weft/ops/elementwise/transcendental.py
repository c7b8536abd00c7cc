"""Exponentials, logarithms, roots, circular and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtype import float32
from weft.ops.declaration import Array, Face, catalogue, constant_of
from weft.ops.declaration.fact import IN_FLOAT32
from weft.ops.declaration.numeric import binary, elementwise
from weft.ops.elementwise.compare import isinf, logical_or, select

_LN2: Final = math.log(2.0)
_POSITIVE: Final[dict[str, Any]] = {"low": 0.25, "high": 4.0}
_ROUND: Final = (0.0, -0.0, 1.0, -2.5, 30.0, 1e-30, np.inf, -np.inf, np.nan)
"""Specials of the circular functions: huge angles are tested with the code generator."""


# Exponentials and logarithms
exp = elementwise(
    "exp", lower=lambda b, x: b.exp(x), reference=np.exp, vjp=lambda g, y, x: (g * y,),
    kinds="fc", facts=IN_FLOAT32,
    face=Face("`e` to the power of every element.", "[0.0, 1.0] -> [1.0000, 2.7183]",
              torch="exp_", numpy="exp", tf1="Exp", dtensor=True),
)  # fmt: skip


def _expm1_reference(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.expm1(x)
    # NumPy's complex expm1 loses digits near 0 and the limits at infinity.
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * np.sin(x.imag / 2) ** 2 + 0.0
    near = np.empty_like(x)
    near.real, near.imag = real, np.exp(x.real) * np.sin(x.imag)
    return np.where(np.isfinite(x), near, np.exp(x) - 1)


expm1 = elementwise(
    "expm1", lower=lambda b, x: b.expm1(x), reference=_expm1_reference,
    vjp=lambda g, y, x: (g * exp(x),),
    kinds="fc", facts=IN_FLOAT32,
    face=Face("`exp(x) - 1`, accurate near 0.", "[0.0, 1.0] -> [0.0000, 1.7183]",
              torch="expm1_", numpy="expm1", tf1="Expm1", special="expm1", dtensor=True),
)  # fmt: skip
log = elementwise(
    "log", lower=lambda b, x: b.log(x), reference=np.log, vjp=lambda g, y, x: (g / x,),
    **_POSITIVE, kinds="fc", facts=IN_FLOAT32,
    face=Face("The natural logarithm of every element.", "[1.0, 10.0] -> [0.0000, 2.3026]",
              torch="log_", numpy="log", tf1="Log", dtensor=True),
)  # fmt: skip


def _log1p_reference(x: Array) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    near = np.empty_like(x)  # where NumPy's loses all digits
    near.real = np.log1p(x.real * (2 + x.real) + x.imag**2) / 2
    near.imag = np.arctan2(x.imag, 1 + x.real)
    return np.where(np.abs(x) < 0.5, near, np.log1p(x))


log1p = elementwise(
    "log1p", lower=lambda b, x: b.log1p(x), reference=_log1p_reference,
    vjp=lambda g, y, x: (g / (x + 1),),
    low=-0.75, kinds="fc", facts=IN_FLOAT32,
    face=Face("`log(1 + x)`, accurate near 0.", "[0.0, 1.0] -> [0.0000, 0.6931]",
              torch="log1p_", numpy="log1p", tf1="Log1p", special="log1p", dtensor=True),
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
    "sigmoid", lower=lambda b, x: b.sigmoid(x), reference=_sigmoid_reference,
    vjp=lambda g, y, x: (g * y * (1 - y),),
    rtol=4e-6, fast=_sigmoid_fast, kinds="fc",
    face=Face("The logistic function: `1 / (1 + exp(-x))`.", "[0.0, 2.0] -> [0.5000, 0.8808]",
              torch="sigmoid_ expit", tf1="Sigmoid", special="expit", scipy="expit", dtensor=True),
)  # fmt: skip


def _softplus_rule(b: Any, x: Any) -> Any:
    return b.maximum(x, b.const(0, x.dtype)) + b.log1p(b.exp(-b.abs(x)))


softplus = elementwise(
    "softplus", lower=_softplus_rule, reference=lambda x: np.logaddexp(x, np.zeros_like(x)),
    vjp=lambda g, y, x: (g * sigmoid(x),),
    fast=lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), facts=IN_FLOAT32,
    face=Face("`log(1 + exp(x))`, a smooth `relu`.", "[0.0, 20.0] -> [ 0.6931, 20.0000]",
              tf1="Softplus nn.softplus", wide=float32),
)  # fmt: skip

# Roots
sqrt = elementwise(
    "sqrt", lower=lambda b, x: b.sqrt(x), reference=np.sqrt, vjp=lambda g, y, x: (g * 0.5 / y,),
    **_POSITIVE, kinds="fc",
    face=Face("The square root of every element; NaN for negative numbers.",
              "[4.0, 2.0] -> [2.0000, 1.4142]",
              torch="sqrt_", numpy="sqrt", tf1="Sqrt", dtensor=True),
)  # fmt: skip
rsqrt = elementwise(
    "rsqrt", lower=lambda b, x: b.rsqrt(x), reference=lambda x: 1 / np.sqrt(x),
    vjp=lambda g, y, x: (g * -0.5 * y * y * y,),
    **_POSITIVE, kinds="fc", facts=IN_FLOAT32,
    face=Face("`1 / sqrt(x)`.", "[4.0, 2.0] -> [0.5000, 0.7071]",
              torch="rsqrt_", tf1="Rsqrt", dtensor=True),
)  # fmt: skip

# Circular functions
sin = elementwise(
    "sin", lower=lambda b, x: b.sin(x), reference=np.sin, vjp=lambda g, y, x: (g * cos(x),),
    specials=_ROUND, kinds="fc",
    face=Face("The sine of every element, an angle in radians.", "[0.0, 1.0] -> [0.0000, 0.8415]",
              torch="sin_", numpy="sin", tf1="Sin", dtensor=True),
)  # fmt: skip
cos = elementwise(
    "cos", lower=lambda b, x: b.cos(x), reference=np.cos, vjp=lambda g, y, x: (-g * sin(x),),
    specials=_ROUND, kinds="fc",
    face=Face("The cosine of every element, an angle in radians.", "[0.0, 1.0] -> [1.0000, 0.5403]",
              torch="cos_", numpy="cos", tf1="Cos", dtensor=True),
)  # fmt: skip
tan = elementwise(
    "tan", lower=lambda b, x: b.tan(x), reference=np.tan, vjp=lambda g, y, x: (g * (y * y + 1),),
    low=-1.4, high=1.4, specials=_ROUND, kinds="fc", facts=IN_FLOAT32,
    face=Face("The tangent of every element, an angle in radians.",
              "[0.0, 1.0] -> [0.0000, 1.5574]", torch="tan_", numpy="tan", tf1="Tan", dtensor=True),
)  # fmt: skip
asin = elementwise(
    "asin", lower=lambda b, x: b.asin(x), reference=np.arcsin,
    vjp=lambda g, y, x: (g * rsqrt(1 - x * x),),
    low=-0.9, high=0.9, kinds="fc", facts=IN_FLOAT32,
    face=Face("The inverse sine, in [-pi/2, pi/2].", "[0.0, 1.0] -> [0.0000, 1.5708]",
              torch="asin_ arcsin_", numpy="asin arcsin", tf1="Asin"),
)  # fmt: skip
acos = elementwise(
    "acos", lower=lambda b, x: b.acos(x), reference=np.arccos,
    vjp=lambda g, y, x: (-g * rsqrt(1 - x * x),),
    low=-0.9, high=0.9, kinds="fc", facts=IN_FLOAT32,
    face=Face("The inverse cosine, in [0, pi].", "[0.0, 1.0] -> [1.5708, 0.0000]",
              torch="acos_ arccos_", numpy="acos arccos", tf1="Acos"),
)  # fmt: skip
atan = elementwise(
    "atan", lower=lambda b, x: b.atan(x), reference=np.arctan,
    vjp=lambda g, y, x: (g / (x * x + 1),),
    kinds="fc",
    face=Face("The inverse tangent, in [-pi/2, pi/2].", "[0.0, 1.0] -> [0.0000, 0.7854]",
              torch="atan_ arctan_", numpy="atan arctan", tf1="Atan"),
)  # fmt: skip


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
    "atan2", lower=lambda b, y, x: b.atan2(y, x), reference=np.arctan2, vjp=_atan2_vjp,
    kinds="f", specials=(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan),
    face=Face("The angle of the point (second, first) in (-pi, pi], with broadcasting.",
              "[1.0, -1.0], [1.0, -1.0] -> [ 0.7854, -2.3562]",
              torch="atan2_ arctan2_", numpy="atan2 arctan2", tf1="Atan2"),
)  # fmt: skip

# Hyperbolic functions
sinh = elementwise(
    "sinh", lower=lambda b, x: b.sinh(x), reference=np.sinh, vjp=lambda g, y, x: (g * cosh(x),),
    kinds="fc", facts=IN_FLOAT32,
    face=Face("The hyperbolic sine: `(exp(x) - exp(-x)) / 2`.", "[0.0, 1.0] -> [0.0000, 1.1752]",
              torch="sinh_", numpy="sinh", tf1="Sinh"),
)  # fmt: skip
cosh = elementwise(
    "cosh", lower=lambda b, x: b.cosh(x), reference=np.cosh, vjp=lambda g, y, x: (g * sinh(x),),
    kinds="fc", facts=IN_FLOAT32,
    face=Face("The hyperbolic cosine: `(exp(x) + exp(-x)) / 2`.", "[0.0, 1.0] -> [1.0000, 1.5431]",
              torch="cosh_", numpy="cosh", tf1="Cosh"),
)  # fmt: skip
tanh = elementwise(
    "tanh", lower=lambda b, x: b.tanh(x), reference=np.tanh, vjp=lambda g, y, x: (g * (1 - y * y),),
    kinds="fc",
    face=Face("The hyperbolic tangent: `sinh(x) / cosh(x)`.", "[0.0, 1.0] -> [0.0000, 0.7616]",
              torch="tanh_", numpy="tanh", tf1="Tanh", dtensor=True),
)  # fmt: skip


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
    "asinh", lower=_asinh_rule, reference=np.arcsinh, vjp=lambda g, y, x: (g * rsqrt(x * x + 1),),
    kinds="fc",
    face=Face("The inverse hyperbolic sine.", "[0.0, 1.0] -> [0.0000, 0.8814]",
              torch="asinh_ arcsinh_", numpy="asinh arcsinh", tf1="Asinh"),
)  # fmt: skip


def _acosh_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    if x.dtype.is_complex:  # a single root of the product would take the other branch
        return (g * rsqrt(x - 1) * rsqrt(x + 1),)
    return (g * rsqrt(x * x - 1),)


acosh = elementwise(
    "acosh", lower=_acosh_rule, reference=np.arccosh, vjp=_acosh_vjp,
    low=1.25, kinds="fc", facts=IN_FLOAT32,
    face=Face("The inverse hyperbolic cosine; NaN below 1.", "[1.0, 2.0] -> [0.0000, 1.3170]",
              torch="acosh_ arccosh_", numpy="acosh arccosh", tf1="Acosh"),
)  # fmt: skip
atanh = elementwise(
    "atanh", lower=_atanh_rule, reference=np.arctanh, vjp=lambda g, y, x: (g / (1 - x * x),),
    low=-0.9, high=0.9, rtol=4e-6, kinds="fc", facts=IN_FLOAT32,
    face=Face("The inverse hyperbolic tangent; NaN beyond -1 and 1.",
              "[0.0, 0.5] -> [0.0000, 0.5493]",
              torch="atanh_ arctanh_", numpy="atanh arctanh", tf1="Atanh"),
)  # fmt: skip


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
    "erf", lower=lambda b, x: b.erf(x), reference=_each(math.erf),
    vjp=lambda g, y, x: (_bell(g, x, 1.0),),
    fast=fast_erf,
    face=Face("The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`.",
              "[0.0, 0.5] -> [0.0000, 0.5205]",
              torch="erf_", tf1="Erf", special="erf", dtensor=True),
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
    "erfc", lower=_erfc_rule, reference=_each(math.erfc), vjp=lambda g, y, x: (_bell(g, x, -1.0),),
    low=-4, high=6, specials=_ROUND,
    face=Face("`1 - erf(x)`, accurate where that is tiny.", "[0.0, 2.0] -> [1.0000, 0.0047]",
              torch="erfc_", tf1="Erfc", special="erfc"),
)  # fmt: skip
