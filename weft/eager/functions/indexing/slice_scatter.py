"""Tensors with one part replaced, selected by strides or index tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.eager.functions.indexing.scatter import at_rows, scatter_reduce
from weft.eager.functions.shape.permutation import diagonal
from weft.eager.functions.shape.reshape import broadcast_to, reshape
from weft.eager.functions.shape.splitting import part
from weft.eager.functions.shape.stride import strided
from weft.eager.tensor.argument import axis_of, check_same_type, dims_of
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import undisturbed, write
from weft.errors import DTypeError, ShapeError
from weft.ir.shape import show

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "as_strided_scatter", "diagonal_scatter", "fill", "index_put", "index_reduce", "put",
    "select_scatter", "slice_scatter",
]  # fmt: skip


def _replaced(name: str, x: Any, place: Callable[[Any], Any], src: Any) -> Tensor:
    """`x` with `src` in place of the part that the view `place` covers.

    Raises:
        ShapeError: `src` does not have the part's shape.
    """
    found = (x if isinstance(x, Handle) else wrap(lazy_of(x))).kind.clone(x)
    view = place(found)
    if dims_of(view) != dims_of(src):
        raise ShapeError.here(
            f"{name}: expected a source of shape {show(dims_of(view))}, got {show(dims_of(src))}"
        )
    view.copy_(src)
    return found


def fill(x: Any, value: Any) -> Tensor:
    """A number or one-element tensor with the shape and dtype of `x`."""
    return (x if isinstance(x, Handle) else wrap(lazy_of(x))).kind.clone(x).fill_(value)


def select_scatter(x: Any, src: Any, dim: Any, index: int) -> Tensor:
    """`x` with `src` at one index of an axis."""
    at = axis_of("select_scatter", dim, len(dims_of(x)))
    key = (slice(None),) * at + (int(index),)
    return _replaced("select_scatter", x, lambda y: part(y, key), src)


def slice_scatter(
    x: Any, src: Any, dim: Any = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """`x` with `src` at `start:end:step` of an axis."""
    at = axis_of("slice_scatter", dim, len(dims_of(x)))
    key = (slice(None),) * at + (slice(start, end, step),)
    return _replaced("slice_scatter", x, lambda y: part(y, key), src)


def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`x` with `src` on a diagonal."""
    return _replaced("diagonal_scatter", x, lambda y: diagonal(y, offset, dim1, dim2), src)


def as_strided_scatter(
    x: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """`x` with `src` in place of the elements that `as_strided` selects."""
    lens = strided("as_strided_scatter", x, size, stride, int(storage_offset or 0))
    return put(x, wrap(leaf(lens.places(), lazy_of(x))), src)


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """`x` with the elements of `source` at row-major positions.

    Args:
        accumulate: add them instead of replacing.

    Raises:
        ShapeError: the numbers of elements and positions differ.
        DTypeError: elements of another dtype.
    """
    check_same_type("put", x, source)
    if math.prod(dims_of(index)) != math.prod(dims_of(source)):
        raise ShapeError.here(
            f"put: expected as many elements as positions, got {show(dims_of(source))} and "
            f"{show(dims_of(index))}"
        )
    flat, rows = reshape(x, -1), reshape(source, -1)
    combine = "add" if accumulate else "set"
    return reshape(at_rows("put", flat, 0, reshape(index, -1), rows, combine, True), *dims_of(x))


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """`x` with `values` at `x[indices]`, or added there."""
    return x.clone().index_put_(indices, values, accumulate)


def index_reduce(
    x: Any, dim: Any, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`x` with slices of `source` reduced into a vector of indices along an axis.

    Args:
        reduce: `prod`, `mean`, `amax` or `amin`.
        include_self: whether the elements of `x` at these indices count as well.

    Raises:
        DTypeError: another `reduce`.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise DTypeError.here(f"index_reduce: expected prod, mean, amax or amin, got {reduce!r}")
    dims = dims_of(source)
    at = axis_of("index_reduce", dim, len(dims))
    row = reshape(index, *[-1 if i == at else 1 for i in range(max(len(dims), 1))])
    places = broadcast_to(row, dims or (1,))
    return scatter_reduce(x, at, places, source, reduce, include_self=include_self)


class Methods(Handle):
    """The methods of this module."""

    @undisturbed
    def put_(self, index: Any, source: Any, accumulate: bool = False) -> Any:
        """`put` in place."""
        return write(self, put(self, index, source, accumulate).lazy, "put_")

    @undisturbed
    def index_reduce_(
        self, dim: Any, index: Any, source: Any, reduce: str, *, include_self: bool = True
    ) -> Any:
        """`index_reduce` in place."""
        found = index_reduce(self, dim, index, source, reduce, include_self=include_self)
        return write(self, found.lazy, "index_reduce_")
