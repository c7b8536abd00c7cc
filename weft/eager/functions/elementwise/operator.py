"""The operators of tensors, and their methods for arithmetic, comparison, logic and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.elementwise import binary, selection, unary
from weft.eager.functions.elementwise.division import dividing
from weft.eager.functions.elementwise.from_op import of_two, takes
from weft.eager.tensor.handle import Handle

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


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
    return binary.power(x, exponent) if takes(x) and takes(exponent) else NotImplemented


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
    __neg__ = unary.negative
    __pos__ = unary.positive
    __abs__ = unary.abs
    __invert__ = unary.bitwise_not

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
        return binary.floor_divide(self, other), binary.remainder(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return binary.floor_divide(other, self), binary.remainder(other, self)

    def __rlshift__(self, other: Any) -> Tensor:
        return LEFT(other, self)

    def __rrshift__(self, other: Any) -> Tensor:
        return RIGHT(other, self)

    # -- of two tensors

    add = binary.add
    allclose = binary.allclose
    arctan2 = binary.arctan2
    atan2 = binary.atan2
    bitwise_and = binary.bitwise_and
    bitwise_left_shift = binary.bitwise_left_shift
    bitwise_or = binary.bitwise_or
    bitwise_right_shift = binary.bitwise_right_shift
    bitwise_xor = binary.bitwise_xor
    copysign = binary.copysign
    div = binary.div
    divide = binary.divide
    eq = binary.eq
    equal = binary.equal
    float_power = binary.float_power
    floor_divide = binary.floor_divide
    fmax = binary.fmax
    fmin = binary.fmin
    fmod = binary.fmod
    ge = binary.ge
    greater = binary.greater
    greater_equal = binary.greater_equal
    gt = binary.gt
    heaviside = binary.heaviside
    hypot = binary.hypot
    isclose = binary.isclose
    le = binary.le
    left_shift = binary.left_shift
    less = binary.less
    less_equal = binary.less_equal
    logaddexp = binary.logaddexp
    logaddexp2 = binary.logaddexp2
    logical_and = binary.logical_and
    logical_or = binary.logical_or
    logical_xor = binary.logical_xor
    lt = binary.lt
    maximum = binary.maximum
    minimum = binary.minimum
    mul = binary.mul
    multiply = binary.multiply
    ne = binary.ne
    nextafter = binary.nextafter
    not_equal = binary.not_equal
    pow = binary.pow
    power = binary.power
    remainder = binary.remainder
    right_shift = binary.right_shift
    rsub = binary.rsub
    sub = binary.sub
    subtract = binary.subtract
    true_divide = binary.true_divide
    xlogy = binary.xlogy

    # -- of one

    abs = unary.abs
    absolute = unary.absolute
    acos = unary.acos
    acosh = unary.acosh
    arccos = unary.arccos
    arccosh = unary.arccosh
    arcsin = unary.arcsin
    arcsinh = unary.arcsinh
    arctan = unary.arctan
    arctanh = unary.arctanh
    asin = unary.asin
    asinh = unary.asinh
    atan = unary.atan
    atanh = unary.atanh
    bitwise_not = unary.bitwise_not
    cbrt = unary.cbrt
    ceil = unary.ceil
    cos = unary.cos
    cosh = unary.cosh
    deg2rad = unary.deg2rad
    erf = unary.erf
    erfc = unary.erfc
    erfinv = unary.erfinv
    exp = unary.exp
    exp2 = unary.exp2
    expit = unary.expit
    expm1 = unary.expm1
    fix = unary.fix
    floor = unary.floor
    frac = unary.frac
    invert = unary.invert
    isfinite = unary.isfinite
    isinf = unary.isinf
    isnan = unary.isnan
    isneginf = unary.isneginf
    isposinf = unary.isposinf
    log = unary.log
    log1p = unary.log1p
    log2 = unary.log2
    log10 = unary.log10
    logical_not = unary.logical_not
    logit = unary.logit
    nan_to_num = unary.nan_to_num
    neg = unary.neg
    negative = unary.negative
    positive = unary.positive
    rad2deg = unary.rad2deg
    reciprocal = unary.reciprocal

    def polygamma(self, n: int) -> Tensor:
        """The `n`-th derivative of `digamma`."""
        return unary.polygamma(n, self)

    relu = unary.relu
    digamma = unary.digamma
    i0 = unary.i0
    lgamma = unary.lgamma
    round = unary.round
    rsqrt = unary.rsqrt
    sgn = unary.sgn
    sigmoid = unary.sigmoid
    sign = unary.sign
    signbit = unary.signbit
    sin = unary.sin
    sinc = unary.sinc
    sinh = unary.sinh
    sqrt = unary.sqrt
    square = unary.square
    tan = unary.tan
    tanh = unary.tanh
    trunc = unary.trunc

    # -- of several

    addcdiv = selection.addcdiv
    addcmul = selection.addcmul
    clamp = selection.clamp
    clamp_max = selection.clamp_max
    clamp_min = selection.clamp_min
    clip = selection.clip
    lerp = selection.lerp
    masked_fill = selection.masked_fill
