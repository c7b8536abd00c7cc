"""Common divisors and multiples, powers of 2, and unraveled indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.documentation import named
from weft.eager.functions.elementwise.binary import power
from weft.eager.functions.elementwise.declared import floor_divide, multiply, remainder
from weft.eager.tensor.argument import dims_of, sizes
from weft.eager.tensor.dispatch import cast as as_type
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import write
from weft.errors import DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import broadcast, known, show
from weft.ops import exp2
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine
from weft.ops.elementwise.convert import cast

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["frexp", "gcd", "lcm", "ldexp", "unravel_index"]

_WHOLE: Final = {"gcd": np.gcd, "lcm": np.lcm}


class Frexp(NamedTuple):
    """Numbers as `mantissa * 2 ** exponent`."""

    mantissa: Tensor
    exponent: Tensor


@recorded(differentiable=False)
def _whole(x: Value, y: Value, *, name: str) -> Value:
    shape = known(broadcast(x.shape, y.shape))
    wide = x.shape == y.shape
    return call(_computed.of(name), x, y, types_of=[(x.dtype, shape)], title=name, wide=wide)[0]


@routine
def _computed(name: str, x: Any, y: Any) -> Any:
    return _WHOLE[name](x, y)


def _of_integers(name: str, doc: str) -> Callable[[Any, Any], Tensor]:
    """A function of two integers.

    Raises:
        DTypeError: numbers that are no integers.
    """

    @named(name, doc)
    def function(x: Any, other: Any) -> Tensor:
        pair = promoted(x, other)
        if not pair[0].type.dtype.is_integer:
            raise DTypeError.here(f"{name}: expected integers, got {pair[0].type.dtype}")
        return _whole.on(kind_of(x, other), *pair, name=name)

    return function


gcd: Final = _of_integers(
    "gcd",
    """The greatest common divisor of two integers.

    >>> import weft as wf
    >>> wf.gcd(wf.tensor([12, 7]), wf.tensor([18, 14])).tolist()
    [6, 7]
    """,
)
lcm: Final = _of_integers("lcm", "The least common multiple of two integers.")


def ldexp(x: Any, other: Any) -> Tensor:
    """`x * 2 ** other`."""
    like = kind_of(x, other)
    dtype = promoted(x, other, floats=True)[0].type.dtype
    wide = lazy_of(2.0, types.float64 if dtype.size >= 8 else types.float32)
    return wrap(as_type(multiply(x, power(wrap(wide, like), other)).lazy, dtype), like)


def _frexp_gradient(g: Any, y: Any, x: Value) -> list[Value]:
    return [g[0] * exp2(-cast(y[1], dtype=x.dtype))]


@routine
def _parts(x: Any) -> tuple[Any, Any]:
    return np.frexp(x)


@recorded
def _frexp(x: Value) -> tuple[Value, ...]:
    kinds = [(x.dtype, known(x.shape)), (types.int32, known(x.shape))]
    return call(_parts, x, types_of=kinds, gradient=_frexp_gradient)


def frexp(x: Any) -> Frexp:
    """The mantissa (at least 0.5 and below 1) and the exponent of 2 of each number.

    >>> import weft as wf
    >>> found = wf.frexp(wf.tensor([6.0]))
    >>> found.mantissa.tolist(), found.exponent.tolist()
    ([0.75], [3])
    """
    return Frexp(*_frexp.on(kind_of(x), *promoted(x, floats=True)))


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Row-major positions as one index for each axis of a shape.

    >>> import weft as wf
    >>> [i.tolist() for i in wf.unravel_index(wf.tensor([5, 2]), (2, 3))]
    [[1, 0], [2, 2]]
    """
    dims = sizes("unravel_index", (shape,))
    if 0 in dims and 0 not in dims_of(indices):
        raise ShapeError.here(f"unravel_index: expected a shape with elements, got {show(dims)}")
    inner = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    parts = zip(inner, dims, strict=True)  # an empty shape has no indices
    return tuple([remainder(floor_divide(indices, n or 1), d or 1) for n, d in parts])


class Methods(Handle):
    """The methods of this module."""

    def gcd_(self, other: Any) -> Any:
        """`gcd`, in place."""
        return write(self, gcd(self, other).lazy, "gcd_")

    def lcm_(self, other: Any) -> Any:
        """`lcm`, in place."""
        return write(self, lcm(self, other).lazy, "lcm_")

    def ldexp_(self, other: Any) -> Any:
        """`ldexp`, in place."""
        return write(self, ldexp(self, other).lazy, "ldexp_")
