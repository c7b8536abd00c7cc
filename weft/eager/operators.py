"""The operators of tensors, and their methods for arithmetic, comparison, logic and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.eager import arithmetic, elementary, selection
from weft.eager.division import dividing
from weft.eager.family import of_two, takes
from weft.eager.handle import Handle

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor


# As functions of the same names, but of operands that they do not take they are `NotImplemented`
PLUS: Final = of_two("add", operator=True)
MINUS: Final = of_two("subtract", operator=True)
TIMES: Final = of_two("multiply", operator=True)
OVER: Final = of_two("divide", floats=True, operator=True)
OVER_WHOLE: Final = dividing("floor_divide", operator=True)
MODULO: Final = dividing("remainder", operator=True)
AND: Final = of_two("bitwise_and", operator=True)
OR: Final = of_two("bitwise_or", operator=True)
XOR: Final = of_two("bitwise_xor", operator=True)
LEFT: Final = of_two("left_shift", operator=True)
RIGHT: Final = of_two("right_shift", operator=True)


def power_of(x: Any, exponent: Any) -> Any:
    """`x ** exponent`."""
    return arithmetic.power(x, exponent) if takes(x) and takes(exponent) else NotImplemented


class Operators(Handle):
    """`x + y`, `x.add(y)` and the like."""

    __slots__ = ()
    __hash__ = object.__hash__  # by identity: == compares elements

    __add__ = __radd__ = PLUS
    __sub__ = MINUS
    __mul__ = __rmul__ = TIMES
    __truediv__ = OVER
    __floordiv__ = OVER_WHOLE
    __mod__ = MODULO
    __and__ = __rand__ = AND
    __or__ = __ror__ = OR
    __xor__ = __rxor__ = XOR
    __lshift__ = LEFT
    __rshift__ = RIGHT
    __lt__ = of_two("less", operator=True)
    __le__ = of_two("less_equal", operator=True)
    __gt__ = of_two("greater", operator=True)
    __ge__ = of_two("greater_equal", operator=True)
    __eq__: Any = of_two("equal", operator=True)
    __ne__: Any = of_two("not_equal", operator=True)
    __neg__ = elementary.negative
    __pos__ = elementary.positive
    __abs__ = elementary.abs
    __invert__ = elementary.bitwise_not

    def __pow__(self, other: Any) -> Tensor:
        return power_of(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return MINUS(other, self)

    def __rtruediv__(self, other: Any) -> Tensor:
        return OVER(other, self)

    __rdiv__ = __rtruediv__  # as PyTorch calls it

    def __rfloordiv__(self, other: Any) -> Tensor:
        return OVER_WHOLE(other, self)

    def __rmod__(self, other: Any) -> Tensor:
        return MODULO(other, self)

    def __rpow__(self, other: Any) -> Tensor:
        return power_of(other, self)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return arithmetic.floor_divide(self, other), arithmetic.remainder(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return arithmetic.floor_divide(other, self), arithmetic.remainder(other, self)

    def __rlshift__(self, other: Any) -> Tensor:
        return LEFT(other, self)

    def __rrshift__(self, other: Any) -> Tensor:
        return RIGHT(other, self)

    # -- of two tensors

    add = arithmetic.add
    allclose = arithmetic.allclose
    arctan2 = arithmetic.arctan2
    atan2 = arithmetic.atan2
    bitwise_and = arithmetic.bitwise_and
    bitwise_left_shift = arithmetic.bitwise_left_shift
    bitwise_or = arithmetic.bitwise_or
    bitwise_right_shift = arithmetic.bitwise_right_shift
    bitwise_xor = arithmetic.bitwise_xor
    copysign = arithmetic.copysign
    div = arithmetic.div
    divide = arithmetic.divide
    eq = arithmetic.eq
    equal = arithmetic.equal
    float_power = arithmetic.float_power
    floor_divide = arithmetic.floor_divide
    fmax = arithmetic.fmax
    fmin = arithmetic.fmin
    fmod = arithmetic.fmod
    ge = arithmetic.ge
    greater = arithmetic.greater
    greater_equal = arithmetic.greater_equal
    gt = arithmetic.gt
    heaviside = arithmetic.heaviside
    hypot = arithmetic.hypot
    isclose = arithmetic.isclose
    le = arithmetic.le
    left_shift = arithmetic.left_shift
    less = arithmetic.less
    less_equal = arithmetic.less_equal
    logaddexp = arithmetic.logaddexp
    logaddexp2 = arithmetic.logaddexp2
    logical_and = arithmetic.logical_and
    logical_or = arithmetic.logical_or
    logical_xor = arithmetic.logical_xor
    lt = arithmetic.lt
    maximum = arithmetic.maximum
    minimum = arithmetic.minimum
    mul = arithmetic.mul
    multiply = arithmetic.multiply
    ne = arithmetic.ne
    nextafter = arithmetic.nextafter
    not_equal = arithmetic.not_equal
    pow = arithmetic.pow
    power = arithmetic.power
    remainder = arithmetic.remainder
    right_shift = arithmetic.right_shift
    rsub = arithmetic.rsub
    sub = arithmetic.sub
    subtract = arithmetic.subtract
    true_divide = arithmetic.true_divide
    xlogy = arithmetic.xlogy

    # -- of one

    abs = elementary.abs
    absolute = elementary.absolute
    acos = elementary.acos
    acosh = elementary.acosh
    arccos = elementary.arccos
    arccosh = elementary.arccosh
    arcsin = elementary.arcsin
    arcsinh = elementary.arcsinh
    arctan = elementary.arctan
    arctanh = elementary.arctanh
    asin = elementary.asin
    asinh = elementary.asinh
    atan = elementary.atan
    atanh = elementary.atanh
    bitwise_not = elementary.bitwise_not
    cbrt = elementary.cbrt
    ceil = elementary.ceil
    cos = elementary.cos
    cosh = elementary.cosh
    deg2rad = elementary.deg2rad
    erf = elementary.erf
    erfc = elementary.erfc
    erfinv = elementary.erfinv
    exp = elementary.exp
    exp2 = elementary.exp2
    expit = elementary.expit
    expm1 = elementary.expm1
    fix = elementary.fix
    floor = elementary.floor
    frac = elementary.frac
    invert = elementary.invert
    isfinite = elementary.isfinite
    isinf = elementary.isinf
    isnan = elementary.isnan
    isneginf = elementary.isneginf
    isposinf = elementary.isposinf
    log = elementary.log
    log1p = elementary.log1p
    log2 = elementary.log2
    log10 = elementary.log10
    logical_not = elementary.logical_not
    logit = elementary.logit
    nan_to_num = elementary.nan_to_num
    neg = elementary.neg
    negative = elementary.negative
    positive = elementary.positive
    rad2deg = elementary.rad2deg
    reciprocal = elementary.reciprocal

    def polygamma(self, n: int) -> Tensor:
        """The `n`-th derivative of `digamma`."""
        return elementary.polygamma(n, self)

    relu = elementary.relu
    digamma = elementary.digamma
    i0 = elementary.i0
    lgamma = elementary.lgamma
    round = elementary.round
    rsqrt = elementary.rsqrt
    sgn = elementary.sgn
    sigmoid = elementary.sigmoid
    sign = elementary.sign
    signbit = elementary.signbit
    sin = elementary.sin
    sinc = elementary.sinc
    sinh = elementary.sinh
    sqrt = elementary.sqrt
    square = elementary.square
    tan = elementary.tan
    tanh = elementary.tanh
    trunc = elementary.trunc

    # -- of several

    addcdiv = selection.addcdiv
    addcmul = selection.addcmul
    clamp = selection.clamp
    clamp_max = selection.clamp_max
    clamp_min = selection.clamp_min
    clip = selection.clip
    lerp = selection.lerp
    masked_fill = selection.masked_fill
