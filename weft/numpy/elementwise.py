"""Elementwise functions: arithmetic, exponentials, trigonometry, comparison, logic, bits."""

# pyright: reportReturnType=false
# Functions of tensors return arrays for arrays, which type checkers do not see.

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.functions.elementwise import binary, selection, unary
from weft.eager.functions.elementwise import declared as plain
from weft.eager.functions.elementwise.from_op import of_one as operation
from weft.eager.record.pending.state import trace
from weft.eager.tensor.handle import Handle
from weft.errors import AliasError, ArgumentError
from weft.ir.dtype import DType, as_dtype
from weft.numpy import declared
from weft.numpy.convert import NUMBERS, array_like, floats
from weft.numpy.declared import *  # noqa: F403
from weft.numpy.declared import of_one, of_two

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "angle", "clip", "float_power", "imag", "isneginf", "isposinf", "nan_to_num",
    "pow", "power", "real", "real_if_close", "reciprocal", "rint", "round",
]  # fmt: skip
__all__ += declared.__all__

isneginf: Final = of_one(unary.isneginf)
isposinf: Final = of_one(unary.isposinf)


def round(x: Any, /, decimals: int = 0) -> ndarray:
    """Round to a number of decimals; halves round to even."""
    x = array_like(x)
    return unary.round(x, decimals=decimals)


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
        raise AliasError.here(f"nan_to_num: copy=False: {text}")
    given: Any = x
    given[...] = found
    return given


# Parts of complex numbers


_real: Final = operation("real")
_imag: Final = operation("imag")


def real(x: Any, /) -> ndarray:
    """The real parts; real numbers are returned as they are."""
    return _real(array_like(x))


def imag(x: Any, /) -> ndarray:
    """The imaginary parts; 0 for real numbers."""
    return _imag(array_like(x))


def angle(z: Any, deg: bool = False) -> ndarray:
    """The angle from the positive real axis in (-pi, pi], optionally in degrees."""
    found: Any = plain.angle(array_like(z))
    return declared.rad2deg(found) if deg else found


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


# Powers and quotients


def pow(x1: Any, x2: Any, /) -> ndarray:
    """`x1` to the power `x2`.

    Raises:
        ArgumentError: integers to negative integer powers.
    """
    if not trace.now.depth:
        _check_powers(x1, x2)
    return _power(x1, x2)


_power: Final = of_two(binary.power)


def _check_powers(x1: Any, x2: Any) -> None:
    for x in (x1, x2):
        if isinstance(x, bool | float | complex) or not array_like(x).lazy.type.dtype.is_integer:
            return
    if (array_like(x2).array < 0).any():
        raise ArgumentError.here(
            "power: expected no negative powers of integers; convert the base to a floating-point "
            "type"
        )


def reciprocal(x: Any, /) -> ndarray:
    """`1 / x`; for integers without the fraction.

    Raises:
        DivisionError: when computed, an integer is 0.
    """
    given = array_like(x)
    if not given.lazy.type.dtype.is_integer:
        return _reciprocal(given)
    return binary.divide(1, given, rounding_mode="trunc")


_reciprocal: Final = of_one(plain.reciprocal)

power = pow


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
        return declared.positive(x)
    x = array_like(x)
    low, high = _limit(low, x.dtype, -1), _limit(high, x.dtype, 1)
    if low is None and high is None:
        return declared.positive(x)
    return selection.clamp(x, low, high)


def _limit(x: Any, dtype: DType, side: int) -> Any:
    """A limit; `None` for an integer beyond all that an integer dtype can hold."""
    if x is None or type(x) not in NUMBERS:
        return x if x is None else array_like(x)
    if type(x) is int and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        beyond = x < limits.min if side < 0 else x > limits.max
        return None if beyond else x
    return x
