"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.tf1.framework.tensor import Tensor

def built(source: Any) -> Any:
    """TensorFlow's function of an operation or formula, with `name=` for the node."""

def equal(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements are equal, with broadcasting."""

def not_equal(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements differ, with broadcasting."""

def less(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements of the first are less, with broadcasting."""

def less_equal(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements of the first are less or equal, with broadcasting."""

def greater(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements of the first are greater, with broadcasting."""

def greater_equal(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether elements of the first are greater or equal, with broadcasting."""

def is_nan(x: Any, name: str | None = ...) -> Tensor:
    """Whether an element is NaN."""

def is_inf(x: Any, name: str | None = ...) -> Tensor:
    """Whether an element is infinite."""

def is_finite(x: Any, name: str | None = ...) -> Tensor:
    """Whether an element is a number and not infinite."""

def logical_and(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether both elements are true; numbers other than 0 are."""

def logical_or(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Whether an element or both are true; numbers other than 0 are."""

def logical_not(x: Any, name: str | None = ...) -> Tensor:
    """Whether an element is 0, or false."""

def bitwise_and(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The bits that both integers have; for booleans, whether both are true."""

def bitwise_or(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The bits that one integer or both have; for booleans, whether one is true."""

def bitwise_xor(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The bits in which two integers differ; for booleans, whether they differ."""

def invert(x: Any, name: str | None = ...) -> Tensor:
    """Integers with every bit inverted, which is `-x - 1`; for booleans, not."""

def left_shift(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Integers with their bits shifted to the left: `x * 2**count`."""

def right_shift(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """Integers with their bits shifted to the right: `x / 2**count`, rounded down."""

def exp(x: Any, name: str | None = ...) -> Tensor:
    """`e` to the power of every element."""

def expm1(x: Any, name: str | None = ...) -> Tensor:
    """`exp(x) - 1`, accurate near 0."""

def log(x: Any, name: str | None = ...) -> Tensor:
    """The natural logarithm of every element."""

def log1p(x: Any, name: str | None = ...) -> Tensor:
    """`log(1 + x)`, accurate near 0."""

def sigmoid(x: Any, name: str | None = ...) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`."""

def softplus(features: Any, name: str | None = ...) -> Tensor:
    """`log(1 + exp(x))`, a smooth `relu`."""

def sqrt(x: Any, name: str | None = ...) -> Tensor:
    """The square root of every element; NaN for negative numbers."""

def rsqrt(x: Any, name: str | None = ...) -> Tensor:
    """`1 / sqrt(x)`."""

def sin(x: Any, name: str | None = ...) -> Tensor:
    """The sine of every element, an angle in radians."""

def cos(x: Any, name: str | None = ...) -> Tensor:
    """The cosine of every element, an angle in radians."""

def tan(x: Any, name: str | None = ...) -> Tensor:
    """The tangent of every element, an angle in radians."""

def asin(x: Any, name: str | None = ...) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""

def acos(x: Any, name: str | None = ...) -> Tensor:
    """The inverse cosine, in [0, pi]."""

def atan(x: Any, name: str | None = ...) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""

def atan2(y: Any, x: Any, name: str | None = ...) -> Tensor:
    """The angle of the point (second, first) in (-pi, pi], with broadcasting."""

def sinh(x: Any, name: str | None = ...) -> Tensor:
    """The hyperbolic sine: `(exp(x) - exp(-x)) / 2`."""

def cosh(x: Any, name: str | None = ...) -> Tensor:
    """The hyperbolic cosine: `(exp(x) + exp(-x)) / 2`."""

def tanh(x: Any, name: str | None = ...) -> Tensor:
    """The hyperbolic tangent: `sinh(x) / cosh(x)`."""

def asinh(x: Any, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic sine."""

def acosh(x: Any, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""

def atanh(x: Any, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic tangent; NaN beyond -1 and 1."""

def erf(x: Any, name: str | None = ...) -> Tensor:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`."""

def erfc(x: Any, name: str | None = ...) -> Tensor:
    """`1 - erf(x)`, accurate where that is tiny."""

def relu(features: Any, name: str | None = ...) -> Tensor:
    """Every element, or 0 where it is negative."""

def relu6(features: Any, name: str | None = ...) -> Tensor:
    """Every element, clipped to [0, 6]."""

def elu(features: Any, name: str | None = ...) -> Tensor:
    """Every element, or `alpha * (exp(x) - 1)` where it is negative."""

def selu(features: Any, name: str | None = ...) -> Tensor:
    """`elu`, scaled so that activations keep their variance (Klambauer et al., 2017)."""

def swish(features: Any, name: str | None = ...) -> Tensor:
    """`x * sigmoid(x)`."""

def add(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The sum of two tensors, with broadcasting."""

def subtract(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The difference of two tensors, with broadcasting."""

def multiply(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The product of two tensors, element by element, with broadcasting."""

def negative(x: Any, name: str | None = ...) -> Tensor:
    """Every element with the other sign."""

def square(x: Any, name: str | None = ...) -> Tensor:
    """The square of every element; for booleans an integer."""

def reciprocal(x: Any, name: str | None = ...) -> Tensor:
    """1 divided by every element."""

def floormod(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """What a division rounded down leaves: the sign is that of the divisor."""

def mod(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """What a division rounded down leaves: the sign is that of the divisor."""

def truncatemod(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """What a division rounded towards 0 leaves: the sign is that of the dividend."""

def abs(x: Any, name: str | None = ...) -> Tensor:
    """The absolute value of every element."""

def sign(x: Any, name: str | None = ...) -> Tensor:
    """-1, 0 or 1 by the sign; for complex numbers `x / abs(x)`, and 0 at 0."""

def floor(x: Any, name: str | None = ...) -> Tensor:
    """The greatest integer that is not greater than an element."""

def ceil(x: Any, name: str | None = ...) -> Tensor:
    """The least integer that is not less than an element."""

def rint(x: Any, name: str | None = ...) -> Tensor:
    """The nearest integer; halves round to even."""

def maximum(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The larger of two elements, with broadcasting; NaN wins."""

def minimum(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """The smaller of two elements, with broadcasting; NaN wins."""

def truncatediv(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y`, rounded towards 0."""

def floordiv(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y`, rounded down."""

def floor_div(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y`, rounded down."""

def div_no_nan(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y`, or 0 where `y` is 0."""

def squared_difference(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`(x - y) * (x - y)`; of complex numbers the square of the absolute value, as they are."""

def multiply_no_nan(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x * y`, and 0 where `y` is 0, even if `x` is NaN or infinite."""

def real(input: Any, name: str | None = ...) -> Tensor:
    """The real parts; real numbers are returned as they are."""

def imag(input: Any, name: str | None = ...) -> Tensor:
    """The imaginary parts; 0 for real numbers."""

def conj(x: Any, name: str | None = ...) -> Tensor:
    """The complex conjugates; real numbers are returned as they are."""

def angle(input: Any, name: str | None = ...) -> Tensor:
    """The angle from the positive real axis, in (-pi, pi]."""

def softsign(features: Any, name: str | None = ...) -> Tensor:
    """`x / (1 + |x|)`."""

def log_sigmoid(x: Any, name: str | None = ...) -> Tensor:
    """`log(sigmoid(x))`, which stays finite for every finite `x`."""

def lgamma(x: Any, name: str | None = ...) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def digamma(x: Any, name: str | None = ...) -> Tensor:
    """The derivative of `lgamma`."""

def cumsum(x: Any, axis: Any = ..., exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Tensor:
    """Cumulative sums along an axis; int64 for integers."""

def cumprod(x: Any, axis: Any = ..., exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Tensor:
    """Cumulative products along an axis; int64 for integers."""

__all__ = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "is_nan",
    "is_inf",
    "is_finite",
    "logical_and",
    "logical_or",
    "logical_not",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sigmoid",
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
    "add",
    "subtract",
    "multiply",
    "negative",
    "square",
    "reciprocal",
    "floormod",
    "mod",
    "abs",
    "sign",
    "floor",
    "ceil",
    "rint",
    "maximum",
    "minimum",
    "floordiv",
    "div_no_nan",
    "squared_difference",
    "real",
    "imag",
    "conj",
    "angle",
    "log_sigmoid",
    "lgamma",
    "digamma",
    "cumsum",
    "cumprod",
]
