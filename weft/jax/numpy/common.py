"""What functions of `jax.numpy` share."""

from __future__ import annotations

from typing import Any, Final

import weft.numpy as _plain
from weft.errors import ArgumentError, TracerError
from weft.jax.array import Array, jaxed, strong
from weft.jax.numpy import creation, kind
from weft.jax.tree_util import tree_leaves

plain: Any = _plain


def public(function: Any) -> Any:
    """Make a function public in its module."""
    function.__globals__["__all__"].append(function.__name__)
    return function


def array_of(x: Any) -> Any:
    """An argument as an array that is not weak."""
    return strong(creation.asarray(x))


def floating_of(x: Any) -> Any:
    """An argument as a floating-point or complex array."""
    x = array_of(x)
    return x if x.dtype.is_inexact else x.astype(float)


where_of = jaxed(plain.where, slice(1, None))


def axes_of(axis: Any, rank: int) -> Any:
    """An axis or several; all of them for `None`."""
    return tuple(range(rank)) if axis is None else axis


def values_of(x: Any, name: str) -> Any:
    """Arrays, also in lists and tuples, as NumPy's.

    Raises:
        TracerError: a traced function has no values, and the function of this name needs some.
    """
    if isinstance(x, Array):
        try:
            return x.array
        except TracerError:
            raise TracerError.here(_UNREAD.format(name)) from None
    return type(x)([values_of(y, name) for y in x]) if type(x) in (list, tuple) else x


_UNREAD: Final = (
    "jax.numpy.{}: reads values, which arguments of a function that is traced (by jit, vmap or "
    "grad) do not have; call it outside, or through jax.pure_callback"
)


def without_gradient(found: Any, name: str, *xs: Any) -> Any:
    """The result of a function of values.

    Raises:
        ArgumentError: it has floating-point numbers, and the gradient of an argument is asked for.
    """
    asked = [x for x in tree_leaves(xs) if isinstance(x, Array) and x.requires_grad]
    if asked and any([x.dtype.is_inexact for x in tree_leaves(found) if isinstance(x, Array)]):
        text = f"jax.numpy.{name}: has no gradient; take jax.lax.stop_gradient of its arguments"
        raise ArgumentError.here(text)
    return found


def dtype_promoted(*xs: Any) -> list[Any]:
    """Arrays of their common dtype."""
    return kind.promoted(*[creation.asarray(x) for x in xs])
