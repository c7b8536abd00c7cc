"""Minimum, maximum, and their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.documentation import named
from weft.eager.functions.elementwise.binary import maximum, minimum
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import axes_of, axis_of, either
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import OutOfRangeError, ShapeError
from weft.ir import dtype as types
from weft.ir.shape import known, show
from weft.ops.declaration import REGISTRY
from weft.ops.reduction import order_statistic

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor
from weft.eager.functions.reduction.reduce import by_dim, rank_of, reduced

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


class Extreme(NamedTuple):
    """Values along an axis and their indices."""

    values: Tensor
    indices: Tensor


class Range(NamedTuple):
    """The smallest and the largest value."""

    min: Tensor
    max: Tensor


# Minimum and maximum


def shared(x: Any, y: Tensor) -> Tensor:
    """`y`, an element of `x`, whose gradient is shared by all equal elements."""
    lazy = lazy_of(x)
    if not lazy.type.dtype.is_floating:
        return y
    return wrap(record(REGISTRY["elected"], (lazy, y.lazy), {})[0], y)


_best = recorded(order_statistic.best)


def _extreme(largest: bool, x: Any, dim: Any, keepdim: bool) -> Any:
    name = "max" if largest else "min"
    lazy = lazy_of(x)
    if dim is None:
        return shared(x, _of_ordered(name, x, None, keepdim))
    rank = rank_of(lazy)
    at = axis_of(name, dim, rank)
    if not rank:
        zero = wrap(cast(lazy_of(0), types.int64), kind_of(x))
        return Extreme(wrap(record(REGISTRY["identity"], (lazy,), {})[0], kind_of(x)), zero)
    not_empty(name, lazy, at)
    return Extreme(*_best.on(kind_of(x), lazy, axis=at, keepdims=keepdim, largest=largest))


def not_empty(name: str, lazy: Lazy, axis: int | None) -> None:
    """Raise `OutOfRangeError` for an empty axis, `ShapeError` for an empty tensor."""
    dims = known(lazy.type.shape)
    if 0 in (dims if axis is None else (dims[axis],)):
        kind = ShapeError if axis is None else OutOfRangeError
        raise kind.here(f"{name}: expected at least one element, got shape {show(dims)}")


def ordered(lazy: Lazy) -> Lazy:
    """A value as a dtype that kernels can order: booleans become uint8."""
    return cast(lazy, types.uint8) if lazy.type.dtype is types.bool_ else lazy


def max(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, other: Any = None
) -> Any:
    """The largest of all elements; along `dim` as `(values, indices)`.

    With a tensor for `dim` (or `other`), the elementwise maximum of both. `axis` is an alias of
    `dim`; `amax` gives the values alone.

    Raises:
        OutOfRangeError: an axis outside the rank.
        ShapeError: no elements.
    """
    if other is not None or isinstance(dim, Handle):
        return maximum(x, dim if other is None else other)
    return _extreme(True, x, either("max", dim, axis), keepdim)


def min(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, other: Any = None
) -> Any:
    """The smallest of all elements; along `dim` as `(values, indices)`; see `max`.

    Raises:
        OutOfRangeError: an axis outside the rank.
        ShapeError: no elements.
    """
    if other is not None or isinstance(dim, Handle):
        return minimum(x, dim if other is None else other)
    return _extreme(False, x, either("min", dim, axis), keepdim)


def _of_ordered(name: str, x: Any, dim: Any, keepdim: bool) -> Tensor:
    lazy = lazy_of(x)
    for axis in axes_of(name, dim, rank_of(lazy)) if dim is not None and rank_of(lazy) else ():
        not_empty(name, lazy, axis)
    y = reduced(REGISTRY[name], ordered(lazy), x, dim, keepdim)
    return wrap(cast(y.lazy, types.bool_), y) if lazy.type.dtype is types.bool_ else y


def _over_dim(title: str, name: str, what: str):
    @by_dim
    @named(title, f"""The {what} element over `dim`; equal elements share the gradient.

    Raises:
        OutOfRangeError: `dim` has no elements.
        ShapeError: there are none at all, and no `dim` is given.
    """)  # fmt: skip
    def extreme(x: Any, dim: Any, keepdim: bool) -> Tensor:
        return _of_ordered(name, x, dim, keepdim)

    return extreme


amax, amin = _over_dim("amax", "max", "largest"), _over_dim("amin", "min", "smallest")


def aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Range:
    """The smallest and the largest element over `dim`."""
    return Range(amin(x, dim, keepdim), amax(x, dim, keepdim))


_place = recorded(order_statistic.place, differentiable=False)


def _arg(title: str, what: str):
    @by_dim
    @named(title, f"""The index of the {what} element along `dim`; without it, of all elements.

    Raises:
        ShapeError: no elements.
    """)  # fmt: skip
    def index(x: Any, dim: Any, keepdim: bool) -> Tensor:
        lazy, largest = lazy_of(x), title == "argmax"
        at = None if dim is None else axis_of(title, dim, rank_of(lazy))
        not_empty(title, lazy, at if rank_of(lazy) else None)
        return _place.on(kind_of(x), lazy, axis=at, keepdims=keepdim, largest=largest)

    return index


argmax, argmin = _arg("argmax", "largest"), _arg("argmin", "smallest")
