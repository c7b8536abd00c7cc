"""Made by `python -m tools.stubs`."""

import builtins
from typing import Any

from weft.eager.tensor.tensor import Tensor

def abs(x: Any) -> Tensor:
    """The absolute value of every element."""
def acos(x: Any) -> Tensor:
    """The inverse cosine, in [0, pi]."""
def acosh(x: Any) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
def add(x: Any, other: Any) -> Tensor:
    """The sum of two tensors, with broadcasting."""
def angle(x: Any) -> Tensor:
    """The angle from the positive real axis, in (-pi, pi]."""
def asin(x: Any) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""
def asinh(x: Any) -> Tensor:
    """The inverse hyperbolic sine."""
def atan(x: Any) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""
def atan2(x: Any, other: Any) -> Tensor:
    """The angle of the point (second, first) in (-pi, pi], with broadcasting."""
def atanh(x: Any) -> Tensor:
    """The inverse hyperbolic tangent; NaN beyond -1 and 1."""
def bitwise_and(x: Any, other: Any) -> Tensor:
    """The bits that both integers have; for booleans, whether both are true."""
def bitwise_not(x: Any) -> Tensor:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not."""
def bitwise_or(x: Any, other: Any) -> Tensor:
    """The bits that one integer or both have; for booleans, whether one is true."""
def bitwise_xor(x: Any, other: Any) -> Tensor:
    """The bits in which two integers differ; for booleans, whether they differ."""
def cbrt(x: Any) -> Tensor:
    """The cube root, negative for negative numbers."""
def ceil(x: Any) -> Tensor:
    """The least integer that is not less than an element."""
def conj(x: Any) -> Tensor:
    """The complex conjugates; real numbers are returned as they are."""
def copysign(x: Any, other: Any) -> Tensor:
    """The magnitudes of the first with the signs of the second, with broadcasting."""
def cos(x: Any) -> Tensor:
    """The cosine of every element, an angle in radians."""
def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine: `(exp(x) + exp(-x)) / 2`."""
def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
def digamma(x: Any) -> Tensor:
    """The derivative of `lgamma`."""
def divide(x: Any, other: Any) -> Tensor:
    """The quotient of two tensors, with broadcasting; integers are divided as floats."""
def entr(x: Any) -> Tensor:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""
def equal(x: Any, other: Any) -> Tensor:
    """Whether elements are equal, with broadcasting."""
def erf(x: Any) -> Tensor:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`."""
def erfc(x: Any) -> Tensor:
    """`1 - erf(x)`, accurate where that is tiny."""
def erfinv(x: Any) -> Tensor:
    """The inverse of `erf`."""
def exp(x: Any) -> Tensor:
    """`e` to the power of every element."""
def exp2(x: Any) -> Tensor:
    """2 to the power of each element."""
def expm1(x: Any) -> Tensor:
    """`exp(x) - 1`, accurate near 0."""
def floor(x: Any) -> Tensor:
    """The greatest integer that is not greater than an element."""
def floor_divide(x: Any, other: Any) -> Tensor:
    """The quotient of two tensors, rounded down, with broadcasting."""
def fmax(x: Any, other: Any) -> Tensor:
    """The larger one; if one is NaN, the other."""
def fmin(x: Any, other: Any) -> Tensor:
    """The smaller one; if one is NaN, the other."""
def fmod(x: Any, other: Any) -> Tensor:
    """What a division rounded towards 0 leaves: the sign is that of the dividend."""
def greater(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are greater, with broadcasting."""
def greater_equal(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are greater or equal, with broadcasting."""
def heaviside(x: Any, other: Any) -> Tensor:
    """0 for negative `x`, 1 for positive, `y` where `x` is 0; NaN stays."""
def hypot(x: Any, other: Any) -> Tensor:
    """`sqrt(x * x + y * y)`, without overflow, with broadcasting."""
def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def i0e(x: Any) -> Tensor:
    """`i0(x) * exp(-abs(x))`."""
def i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def i1e(x: Any) -> Tensor:
    """`i1(x) * exp(-abs(x))`."""
def identity(x: Any) -> Tensor:
    """A tensor equal to another."""
def isfinite(x: Any) -> Tensor:
    """Whether an element is a number and not infinite."""
def isinf(x: Any) -> Tensor:
    """Whether an element is infinite."""
def isnan(x: Any) -> Tensor:
    """Whether an element is NaN."""
def left_shift(x: Any, other: Any) -> Tensor:
    """Integers with their bits shifted to the left: `x * 2**count`."""
def less(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are less, with broadcasting."""
def less_equal(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are less or equal, with broadcasting."""
def lgamma(x: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
def log(x: Any) -> Tensor:
    """The natural logarithm of every element."""
def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
def log1p(x: Any) -> Tensor:
    """`log(1 + x)`, accurate near 0."""
def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
def log_ndtr(x: Any) -> Tensor:
    """The logarithm of `ndtr`, accurate near 0 and 1."""
def logaddexp(x: Any, other: Any) -> Tensor:
    """`log(exp(x) + exp(y))`, without overflow, with broadcasting."""
def logaddexp2(x: Any, other: Any) -> Tensor:
    """`log2(2**x + 2**y)`, without overflow, with broadcasting."""
def logical_and(x: Any, other: Any) -> Tensor:
    """Whether both elements are true; numbers other than 0 are."""
def logical_not(x: Any) -> Tensor:
    """Whether an element is 0, or false."""
def logical_or(x: Any, other: Any) -> Tensor:
    """Whether an element or both are true; numbers other than 0 are."""
def logical_xor(x: Any, other: Any) -> Tensor:
    """Whether exactly one element is true; numbers other than 0 are."""
def maximum(x: Any, other: Any) -> Tensor:
    """The larger of two elements, with broadcasting; NaN wins."""
def minimum(x: Any, other: Any) -> Tensor:
    """The smaller of two elements, with broadcasting; NaN wins."""
def multiply(x: Any, other: Any) -> Tensor:
    """The product of two tensors, element by element, with broadcasting."""
def ndtr(x: Any) -> Tensor:
    """The normal cumulative distribution function, accurate in both tails."""
def negative(x: Any) -> Tensor:
    """Every element with the other sign."""
def nextafter(x: Any, other: Any) -> Tensor:
    """The next floating-point number after the first, towards the second."""
def not_equal(x: Any, other: Any) -> Tensor:
    """Whether elements differ, with broadcasting."""
def power(x: Any, other: Any) -> Tensor:
    """The first tensor to the power of the second, with broadcasting."""
def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
def reciprocal(x: Any) -> Tensor:
    """1 divided by every element."""
def relu(x: Any) -> Tensor:
    """Every element, or 0 where it is negative."""
def relu6(x: Any) -> Tensor:
    """Every element, clipped to [0, 6]."""
def remainder(x: Any, other: Any) -> Tensor:
    """What a division rounded down leaves: the sign is that of the divisor."""
def right_shift(x: Any, other: Any) -> Tensor:
    """Integers with their bits shifted to the right: `x / 2**count`, rounded down."""
def round(x: Any) -> Tensor:
    """The nearest integer; halves round to even."""
def rsqrt(x: Any) -> Tensor:
    """`1 / sqrt(x)`."""
def selu(x: Any) -> Tensor:
    """`elu`, scaled so that activations keep their variance (Klambauer et al., 2017)."""
def sigmoid(x: Any) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`."""
def sign(x: Any) -> Tensor:
    """-1, 0 or 1 by the sign; for complex numbers `x / abs(x)`, and 0 at 0."""
def signbit(x: Any) -> Tensor:
    """Whether the sign is negative, -0 included."""
def silu(x: Any) -> Tensor:
    """`x * sigmoid(x)`."""
def sin(x: Any) -> Tensor:
    """The sine of every element, an angle in radians."""
def sinc(x: Any) -> Tensor:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers."""
def sinh(x: Any) -> Tensor:
    """The hyperbolic sine: `(exp(x) - exp(-x)) / 2`."""
def softplus(x: Any) -> Tensor:
    """`log(1 + exp(x))`, a smooth `relu`."""
def sqrt(x: Any) -> Tensor:
    """The square root of every element; NaN for negative numbers."""
def square(x: Any) -> Tensor:
    """The square of every element; for booleans an integer."""
def subtract(x: Any, other: Any) -> Tensor:
    """The difference of two tensors, with broadcasting."""
def tan(x: Any) -> Tensor:
    """The tangent of every element, an angle in radians."""
def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent: `sinh(x) / cosh(x)`."""
def trunc(x: Any) -> Tensor:
    """Every element without its fraction: rounded towards 0."""
def xlog1py(x: Any, other: Any) -> Tensor:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""
def xlogy(x: Any, other: Any) -> Tensor:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN."""
def function_of(source: Any) -> Any:
    """The function `weft.NAME` of an operation or formula: written by hand, else built here."""
def built(name: builtins.str, source: Any) -> Any:
    """The function of tensors that a face tells, without options."""

__all__ = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "left_shift",
    "right_shift",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sigmoid",
    "softplus",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erfinv",
    "identity",
    "relu",
    "relu6",
    "selu",
    "silu",
    "add",
    "subtract",
    "multiply",
    "divide",
    "negative",
    "square",
    "reciprocal",
    "floor_divide",
    "remainder",
    "fmod",
    "power",
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "maximum",
    "minimum",
    "conj",
    "angle",
    "lgamma",
    "digamma",
    "ndtr",
    "log_ndtr",
    "signbit",
    "copysign",
    "nextafter",
    "log2",
    "log10",
    "exp2",
    "cbrt",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "fmax",
    "fmin",
    "heaviside",
    "xlogy",
    "entr",
    "deg2rad",
    "rad2deg",
    "sinc",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "xlog1py",
]
