"""Made by `python -m tools.stubs`."""

from typing import Any
from collections.abc import Callable
from weft.eager.tensor.tensor import Tensor

def function_of(source: Any) -> Callable[..., Any]:
    """The function `weft.NAME` of an operation or formula: written by hand, else built here."""

def built(name: str, source: Any) -> Callable[..., Any]:
    """The function of tensors that a face tells, without options."""

def equal(x: Any, other: Any) -> Tensor:
    """Whether elements are equal, with broadcasting.

    >>> wf.eq(wf.tensor([1, 2]), wf.tensor([1, 3]))
    tensor([ True, False])
    """

def not_equal(x: Any, other: Any) -> Tensor:
    """Whether elements differ, with broadcasting.

    >>> wf.ne(wf.tensor([1, 2]), wf.tensor([1, 3]))
    tensor([False,  True])
    """

def less(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are less, with broadcasting.

    >>> wf.lt(wf.tensor([1, 2]), 2)
    tensor([ True, False])
    """

def less_equal(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are less or equal, with broadcasting.

    >>> wf.le(wf.tensor([1, 2]), 1)
    tensor([ True, False])
    """

def greater(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are greater, with broadcasting.

    >>> wf.gt(wf.tensor([1, 2]), 1)
    tensor([False,  True])
    """

def greater_equal(x: Any, other: Any) -> Tensor:
    """Whether elements of the first are greater or equal, with broadcasting.

    >>> wf.ge(wf.tensor([1, 2]), 2)
    tensor([False,  True])
    """

def isnan(x: Any) -> Tensor:
    """Whether an element is NaN.

    >>> wf.isnan(wf.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """

def isinf(x: Any) -> Tensor:
    """Whether an element is infinite.

    >>> wf.isinf(wf.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """

def isfinite(x: Any) -> Tensor:
    """Whether an element is a number and not infinite.

    >>> wf.isfinite(wf.tensor([1.0, float("inf")]))
    tensor([ True, False])
    """

def logical_and(x: Any, other: Any) -> Tensor:
    """Whether both elements are true; numbers other than 0 are.

    >>> wf.logical_and(wf.tensor([0, 1]), wf.tensor([2, 3]))
    tensor([False,  True])
    """

def logical_or(x: Any, other: Any) -> Tensor:
    """Whether an element or both are true; numbers other than 0 are.

    >>> wf.logical_or(wf.tensor([0, 0]), wf.tensor([0, 3]))
    tensor([False,  True])
    """

def logical_xor(x: Any, other: Any) -> Tensor:
    """Whether exactly one element is true; numbers other than 0 are.

    >>> wf.logical_xor(wf.tensor([0, 1]), wf.tensor([2, 3]))
    tensor([ True, False])
    """

def logical_not(x: Any) -> Tensor:
    """Whether an element is 0, or false.

    >>> wf.logical_not(wf.tensor([0, 2]))
    tensor([ True, False])
    """

def bitwise_and(x: Any, other: Any) -> Tensor:
    """The bits that both integers have; for booleans, whether both are true.

    >>> wf.bitwise_and(wf.tensor([6, 5]), 3)
    tensor([2, 1])
    """

def bitwise_or(x: Any, other: Any) -> Tensor:
    """The bits that one integer or both have; for booleans, whether one is true.

    >>> wf.bitwise_or(wf.tensor([6, 5]), 3)
    tensor([7, 7])
    """

def bitwise_xor(x: Any, other: Any) -> Tensor:
    """The bits in which two integers differ; for booleans, whether they differ.

    >>> wf.bitwise_xor(wf.tensor([6, 5]), 3)
    tensor([5, 6])
    """

def bitwise_not(x: Any) -> Tensor:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not.

    >>> wf.bitwise_not(wf.tensor([0, 5]))
    tensor([-1, -6])
    """

def left_shift(x: Any, other: Any) -> Tensor:
    """Integers with their bits shifted to the left: `x * 2**count`.

    >>> wf.left_shift(wf.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """

def right_shift(x: Any, other: Any) -> Tensor:
    """Integers with their bits shifted to the right: `x / 2**count`, rounded down.

    >>> wf.right_shift(wf.tensor([4, -7]), 2)
    tensor([ 1, -2])
    """

def exp(x: Any) -> Tensor:
    """`e` to the power of every element.

    >>> wf.exp(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

def expm1(x: Any) -> Tensor:
    """`exp(x) - 1`, accurate near 0.

    >>> wf.expm1(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """

def log(x: Any) -> Tensor:
    """The natural logarithm of every element.

    >>> wf.log(wf.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """

def log1p(x: Any) -> Tensor:
    """`log(1 + x)`, accurate near 0.

    >>> wf.log1p(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """

def sigmoid(x: Any) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`.

    >>> wf.sigmoid(wf.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

def softplus(x: Any) -> Tensor:
    """`log(1 + exp(x))`, a smooth `relu`.

    >>> wf.softplus(wf.tensor([0.0, 20.0]))
    tensor([ 0.6931, 20.0000])
    """

def sqrt(x: Any) -> Tensor:
    """The square root of every element; NaN for negative numbers.

    >>> wf.sqrt(wf.tensor([4.0, 2.0]))
    tensor([2.0000, 1.4142])
    """

def rsqrt(x: Any) -> Tensor:
    """`1 / sqrt(x)`.

    >>> wf.rsqrt(wf.tensor([4.0, 2.0]))
    tensor([0.5000, 0.7071])
    """

def sin(x: Any) -> Tensor:
    """The sine of every element, an angle in radians.

    >>> wf.sin(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """

def cos(x: Any) -> Tensor:
    """The cosine of every element, an angle in radians.

    >>> wf.cos(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """

def tan(x: Any) -> Tensor:
    """The tangent of every element, an angle in radians.

    >>> wf.tan(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """

def asin(x: Any) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2].

    >>> wf.asin(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """

def acos(x: Any) -> Tensor:
    """The inverse cosine, in [0, pi].

    >>> wf.acos(wf.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """

def atan(x: Any) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2].

    >>> wf.atan(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """

def atan2(x: Any, other: Any) -> Tensor:
    """The angle of the point (second, first) in (-pi, pi], with broadcasting.

    >>> wf.atan2(wf.tensor([1.0, -1.0]), wf.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """

def sinh(x: Any) -> Tensor:
    """The hyperbolic sine: `(exp(x) - exp(-x)) / 2`.

    >>> wf.sinh(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """

def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine: `(exp(x) + exp(-x)) / 2`.

    >>> wf.cosh(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """

def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent: `sinh(x) / cosh(x)`.

    >>> wf.tanh(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

def asinh(x: Any) -> Tensor:
    """The inverse hyperbolic sine.

    >>> wf.asinh(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """

def acosh(x: Any) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1.

    >>> wf.acosh(wf.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """

def atanh(x: Any) -> Tensor:
    """The inverse hyperbolic tangent; NaN beyond -1 and 1.

    >>> wf.atanh(wf.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """

def erf(x: Any) -> Tensor:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`.

    >>> wf.erf(wf.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5205])
    """

def erfc(x: Any) -> Tensor:
    """`1 - erf(x)`, accurate where that is tiny.

    >>> wf.erfc(wf.tensor([0.0, 2.0]))
    tensor([1.0000, 0.0047])
    """

def erfinv(x: Any) -> Tensor:
    """The inverse of `erf`.

    >>> wf.erfinv(wf.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """

def identity(x: Any) -> Tensor:
    """A tensor equal to another.

    >>> wf.positive(wf.tensor([1, -2]))
    tensor([ 1, -2])
    """

def relu(x: Any) -> Tensor:
    """Every element, or 0 where it is negative.

    >>> wf.relu(wf.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

def relu6(x: Any) -> Tensor:
    """Every element, clipped to [0, 6].

    >>> wf.relu6(wf.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

def selu(x: Any) -> Tensor:
    """`elu`, scaled so that activations keep their variance (Klambauer et al., 2017).

    >>> wf.selu(wf.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

def silu(x: Any) -> Tensor:
    """`x * sigmoid(x)`.

    >>> wf.silu(wf.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

def add(x: Any, other: Any) -> Tensor:
    """The sum of two tensors, with broadcasting.

    >>> wf.add(wf.tensor([1, 2]), wf.tensor([3, 4]))
    tensor([4, 6])
    """

def subtract(x: Any, other: Any) -> Tensor:
    """The difference of two tensors, with broadcasting.

    >>> wf.sub(wf.tensor([1, 2]), 3)
    tensor([-2, -1])
    """

def multiply(x: Any, other: Any) -> Tensor:
    """The product of two tensors, element by element, with broadcasting.

    >>> wf.mul(wf.tensor([1, 2]), wf.tensor([3, 4]))
    tensor([3, 8])
    """

def divide(x: Any, other: Any) -> Tensor:
    """The quotient of two tensors, with broadcasting; integers are divided as floats.

    >>> wf.div(wf.tensor([1, 2]), 4)
    tensor([0.2500, 0.5000])
    """

def negative(x: Any) -> Tensor:
    """Every element with the other sign.

    >>> wf.neg(wf.tensor([1, -2]))
    tensor([-1,  2])
    """

def square(x: Any) -> Tensor:
    """The square of every element; for booleans an integer.

    >>> wf.square(wf.tensor([2, -3]))
    tensor([4, 9])
    """

def reciprocal(x: Any) -> Tensor:
    """1 divided by every element.

    >>> wf.reciprocal(wf.tensor([2.0, -4.0]))
    tensor([ 0.5000, -0.2500])
    """

def floor_divide(x: Any, other: Any) -> Tensor:
    """The quotient of two tensors, rounded down, with broadcasting.

    >>> wf.floor_divide(wf.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """

def remainder(x: Any, other: Any) -> Tensor:
    """What a division rounded down leaves: the sign is that of the divisor.

    >>> wf.remainder(wf.tensor([7, -7]), 3)
    tensor([1, 2])
    """

def fmod(x: Any, other: Any) -> Tensor:
    """What a division rounded towards 0 leaves: the sign is that of the dividend.

    >>> wf.fmod(wf.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """

def power(x: Any, other: Any) -> Tensor:
    """The first tensor to the power of the second, with broadcasting.

    >>> wf.pow(wf.tensor([2, 3]), 2)
    tensor([4, 9])
    """

def abs(x: Any) -> Tensor:
    """The absolute value of every element.

    >>> wf.abs(wf.tensor([-2, 3]))
    tensor([2, 3])
    """

def sign(x: Any) -> Tensor:
    """-1, 0 or 1 by the sign; for complex numbers `x / abs(x)`, and 0 at 0.

    >>> wf.sgn(wf.tensor([-2.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """

def floor(x: Any) -> Tensor:
    """The greatest integer that is not greater than an element.

    >>> wf.floor(wf.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """

def ceil(x: Any) -> Tensor:
    """The least integer that is not less than an element.

    >>> wf.ceil(wf.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """

def trunc(x: Any) -> Tensor:
    """Every element without its fraction: rounded towards 0.

    >>> wf.trunc(wf.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """

def round(x: Any) -> Tensor:
    """The nearest integer; halves round to even.

    >>> wf.round(wf.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    """

def maximum(x: Any, other: Any) -> Tensor:
    """The larger of two elements, with broadcasting; NaN wins.

    >>> wf.maximum(wf.tensor([1, 5]), wf.tensor([3, 4]))
    tensor([3, 5])
    """

def minimum(x: Any, other: Any) -> Tensor:
    """The smaller of two elements, with broadcasting; NaN wins.

    >>> wf.minimum(wf.tensor([1, 5]), wf.tensor([3, 4]))
    tensor([1, 4])
    """

def conj(x: Any) -> Tensor:
    """The complex conjugates; real numbers are returned as they are."""

def angle(x: Any) -> Tensor:
    """The angle from the positive real axis, in (-pi, pi]."""

def lgamma(x: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function.

    >>> wf.lgamma(wf.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """

def digamma(x: Any) -> Tensor:
    """The derivative of `lgamma`.

    >>> wf.digamma(wf.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """

def ndtr(x: Any) -> Tensor:
    """The normal cumulative distribution function, accurate in both tails."""

def log_ndtr(x: Any) -> Tensor:
    """The logarithm of `ndtr`, accurate near 0 and 1."""

def xlog1py(x: Any, other: Any) -> Tensor:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""

def signbit(x: Any) -> Tensor:
    """Whether the sign is negative, -0 included.

    >>> wf.signbit(wf.tensor([1.0, -0.0]))
    tensor([False,  True])
    """

def copysign(x: Any, other: Any) -> Tensor:
    """The magnitudes of the first with the signs of the second, with broadcasting.

    >>> wf.copysign(wf.tensor([1.0, -2.0]), -3.0)
    tensor([-1., -2.])
    """

def nextafter(x: Any, other: Any) -> Tensor:
    """The next floating-point number after the first, towards the second."""

def log2(x: Any) -> Tensor:
    """The logarithm to base 2.

    >>> wf.log2(wf.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """

def log10(x: Any) -> Tensor:
    """The logarithm to base 10.

    >>> wf.log10(wf.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """

def exp2(x: Any) -> Tensor:
    """2 to the power of each element.

    >>> wf.exp2(wf.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """

def cbrt(x: Any) -> Tensor:
    """The cube root, negative for negative numbers.

    >>> wf.cbrt(wf.tensor([8.0, -27.0]))
    tensor([ 2., -3.])
    """

def hypot(x: Any, other: Any) -> Tensor:
    """`sqrt(x * x + y * y)`, without overflow, with broadcasting.

    >>> wf.hypot(wf.tensor([3.0, 5.0]), wf.tensor([4.0, 12.0]))
    tensor([ 5.0000, 13.0000])
    """

def logaddexp(x: Any, other: Any) -> Tensor:
    """`log(exp(x) + exp(y))`, without overflow, with broadcasting.

    >>> wf.logaddexp(wf.tensor([0.0]), wf.tensor([0.0]))
    tensor([0.6931])
    """

def logaddexp2(x: Any, other: Any) -> Tensor:
    """`log2(2**x + 2**y)`, without overflow, with broadcasting.

    >>> wf.logaddexp2(wf.tensor([0.0]), wf.tensor([0.0]))
    tensor([1.])
    """

def fmax(x: Any, other: Any) -> Tensor:
    """The larger one; if one is NaN, the other."""

def fmin(x: Any, other: Any) -> Tensor:
    """The smaller one; if one is NaN, the other."""

def heaviside(x: Any, other: Any) -> Tensor:
    """0 for negative `x`, 1 for positive, `y` where `x` is 0; NaN stays."""

def xlogy(x: Any, other: Any) -> Tensor:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN.

    >>> wf.xlogy(wf.tensor([0.0, 2.0]), wf.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """

def entr(x: Any) -> Tensor:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""

def deg2rad(x: Any) -> Tensor:
    """Degrees as radians.

    >>> wf.deg2rad(wf.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """

def rad2deg(x: Any) -> Tensor:
    """Radians as degrees.

    >>> wf.rad2deg(wf.tensor([0.0, 1.0]))
    tensor([ 0.0000, 57.2958])
    """

def sinc(x: Any) -> Tensor:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers.

    >>> wf.sinc(wf.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """

def cumsum(x: Any, dim: Any = ..., *, dtype: Any = ..., axis: Any = ...) -> Tensor:
    """Cumulative sums along an axis; int64 for integers.

    >>> wf.cumsum(wf.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """

def cumprod(x: Any, dim: Any = ..., *, dtype: Any = ..., axis: Any = ...) -> Tensor:
    """Cumulative products along an axis; int64 for integers.

    >>> wf.cumprod(wf.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """

def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> wf.i0(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """

def i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def i0e(x: Any) -> Tensor:
    """`i0(x) * exp(-abs(x))`."""

def i1e(x: Any) -> Tensor:
    """`i1(x) * exp(-abs(x))`."""

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
    "xlog1py",
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
    "cumsum",
    "cumprod",
    "i0",
    "i1",
    "i0e",
    "i1e",
]
