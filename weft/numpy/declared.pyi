"""Made by `python -m tools.stubs`."""

from typing import Any
from collections.abc import Callable
from weft.numpy.array import ndarray

def of_one(function: Callable[[Any], Any]) -> Callable[[Any], ndarray]:
    """A unary function of tensors as one of arguments that can be converted to arrays."""

def of_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], ndarray]:
    """A binary function of tensors as one of arguments that can be converted to arrays."""

def built(source: Any) -> list[Callable[..., ndarray]]:
    """The functions of an operation or formula, by name in its face; the last for further names."""

def cumulative_names() -> list[str]:
    """The cumulative functions that are methods, too."""

def equal(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements are equal, with broadcasting."""

def not_equal(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements differ, with broadcasting."""

def less(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements of the first are less, with broadcasting."""

def less_equal(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements of the first are less or equal, with broadcasting."""

def greater(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements of the first are greater, with broadcasting."""

def greater_equal(x1: Any, x2: Any, /) -> ndarray:
    """Whether elements of the first are greater or equal, with broadcasting."""

def isnan(x: Any, /) -> ndarray:
    """Whether an element is NaN."""

def isinf(x: Any, /) -> ndarray:
    """Whether an element is infinite."""

def isfinite(x: Any, /) -> ndarray:
    """Whether an element is a number and not infinite."""

def logical_and(x1: Any, x2: Any, /) -> ndarray:
    """Whether both elements are true; numbers other than 0 are."""

def logical_or(x1: Any, x2: Any, /) -> ndarray:
    """Whether an element or both are true; numbers other than 0 are."""

def logical_xor(x1: Any, x2: Any, /) -> ndarray:
    """Whether exactly one element is true; numbers other than 0 are."""

def logical_not(x: Any, /) -> ndarray:
    """Whether an element is 0, or false."""

def bitwise_and(x1: Any, x2: Any, /) -> ndarray:
    """The bits that both integers have; for booleans, whether both are true."""

def bitwise_or(x1: Any, x2: Any, /) -> ndarray:
    """The bits that one integer or both have; for booleans, whether one is true."""

def bitwise_xor(x1: Any, x2: Any, /) -> ndarray:
    """The bits in which two integers differ; for booleans, whether they differ."""

def bitwise_invert(x: Any, /) -> ndarray:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not."""

def bitwise_not(x: Any, /) -> ndarray:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not."""

def invert(x: Any, /) -> ndarray:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not."""

def bitwise_left_shift(x1: Any, x2: Any, /) -> ndarray:
    """Integers with their bits shifted to the left: `x * 2**count`."""

def left_shift(x1: Any, x2: Any, /) -> ndarray:
    """Integers with their bits shifted to the left: `x * 2**count`."""

def bitwise_right_shift(x1: Any, x2: Any, /) -> ndarray:
    """Integers with their bits shifted to the right: `x / 2**count`, rounded down."""

def right_shift(x1: Any, x2: Any, /) -> ndarray:
    """Integers with their bits shifted to the right: `x / 2**count`, rounded down."""

def exp(x: Any, /) -> ndarray:
    """`e` to the power of every element."""

def expm1(x: Any, /) -> ndarray:
    """`exp(x) - 1`, accurate near 0."""

def log(x: Any, /) -> ndarray:
    """The natural logarithm of every element."""

def log1p(x: Any, /) -> ndarray:
    """`log(1 + x)`, accurate near 0."""

def sqrt(x: Any, /) -> ndarray:
    """The square root of every element; NaN for negative numbers."""

def sin(x: Any, /) -> ndarray:
    """The sine of every element, an angle in radians."""

def cos(x: Any, /) -> ndarray:
    """The cosine of every element, an angle in radians."""

def tan(x: Any, /) -> ndarray:
    """The tangent of every element, an angle in radians."""

def asin(x: Any, /) -> ndarray:
    """The inverse sine, in [-pi/2, pi/2]."""

def arcsin(x: Any, /) -> ndarray:
    """The inverse sine, in [-pi/2, pi/2]."""

def acos(x: Any, /) -> ndarray:
    """The inverse cosine, in [0, pi]."""

def arccos(x: Any, /) -> ndarray:
    """The inverse cosine, in [0, pi]."""

def atan(x: Any, /) -> ndarray:
    """The inverse tangent, in [-pi/2, pi/2]."""

def arctan(x: Any, /) -> ndarray:
    """The inverse tangent, in [-pi/2, pi/2]."""

def atan2(x1: Any, x2: Any, /) -> ndarray:
    """The angle of the point (second, first) in (-pi, pi], with broadcasting."""

def arctan2(x1: Any, x2: Any, /) -> ndarray:
    """The angle of the point (second, first) in (-pi, pi], with broadcasting."""

def sinh(x: Any, /) -> ndarray:
    """The hyperbolic sine: `(exp(x) - exp(-x)) / 2`."""

def cosh(x: Any, /) -> ndarray:
    """The hyperbolic cosine: `(exp(x) + exp(-x)) / 2`."""

def tanh(x: Any, /) -> ndarray:
    """The hyperbolic tangent: `sinh(x) / cosh(x)`."""

def asinh(x: Any, /) -> ndarray:
    """The inverse hyperbolic sine."""

def arcsinh(x: Any, /) -> ndarray:
    """The inverse hyperbolic sine."""

def acosh(x: Any, /) -> ndarray:
    """The inverse hyperbolic cosine; NaN below 1."""

def arccosh(x: Any, /) -> ndarray:
    """The inverse hyperbolic cosine; NaN below 1."""

def atanh(x: Any, /) -> ndarray:
    """The inverse hyperbolic tangent; NaN beyond -1 and 1."""

def arctanh(x: Any, /) -> ndarray:
    """The inverse hyperbolic tangent; NaN beyond -1 and 1."""

def positive(x: Any, /) -> ndarray:
    """A tensor equal to another."""

def add(x1: Any, x2: Any, /) -> ndarray:
    """The sum of two tensors, with broadcasting."""

def subtract(x1: Any, x2: Any, /) -> ndarray:
    """The difference of two tensors, with broadcasting."""

def multiply(x1: Any, x2: Any, /) -> ndarray:
    """The product of two tensors, element by element, with broadcasting."""

def divide(x1: Any, x2: Any, /) -> ndarray:
    """The quotient of two tensors, with broadcasting; integers are divided as floats."""

def true_divide(x1: Any, x2: Any, /) -> ndarray:
    """The quotient of two tensors, with broadcasting; integers are divided as floats."""

def negative(x: Any, /) -> ndarray:
    """Every element with the other sign."""

def square(x: Any, /) -> ndarray:
    """The square of every element; for booleans an integer."""

def floor_divide(x1: Any, x2: Any, /) -> ndarray:
    """The quotient of two tensors, rounded down, with broadcasting."""

def remainder(x1: Any, x2: Any, /) -> ndarray:
    """What a division rounded down leaves: the sign is that of the divisor."""

def mod(x1: Any, x2: Any, /) -> ndarray:
    """What a division rounded down leaves: the sign is that of the divisor."""

def fmod(x1: Any, x2: Any, /) -> ndarray:
    """What a division rounded towards 0 leaves: the sign is that of the dividend."""

def abs(x: Any, /) -> ndarray:
    """The absolute value of every element."""

def absolute(x: Any, /) -> ndarray:
    """The absolute value of every element."""

def fabs(x: Any, /) -> ndarray:
    """The absolute value of every element."""

def sign(x: Any, /) -> ndarray:
    """-1, 0 or 1 by the sign; for complex numbers `x / abs(x)`, and 0 at 0."""

def floor(x: Any, /) -> ndarray:
    """The greatest integer that is not greater than an element."""

def ceil(x: Any, /) -> ndarray:
    """The least integer that is not less than an element."""

def trunc(x: Any, /) -> ndarray:
    """Every element without its fraction: rounded towards 0."""

def fix(x: Any, /) -> ndarray:
    """Every element without its fraction: rounded towards 0."""

def maximum(x1: Any, x2: Any, /) -> ndarray:
    """The larger of two elements, with broadcasting; NaN wins."""

def minimum(x1: Any, x2: Any, /) -> ndarray:
    """The smaller of two elements, with broadcasting; NaN wins."""

def conj(x: Any, /) -> ndarray:
    """The complex conjugates; real numbers are returned as they are."""

def conjugate(x: Any, /) -> ndarray:
    """The complex conjugates; real numbers are returned as they are."""

def signbit(x: Any, /) -> ndarray:
    """Whether the sign is negative, -0 included."""

def copysign(x1: Any, x2: Any, /) -> ndarray:
    """The magnitudes of the first with the signs of the second, with broadcasting."""

def nextafter(x1: Any, x2: Any, /) -> ndarray:
    """The next floating-point number after the first, towards the second."""

def log2(x: Any, /) -> ndarray:
    """The logarithm to base 2."""

def log10(x: Any, /) -> ndarray:
    """The logarithm to base 10."""

def exp2(x: Any, /) -> ndarray:
    """2 to the power of each element."""

def cbrt(x: Any, /) -> ndarray:
    """The cube root, negative for negative numbers."""

def hypot(x1: Any, x2: Any, /) -> ndarray:
    """`sqrt(x * x + y * y)`, without overflow, with broadcasting."""

def logaddexp(x1: Any, x2: Any, /) -> ndarray:
    """`log(exp(x) + exp(y))`, without overflow, with broadcasting."""

def logaddexp2(x1: Any, x2: Any, /) -> ndarray:
    """`log2(2**x + 2**y)`, without overflow, with broadcasting."""

def fmax(x1: Any, x2: Any, /) -> ndarray:
    """The larger one; if one is NaN, the other."""

def fmin(x1: Any, x2: Any, /) -> ndarray:
    """The smaller one; if one is NaN, the other."""

def heaviside(x1: Any, x2: Any, /) -> ndarray:
    """0 for negative `x`, 1 for positive, `y` where `x` is 0; NaN stays."""

def deg2rad(x: Any, /) -> ndarray:
    """Degrees as radians."""

def radians(x: Any, /) -> ndarray:
    """Degrees as radians."""

def rad2deg(x: Any, /) -> ndarray:
    """Radians as degrees."""

def degrees(x: Any, /) -> ndarray:
    """Radians as degrees."""

def sinc(x: Any, /) -> ndarray:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers."""

def cumsum(a: Any, axis: int | None = ..., dtype: Any = ...) -> ndarray:
    """Cumulative sums along an axis; int64 for integers."""

def cumulative_sum(x: Any, /, *, axis: int | None = ..., dtype: Any = ..., include_initial: bool = ...) -> ndarray:
    """Cumulative sums along an axis; int64 for integers."""

def cumprod(a: Any, axis: int | None = ..., dtype: Any = ...) -> ndarray:
    """Cumulative products along an axis; int64 for integers."""

def cumulative_prod(x: Any, /, *, axis: int | None = ..., dtype: Any = ..., include_initial: bool = ...) -> ndarray:
    """Cumulative products along an axis; int64 for integers."""

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
    "bitwise_invert",
    "bitwise_not",
    "invert",
    "bitwise_left_shift",
    "left_shift",
    "bitwise_right_shift",
    "right_shift",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "arcsin",
    "acos",
    "arccos",
    "atan",
    "arctan",
    "atan2",
    "arctan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "arcsinh",
    "acosh",
    "arccosh",
    "atanh",
    "arctanh",
    "positive",
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "negative",
    "square",
    "floor_divide",
    "remainder",
    "mod",
    "fmod",
    "abs",
    "absolute",
    "fabs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "fix",
    "maximum",
    "minimum",
    "conj",
    "conjugate",
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
    "deg2rad",
    "radians",
    "rad2deg",
    "degrees",
    "sinc",
    "cumsum",
    "cumulative_sum",
    "cumprod",
    "cumulative_prod",
]
