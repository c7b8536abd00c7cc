"""Elementwise functions: arithmetic, exponentials, trigonometry, comparison, logic, bits."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.functions.elementwise import binary, selection, unary
from weft.eager.functions.elementwise.from_op import of_floats, of_one
from weft.eager.record.state import trace
from weft.eager.tensor.handle import Handle
from weft.errors import AliasError, ArgumentError
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import at_user_line
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
    """A unary function of tensors as one of arguments that can be converted to arrays."""

    @functools.wraps(function)
    def single(x: Any, /) -> ndarray:
        try:
            return function(array_like(x))
        except REFUSABLE as error:
            refuse(error, single.__name__, single, (x,), {})

    return guarded(single)


def _two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], ndarray]:
    """A binary function of tensors as one of arguments that can be converted to arrays."""

    @functools.wraps(function)
    def double(x1: Any, x2: Any, /) -> ndarray:
        try:
            return function(*operands(x1, x2))
        except REFUSABLE as error:
            refuse(error, double.__name__, double, (x1, x2), {})

    return guarded(double)


# Of one

abs: Final = _one(unary.abs)
negative: Final = _one(unary.negative)
positive: Final = _one(unary.positive)
sign: Final = _one(unary.sign)
square: Final = _one(unary.square)
sqrt: Final = _one(unary.sqrt)
cbrt: Final = _one(unary.cbrt)
exp: Final = _one(unary.exp)
exp2: Final = _one(unary.exp2)
expm1: Final = _one(unary.expm1)
log: Final = _one(unary.log)
log1p: Final = _one(unary.log1p)
log2: Final = _one(unary.log2)
log10: Final = _one(unary.log10)
sin: Final = _one(unary.sin)
cos: Final = _one(unary.cos)
tan: Final = _one(unary.tan)
asin: Final = _one(unary.asin)
acos: Final = _one(unary.acos)
atan: Final = _one(unary.atan)
sinh: Final = _one(unary.sinh)
cosh: Final = _one(unary.cosh)
tanh: Final = _one(unary.tanh)
asinh: Final = _one(unary.asinh)
acosh: Final = _one(unary.acosh)
atanh: Final = _one(unary.atanh)
sinc: Final = _one(unary.sinc)
deg2rad: Final = _one(unary.deg2rad)
rad2deg: Final = _one(unary.rad2deg)
ceil: Final = _one(unary.ceil)
floor: Final = _one(unary.floor)
trunc: Final = _one(unary.trunc)
isfinite: Final = _one(unary.isfinite)
isinf: Final = _one(unary.isinf)
isnan: Final = _one(unary.isnan)
isneginf: Final = _one(unary.isneginf)
isposinf: Final = _one(unary.isposinf)
signbit: Final = _one(unary.signbit)
logical_not: Final = _one(unary.logical_not)
bitwise_invert: Final = _one(unary.bitwise_not)

absolute = fabs = abs
fix = trunc
degrees, radians = rad2deg, deg2rad
arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
invert = bitwise_not = bitwise_invert


def round(x: Any, /, decimals: int = 0) -> ndarray:
    """Round to a number of decimals; halves round to even."""
    x = array_like(x)
    found: Any = unary.round(x, decimals=decimals)
    return found


def rint(x: Any, /) -> ndarray:
    """Round to the nearest integers; halves round to even."""
    return round(x)


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> ndarray:
    """Replace NaN by a number (0), and infinities by numbers (the dtype's limits).

    Args:
        copy: whether `x` stays as it is, instead of being changed in place.

    Raises:
        AliasError: `copy=False`, and `x` is none of these arrays.
    """
    found: Any = unary.nan_to_num(array_like(x), nan, posinf, neginf)
    if copy:
        return found
    if not isinstance(x, Handle):
        text = f"expected an array of weft.numpy to change in place, got {type(x).__name__}"
        raise AliasError(f"nan_to_num: copy=False: {text}{at_user_line()}")
    given: Any = x
    given[...] = found
    return given


# Parts of complex numbers

conj: Final = _one(of_one("conj"))
conjugate = conj
_real: Final = of_one("real")
_imag: Final = of_one("imag")
_angle: Final = of_floats("angle", angle_of)


def real(x: Any, /) -> ndarray:
    """The real parts; real numbers are returned as they are."""
    found: Any = _real(array_like(x))
    return found


def imag(x: Any, /) -> ndarray:
    """The imaginary parts; 0 for real numbers."""
    found: Any = _imag(array_like(x))
    return found


def angle(z: Any, deg: bool = False) -> ndarray:
    """The angle from the positive real axis in (-pi, pi], optionally in degrees."""
    found: Any = _angle(array_like(z))
    return rad2deg(found) if deg else found


def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real parts if all imaginary parts are tiny; reads the values.

    Args:
        tol: the limit, in multiples of the dtype's epsilon.
    """
    x = array_like(a)
    if not x.dtype.is_complex:
        return x
    array = x.array
    from_one = float(_EPSILON[x.dtype.real.name])
    return real(x) if bool((builtins.abs(array.imag) < tol * from_one).all()) else x


_EPSILON: Final = {"float32": 2.0**-23, "float64": 2.0**-52}


# Of two

add: Final = _two(binary.plain_add)
subtract: Final = _two(binary.plain_subtract)
multiply: Final = _two(binary.multiply)
divide: Final = _two(binary.plain_divide)
floor_divide: Final = _two(binary.floor_divide)
remainder: Final = _two(binary.remainder)
fmod: Final = _two(binary.fmod)
maximum: Final = _two(binary.maximum)
minimum: Final = _two(binary.minimum)
fmax: Final = _two(binary.fmax)
fmin: Final = _two(binary.fmin)
atan2: Final = _two(binary.atan2)
hypot: Final = _two(binary.hypot)
copysign: Final = _two(binary.copysign)
nextafter: Final = _two(binary.nextafter)
logaddexp: Final = _two(binary.logaddexp)
logaddexp2: Final = _two(binary.logaddexp2)
heaviside: Final = _two(binary.heaviside)
equal: Final = _two(binary.eq)
not_equal: Final = _two(binary.ne)
less: Final = _two(binary.lt)
less_equal: Final = _two(binary.le)
greater: Final = _two(binary.gt)
greater_equal: Final = _two(binary.ge)
logical_and: Final = _two(binary.logical_and)
logical_or: Final = _two(binary.logical_or)
logical_xor: Final = _two(binary.logical_xor)
bitwise_and: Final = _two(binary.bitwise_and)
bitwise_or: Final = _two(binary.bitwise_or)
bitwise_xor: Final = _two(binary.bitwise_xor)
bitwise_left_shift: Final = _two(binary.left_shift)
bitwise_right_shift: Final = _two(binary.right_shift)


def pow(x1: Any, x2: Any, /) -> ndarray:
    """`x1` to the power `x2`.

    Raises:
        ArgumentError: integers to negative integer powers.
    """
    if not trace.now.depth:
        _check_powers(x1, x2)
    return _power(x1, x2)


_power: Final = _two(binary.power)


def _check_powers(x1: Any, x2: Any) -> None:
    for x in (x1, x2):
        if isinstance(x, bool | float | complex) or not array_like(x).lazy.type.dtype.is_integer:
            return
    if (array_like(x2).array < 0).any():
        raise ArgumentError(
            "power: expected no negative powers of integers; convert the base to a floating-point "
            f"type{at_user_line()}"
        )


def reciprocal(x: Any, /) -> ndarray:
    """`1 / x`; for integers without the fraction.

    Raises:
        DivisionError: when computed, an integer is 0.
    """
    given = array_like(x)
    if not given.lazy.type.dtype.is_integer:
        return _reciprocal(given)
    found: Any = binary.divide(1, given, rounding_mode="trunc")
    return found


_reciprocal: Final = _one(unary.reciprocal)

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
    """`x` clipped to limits, which are numbers or arrays and broadcast."""
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
    """A limit; `None` for an integer beyond all that an integer dtype can hold."""
    if x is None or type(x) not in NUMBERS:
        return x if x is None else array_like(x)
    if type(x) is int and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        beyond = x < limits.min if side < 0 else x > limits.max
        return None if beyond else x
    return x
