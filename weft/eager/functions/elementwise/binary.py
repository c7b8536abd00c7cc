"""Binary elementwise functions with options; `declared` has the others."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft import ops
from weft.eager.functions.elementwise import declared
from weft.eager.functions.elementwise.division import truncated
from weft.eager.functions.elementwise.from_op import both, written
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import check_truths, promoted
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, bool_, complex128, float64
from weft.ir.node import Value
from weft.ops.declaration.fact import Autocast
from weft.ops.elementwise import combination

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "add", "allclose", "divide", "equal", "float_power", "fmax", "fmin", "heaviside", "isclose",
    "maximum", "minimum", "power", "rsub", "subtract",
]  # fmt: skip

# Exponents such as 2 are part of the program's structure, because they compile to something simpler
# (a multiplication, a square root). Any other exponent is an input, like every number.
EXPONENTS: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4})


# Sums and products


@written
def add(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """`x + alpha * other`, elementwise with broadcasting."""
    return declared.add(x, _times("add", x, other, alpha))


def _times(name: str, x: Any, other: Any, alpha: Any) -> Any:
    """`alpha * other`, in the dtype of the result.

    Raises:
        DTypeError: a factor that the result's dtype cannot hold: a fraction for integers, a complex
            one for real numbers, a boolean for numbers.
    """
    if type(alpha) is int and alpha == 1:
        return other
    if name != "add":
        check_truths(x, other)
    scaled = promoted(x, other)[1]
    kind = scaled.type.dtype
    if isinstance(alpha, builtins.bool) and kind is not bool_:
        text = f"{name}: expected a number as alpha for a result of {kind}, got {alpha}"
        raise DTypeError.here(text)
    if isinstance(alpha, float) and not kind.is_inexact:
        text = f"{name}: expected an integer as alpha for a result of {kind}, got {alpha}"
        raise DTypeError.here(text)
    alpha = factor_of(name, "alpha", alpha, kind)
    if kind is bool_:
        alpha = builtins.bool(alpha)
    return declared.multiply(wrap(scaled, kind_of(x, other)), alpha)


def factor_of(function: str, name: str, factor: Any, dtype: DType) -> Any:
    """A factor for results of `dtype`; an integral float becomes an integer for integers.

    Raises:
        DTypeError: a fraction for integers, or a complex factor for real numbers.
    """
    if isinstance(factor, builtins.complex) and not dtype.is_complex:
        expected = "a real number"
    elif not isinstance(factor, float) or dtype.is_inexact:
        return factor
    elif factor.is_integer():
        return int(factor)
    else:
        expected = "an integer"
    raise DTypeError.here(
        f"{function}: expected {expected} as {name} for a result of {dtype}, got {factor}"
    )


@written
def subtract(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """`x - alpha * other`, elementwise with broadcasting.

    Raises:
        DTypeError: booleans; use `logical_xor`.
    """
    return declared.subtract(x, _times("subtract", x, other, alpha))


def rsub(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """`other - alpha * x`, elementwise with broadcasting."""
    return declared.subtract(other, _times("rsub", other, x, alpha))


@written
def divide(x: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`x / other`, elementwise with broadcasting.

    Args:
        rounding_mode: `None` (integers become floating-point first), `"trunc"` or `"floor"`.

    Raises:
        DTypeError: another rounding mode.
        DivisionError: integers are divided by 0 with rounding.
    """
    if rounding_mode is None:
        return declared.divide(x, other)
    if rounding_mode == "floor":
        return declared.floor_divide(x, other)
    if rounding_mode != "trunc":
        raise DTypeError.here(
            f"divide: expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    return truncated(x, other)


# Powers


_small_power: Final = recorded(combination.raised, autocast=Autocast.FLOAT32)


@written
def power(x: Any, exponent: Any) -> Tensor:
    """`x` to a power, elementwise with broadcasting."""
    if type(exponent) is int and exponent < 0 and lazy_of(x).type.dtype.kind in "biu":
        raise DTypeError.here(
            f"power: expected an exponent of at least 0 for integers, got {exponent}; convert "
            f"them first: x.float()"
        )
    if type(exponent) in (int, float) and exponent in EXPONENTS and isinstance(x, Handle):
        dtype = x.rules.number(exponent, x.lazy.type.dtype)
        if dtype is x.lazy.type.dtype and trace.now.autocast is None:
            return _small_power(x, exponent=exponent)
    return declared.power(x, exponent)


def float_power(x: Any, exponent: Any) -> Tensor:
    """`x` to a power in float64, or in complex128 if one is complex."""
    both = [lazy_of(x), lazy_of(exponent)]
    dtype = complex128 if any([v.type.dtype.is_complex for v in both]) else float64
    both = [lazy_of(v, dtype) for v in (x, exponent)]  # a number is not rounded to float32 first
    return power(*[wrap(cast(v, dtype), kind_of(x, exponent)) for v in both])


# Minimum, maximum and others of two

_maximum = recorded(combination.maximum)


_minimum = recorded(combination.minimum)


@written
def maximum(x: Any, other: Any) -> Tensor:
    """The larger element, with broadcasting; equal elements share the gradient."""
    floats = promoted(x, other)[0].type.dtype.is_floating
    return both(_maximum, x, other) if floats else declared.maximum(x, other)


@written
def minimum(x: Any, other: Any) -> Tensor:
    """The smaller element, with broadcasting; equal elements share the gradient."""
    floats = promoted(x, other)[0].type.dtype.is_floating
    return both(_minimum, x, other) if floats else declared.minimum(x, other)


_fmax: Final = recorded(ops.fmax)
_fmin: Final = recorded(ops.fmin)
_heaviside: Final = recorded(ops.heaviside)


@written
def fmax(x: Any, other: Any) -> Tensor:
    """The larger element; if one is NaN, the other."""
    floats = promoted(x, other)[0].type.dtype.is_floating
    return both(_fmax, x, other) if floats else declared.maximum(x, other)


@written
def fmin(x: Any, other: Any) -> Tensor:
    """The smaller element; if one is NaN, the other."""
    floats = promoted(x, other)[0].type.dtype.is_floating
    return both(_fmin, x, other) if floats else declared.minimum(x, other)


@written
def heaviside(x: Any, values: Any) -> Tensor:
    """0 where `x` is negative, 1 where it is positive, `values` where it is 0.

    Raises:
        DTypeError: complex numbers, or tensors of two dtypes.
    """
    kinds = [y.lazy.type.dtype for y in (x, values) if isinstance(y, Handle) and y.rules is TORCH]
    if len(set(kinds)) > 1 or any([kind.is_complex for kind in kinds]):
        text = f"heaviside: expected real numbers of one type, got {', '.join(map(str, kinds))}"
        raise DTypeError.here(text)
    true_or_false = promoted(x, values)[0].type.dtype is bool_
    return declared.logical_or(x, values) if true_or_false else both(_heaviside, x, values)


# Comparisons


def equal(x: Any, other: Any) -> builtins.bool:
    """Whether two tensors have the same shape and elements; `eq` compares elementwise."""
    a, b = lazy_of(x), lazy_of(other)
    return a.type.shape == b.type.shape and builtins.bool(np.all(array_of(a) == array_of(b)))


@recorded(differentiable=False)
def _isclose(x: Value, y: Value, *, rtol: float, atol: float, equal_nan: bool) -> Value:
    return ops.isclose(x, y, rtol, atol, equal_nan)


def isclose(
    x: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `|x - other| <= atol + rtol * |other|`, elementwise.

    Raises:
        ShapeError: a negative tolerance.
    """
    if rtol < 0 or atol < 0:
        raise ShapeError.here(
            f"isclose: expected tolerances of at least 0, got rtol {rtol} and atol {atol}"
        )
    like = kind_of(x, other)
    return _isclose.on(like, *promoted(x, other), rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(
    x: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> builtins.bool:
    """Whether all elements are close; see `isclose`."""
    return builtins.bool(isclose(x, other, rtol, atol, equal_nan).array.all())
