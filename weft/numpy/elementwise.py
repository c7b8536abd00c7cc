"""Functions of elements: arithmetic, exponentials, trigonometry, comparison, logic, bits, parts."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager import arithmetic, elementary, selection
from weft.eager.family import of_floats, of_one
from weft.ir.dtype import DType, as_dtype
from weft.numpy.convert import NUMBERS, array_like, floats, operands
from weft.ops import angle as angle_of
from weft.ops.refusal import REFUSABLE, guarded, refuse

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fix",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "imag",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "real",
    "real_if_close",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]  # fmt: skip


def _one(function: Callable[[Any], Any]) -> Callable[[Any], ndarray]:
    """A function of tensors as one of whatever can be an array."""

    @functools.wraps(function)
    def single(x: Any, /) -> ndarray:
        try:
            return function(array_like(x))
        except REFUSABLE as error:
            refuse(error, single.__name__, single, (x,), {})

    return guarded(single)


def _two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], ndarray]:
    """A function of two tensors as one of whatever can be arrays."""

    @functools.wraps(function)
    def double(x1: Any, x2: Any, /) -> ndarray:
        try:
            return function(*operands(x1, x2))
        except REFUSABLE as error:
            refuse(error, double.__name__, double, (x1, x2), {})

    return guarded(double)


# Of one

abs: Final = _one(elementary.abs)
negative: Final = _one(elementary.negative)
positive: Final = _one(elementary.positive)
sign: Final = _one(elementary.sign)
square: Final = _one(elementary.square)
sqrt: Final = _one(elementary.sqrt)
cbrt: Final = _one(elementary.cbrt)
reciprocal: Final = _one(elementary.reciprocal)
exp: Final = _one(elementary.exp)
exp2: Final = _one(elementary.exp2)
expm1: Final = _one(elementary.expm1)
log: Final = _one(elementary.log)
log1p: Final = _one(elementary.log1p)
log2: Final = _one(elementary.log2)
log10: Final = _one(elementary.log10)
sin: Final = _one(elementary.sin)
cos: Final = _one(elementary.cos)
tan: Final = _one(elementary.tan)
asin: Final = _one(elementary.asin)
acos: Final = _one(elementary.acos)
atan: Final = _one(elementary.atan)
sinh: Final = _one(elementary.sinh)
cosh: Final = _one(elementary.cosh)
tanh: Final = _one(elementary.tanh)
asinh: Final = _one(elementary.asinh)
acosh: Final = _one(elementary.acosh)
atanh: Final = _one(elementary.atanh)
sinc: Final = _one(elementary.sinc)
deg2rad: Final = _one(elementary.deg2rad)
rad2deg: Final = _one(elementary.rad2deg)
ceil: Final = _one(elementary.ceil)
floor: Final = _one(elementary.floor)
trunc: Final = _one(elementary.trunc)
isfinite: Final = _one(elementary.isfinite)
isinf: Final = _one(elementary.isinf)
isnan: Final = _one(elementary.isnan)
isneginf: Final = _one(elementary.isneginf)
isposinf: Final = _one(elementary.isposinf)
signbit: Final = _one(elementary.signbit)
logical_not: Final = _one(elementary.logical_not)
bitwise_invert: Final = _one(elementary.bitwise_not)

absolute = fabs = abs
fix = trunc
degrees, radians = rad2deg, deg2rad
arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
invert = bitwise_not = bitwise_invert


def round(x: Any, /, decimals: int = 0) -> ndarray:
    """Rounded to a number of decimals; halves to the even neighbour."""
    x = array_like(x)
    found: Any = elementary.round(x, decimals=decimals)
    return found


def rint(x: Any, /) -> ndarray:
    """The nearest whole numbers; halves to the even one."""
    return round(x)


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> ndarray:
    """NaN replaced by a number (0), infinities by numbers (the largest ones of the type).

    Args:
        copy: of no influence.
    """
    found: Any = elementary.nan_to_num(array_like(x), nan, posinf, neginf)
    return found


# Parts of complex numbers

conj: Final = _one(of_one("conj"))
conjugate = conj
_real: Final = of_one("real")
_imag: Final = of_one("imag")
_angle: Final = of_floats("angle", angle_of)


def real(x: Any, /) -> ndarray:
    """The real parts; real numbers themselves."""
    found: Any = _real(array_like(x))
    return found


def imag(x: Any, /) -> ndarray:
    """The imaginary parts; 0 of real numbers."""
    found: Any = _imag(array_like(x))
    return found


def angle(z: Any, deg: bool = False) -> ndarray:
    """The angle from the positive real axis in (-pi, pi], in degrees if asked for."""
    found: Any = _angle(array_like(z))
    return rad2deg(found) if deg else found


def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real parts if all imaginary parts are tiny, which is looked at.

    Args:
        tol: how many times the smallest relative step counts as tiny.
    """
    x = array_like(a)
    if not x.dtype.is_complex:
        return x
    array = x.array
    from_one = float(_EPSILON[x.dtype.real.name])
    return real(x) if bool((builtins.abs(array.imag) < tol * from_one).all()) else x


_EPSILON: Final = {"float32": 2.0**-23, "float64": 2.0**-52}


# Of two

add: Final = _two(arithmetic.plain_add)
subtract: Final = _two(arithmetic.plain_subtract)
multiply: Final = _two(arithmetic.multiply)
divide: Final = _two(arithmetic.plain_divide)
floor_divide: Final = _two(arithmetic.floor_divide)
remainder: Final = _two(arithmetic.remainder)
fmod: Final = _two(arithmetic.fmod)
pow: Final = _two(arithmetic.power)
maximum: Final = _two(arithmetic.maximum)
minimum: Final = _two(arithmetic.minimum)
fmax: Final = _two(arithmetic.fmax)
fmin: Final = _two(arithmetic.fmin)
atan2: Final = _two(arithmetic.atan2)
hypot: Final = _two(arithmetic.hypot)
copysign: Final = _two(arithmetic.copysign)
nextafter: Final = _two(arithmetic.nextafter)
logaddexp: Final = _two(arithmetic.logaddexp)
logaddexp2: Final = _two(arithmetic.logaddexp2)
heaviside: Final = _two(arithmetic.heaviside)
equal: Final = _two(arithmetic.eq)
not_equal: Final = _two(arithmetic.ne)
less: Final = _two(arithmetic.lt)
less_equal: Final = _two(arithmetic.le)
greater: Final = _two(arithmetic.gt)
greater_equal: Final = _two(arithmetic.ge)
logical_and: Final = _two(arithmetic.logical_and)
logical_or: Final = _two(arithmetic.logical_or)
logical_xor: Final = _two(arithmetic.logical_xor)
bitwise_and: Final = _two(arithmetic.bitwise_and)
bitwise_or: Final = _two(arithmetic.bitwise_or)
bitwise_xor: Final = _two(arithmetic.bitwise_xor)
bitwise_left_shift: Final = _two(arithmetic.left_shift)
bitwise_right_shift: Final = _two(arithmetic.right_shift)

power, mod, true_divide, arctan2 = pow, remainder, divide, atan2
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift


def float_power(x1: Any, x2: Any, /) -> ndarray:
    """`x1` to a power, in float64 or complex128."""
    wide = [floats(x) for x in (x1, x2)]
    kinds = ["complex128" if x.dtype.is_complex else "float64" for x in wide]
    return pow(*[x.to(as_dtype(k)) for x, k in zip(wide, kinds, strict=True)])


# Limits


def clip(
    x: Any, /, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None
) -> ndarray:
    """`x`, or the limit that it goes beyond; limits are numbers or arrays, and broadcast."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is None:
        return positive(x)
    x = array_like(x)
    low, high = _limit(low, x.dtype, -1), _limit(high, x.dtype, 1)
    if low is None and high is None:
        return positive(x)
    found: Any = selection.clamp(x, low, high)
    return found


def _limit(x: Any, dtype: DType, side: int) -> Any:
    """A limit; `None` for a whole number on the side of all that an integer type holds."""
    if x is None or type(x) not in NUMBERS:
        return x if x is None else array_like(x)
    if type(x) is int and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        beyond = x < limits.min if side < 0 else x > limits.max
        return None if beyond else x
    return x
