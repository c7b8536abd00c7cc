"""Elementwise operations under the names of `jax.lax`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.eager.functions import api
from weft.eager.tensor.dispatch import call, recorded
from weft.errors import ArgumentError
from weft.jax.array import Array, as_array, given, jaxed, strong
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.jax.tree_util import tree_map
from weft.ops.declaration import REGISTRY
from weft.ops.elementwise import combination
from weft.scipy import special as scipy_special

jnp: Any = _numpy

__all__ = [
    "bitcast_convert_type", "clamp", "clz", "complex", "conj", "convert_element_type", "div",
    "integer_pow", "population_count", "reduce_precision", "round", "rsqrt", "select", "select_n",
    "shift_right_logical", "stop_gradient",
]  # fmt: skip

_NUMPY: Final = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "add": "add", "asin": "arcsin",
    "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh",
    "bitwise_and": "bitwise_and", "bitwise_not": "invert", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "cbrt": "cbrt", "ceil": "ceil", "cos": "cos",
    "cosh": "cosh", "eq": "equal", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "floor": "floor", "ge": "greater_equal", "gt": "greater", "imag": "imag",
    "is_finite": "isfinite", "le": "less_equal", "log": "log", "log1p": "log1p", "lt": "less",
    "max": "maximum", "min": "minimum", "mul": "multiply", "ne": "not_equal", "neg": "negative",
    "nextafter": "nextafter", "pow": "power", "real": "real", "reciprocal": "reciprocal",
    "rem": "fmod", "shift_left": "left_shift", "shift_right_arithmetic": "right_shift",
    "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square",
    "sub": "subtract", "tan": "tan", "tanh": "tanh", "broadcast_shapes": "broadcast_shapes",
}  # fmt: skip
_SPECIAL: Final = {
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "digamma": "digamma", "erf": "erf", "erfc": "erfc",
    "erf_inv": "erfinv", "igamma": "gammainc", "igammac": "gammaincc", "lgamma": "gammaln",
    "polygamma": "polygamma", "betainc": "betainc", "zeta": "zeta", "logistic": "expit",
}  # fmt: skip

for _name, _other in _NUMPY.items():
    globals()[_name] = getattr(jnp, _other)
for _name, _other in _SPECIAL.items():
    globals()[_name] = jaxed(getattr(scipy_special, _other))
__all__ += [*_NUMPY, *_SPECIAL]
_round_away: Final = recorded(combination.round_away)


def _operation(name: str) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        return given(getattr(api, name)(strong(as_array(x))))

    run.__name__ = name
    run.__doc__ = f"{name}(x), elementwise."
    return run


rsqrt = _operation("rsqrt")


def div(x: Any, y: Any) -> Array:
    """The quotient; of integers without the fraction.

    >>> div(-7, 2)
    Array(-3, dtype=int32)
    """
    a, b = promoted(x, y)
    whole = a.dtype.is_integer
    return given(api.div(a, b, rounding_mode="trunc")) if whole else a / b


def round(x: Any, rounding_method: Any = 0) -> Array:
    """The nearest whole numbers; halves away from zero, or to even."""
    even = getattr(rounding_method, "value", rounding_method) == 1
    x = strong(as_array(x))
    return jnp.round(x) if even else given(_round_away(x))


def clamp(min: Any, x: Any, max: Any) -> Array:
    """x within limits."""
    return jnp.clip(x, min, max)


def complex(x: Any, y: Any) -> Array:
    """Complex numbers of two parts."""
    return given(api.complex(*promoted(x, y)))


def conj(x: Any) -> Array:
    """The complex conjugate, complex also of real numbers."""
    x = strong(as_array(x))
    return jnp.conj(x) if x.dtype.is_complex else complex(x, jnp.zeros_like(x))


def integer_pow(x: Any, y: int) -> Array:
    """`x` to a whole power."""
    return as_array(x) ** y


def shift_right_logical(x: Any, y: Any) -> Array:
    """Bits moved right, zeros filling from the left."""
    x = strong(as_array(x))
    unsigned = x.dtype.kind == "u"
    bits = x if unsigned else x.view(f"uint{x.dtype.size * 8}")
    found = bits >> jnp.asarray(y).astype(bits.dtype)
    return found if unsigned else found.view(x.dtype)


def population_count(x: Any) -> Array:
    """How many bits are 1; of negative numbers in two's complement."""
    x = strong(as_array(x))
    bits = x if x.dtype.kind == "u" else x.view(f"uint{x.dtype.size * 8}")
    return jnp.bitwise_count(bits).astype(x.dtype)


def clz(x: Any) -> Array:
    """How many leading bits are 0."""
    x = strong(as_array(x))
    width = x.dtype.size * 8
    powers = [jnp.array(np.array(1 << i, f"uint{width}")) for i in range(width)]
    bits = x.astype(f"uint{width}")
    counted = [(bits < p).astype(x.dtype) for p in powers]
    return functools.reduce(operator.add, counted, jnp.zeros(x.shape, x.dtype))


def convert_element_type(operand: Any, new_dtype: Any = None) -> Array:
    """An array as another dtype."""
    return jnp.asarray(operand) if new_dtype is None else jnp.astype(operand, new_dtype)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The same bits as another dtype."""
    return strong(as_array(operand)).view(new_dtype)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """Values rounded to fewer bits: those of float16 or bfloat16."""
    kinds = {(5, 10): jnp.float16, (8, 7): jnp.bfloat16, (8, 23): jnp.float32}
    x, bits = strong(as_array(operand)), (exponent_bits, mantissa_bits)
    if bits not in kinds:
        text = f"reduce_precision: expected the bits of one of {[*kinds]}, got {bits}"
        raise ArgumentError.here(text)
    return x.astype(kinds[bits]).astype(x.dtype)


def stop_gradient(x: Any) -> Any:
    """The same values without a gradient, of a pytree."""
    return tree_map(_stopped, x)


def _stopped(x: Any) -> Any:
    if not isinstance(x, Array):
        return x
    return call(REGISTRY["stop_gradient"], x) if x.dtype.is_inexact else x


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """`on_true` where the predicate is true, else `on_false`."""
    return jnp.where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Array:
    """For each element the case of this number."""
    which = strong(as_array(which))
    if which.dtype == jnp.bool_:
        return jnp.where(which, cases[1], cases[0])
    found = cases[0]
    for i, case in enumerate(cases[1:], 1):
        found = jnp.where(which == i, case, found)
    return found
