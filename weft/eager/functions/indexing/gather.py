"""Gather and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.elementwise.selection import chosen
from weft.eager.functions.indexing.mask import (
    argwhere,
    flatnonzero,
    masked_scatter,
    masked_select,
    nonzero,
    nonzero_static,
)
from weft.eager.functions.reduction.reduce import rank_of
from weft.eager.functions.shape.movement import broadcast_shapes
from weft.eager.functions.shape.reshape import broadcast_to, reshape
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import axis_of, dims_of, either
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "argwhere", "flatnonzero", "gather", "index_select", "masked_scatter", "masked_select",
    "nonzero", "nonzero_static", "take", "take_along_axis", "take_along_dim", "where",
]  # fmt: skip


def indices(name: str, index: Any) -> Lazy:
    """Indices as a value.

    Raises:
        DTypeError: they are no integers.
    """
    lazy = lazy_of(index)
    if not lazy.type.dtype.is_integer:
        raise DTypeError.here(
            f"{name}: expected an index of integers, got one of {lazy.type.dtype}"
        )
    return lazy


# Gathering


@recorded
def _gathered(x: Value, index: Value, *, axis: int, from_end: bool) -> Value:
    if not index.shape:
        index = catalogue.reshape(index, shape=(1,))
        return catalogue.reshape(_along(x, index, 0, from_end), shape=())
    dims, wanted = concrete(x), concrete(index)
    begin = (0,) * len(dims)
    end = tuple([d if i == axis else n for i, (d, n) in enumerate(zip(dims, wanted, strict=True))])
    if end != dims:
        x = catalogue.slice(x, begin=begin, end=end)
    index = ops.wrap_indices(index, dims[axis], from_end)
    return catalogue.take_along_axis(x, index, axis=axis)


def gather(x: Any, dim: Any, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """The elements of `x` at `index` along an axis, position by position on the other axes.

    Args:
        sparse_grad: no effect.

    Raises:
        ShapeError: an index of another rank, or larger than `x` on another axis.
        OutOfRangeError: when computed, an index outside the axis, such as a negative one.
    """
    return _gather(x, dim, index, from_end=False)


def _gather(x: Any, dim: Any, index: Any, from_end: bool) -> Tensor:
    lazy, places = row_of(lazy_of(x)), indices("gather", index)
    at, wanted = axis_of("gather", dim, rank_of(lazy)), known(places.type.shape)
    if 0 in wanted:
        return _taken.on(kind_of(x), lazy, places, axis=None, from_end=from_end)
    check_places("gather", known(lazy.type.shape), wanted or (1,), at)
    return _gathered.on(kind_of(x), lazy, places, axis=at, from_end=from_end)


def row_of(lazy: Lazy) -> Lazy:
    """A scalar as a vector of one element, as functions along an axis treat it."""
    return lazy if lazy.type.shape else lazy_of(wrap(lazy).reshape(1))


def check_places(name: str, dims: tuple[int, ...], places: tuple[int, ...], axis: int) -> None:
    """Check that indices along an axis have the rank of `x` and fit into its other axes.

    Raises:
        ShapeError: they do not.
    """
    pairs = enumerate(zip(places, dims, strict=False))
    if len(dims) != len(places) or not all(i == axis or n <= d for i, (n, d) in pairs):
        raise ShapeError.here(
            f"{name}: expected an index that fits into {show(dims)} but for dim {axis}, got shape "
            f"{show(places)}"
        )


def take_along_dim(x: Any, indices: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The elements at `indices` along an axis, with the others broadcast; without one, flattened.

    Raises:
        DTypeError: index tensors that are not int64.
        ShapeError: indices of another rank.
    """
    kind = lazy_of(indices).type.dtype
    if kind is not int64 and isinstance(indices, Handle) and indices.rules is TORCH:
        raise DTypeError.here(f"take_along_dim: expected indices of int64, got {kind}")
    at = either("take_along_dim", dim, axis)
    if at is None:
        return take(x, reshape(indices, -1))
    dims, wanted = dims_of(x), dims_of(indices)
    k = axis_of("take_along_dim", at, len(dims))
    if len(dims) != len(wanted):
        raise ShapeError.here(
            f"take_along_dim: expected indices of rank {len(dims)}, got shape {show(wanted)}"
        )
    rest = broadcast_shapes((*dims[:k], 1, *dims[k + 1 :]), (*wanted[:k], 1, *wanted[k + 1 :]))
    wide = (*rest[:k], dims[k], *rest[k + 1 :]), (*rest[:k], wanted[k], *rest[k + 1 :])
    return _gather(broadcast_to(x, wide[0]), k, broadcast_to(indices, wide[1]), from_end=True)


def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Tensor:
    """`take_along_dim`, under NumPy's name."""
    return take_along_dim(x, indices, axis)


@recorded
def _taken(x: Value, index: Value, *, axis: int | None, from_end: bool) -> Value:
    if axis is None:
        x, axis = catalogue.reshape(x, shape=(-1,)), 0
    return _along(x, index, axis, from_end)


def _along(x: Value, index: Value, axis: int, from_end: bool) -> Value:
    return ops.gather(x, ops.wrap_indices(index, concrete(x)[axis], from_end), axis=axis)


def take(x: Any, index: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The elements at `index` in the flattened tensor, or along an axis as in NumPy.

    Raises:
        OutOfRangeError: when computed, an index outside the elements.
    """
    at = either("take", dim, axis)
    at = None if at is None else axis_of("take", at, len(dims_of(x)))
    return _taken.on(kind_of(x, index), lazy_of(x), indices("take", index), axis=at, from_end=True)


def index_select(x: Any, dim: Any, index: Any) -> Tensor:
    """The slices of `x` at a vector of indices along an axis.

    Raises:
        ShapeError: an index of rank above 1.
        OutOfRangeError: when computed, an index outside the axis, such as a negative one.
    """
    lazy, places = row_of(lazy_of(x)), indices("index_select", index)
    if rank_of(places) > 1:
        raise ShapeError.here(
            f"index_select: expected a vector of indices, got shape {show(places.type.shape)}"
        )
    at = axis_of("index_select", dim, rank_of(lazy))
    found = _taken.on(kind_of(x), lazy, row_of(places), axis=at, from_end=False)
    return found if dims_of(x) else found.reshape(())


def where(condition: Any, x: Any = None, other: Any = None) -> Any:
    """`x` where the condition is true, `other` elsewhere; without them, the indices where it is
    true.

    Raises:
        DTypeError: only one of the two is given.
    """
    if x is None and other is None:
        return nonzero(condition, as_tuple=True)
    if x is None or other is None:
        raise DTypeError.here("where: expected x and other, got only one")
    return chosen(condition, x, other)
