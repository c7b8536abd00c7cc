"""Counts and sets of elements; if values decide the shape of a result, they are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft import ops
from weft.eager.functions.indexing.gather import gather, indices
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.autograd.non_differentiable import undefined
from weft.eager.tensor.dispatch import cast as as_type
from weft.eager.tensor.dispatch import kind_of, lazy_of, leaf, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import promoted
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine
from weft.ops.indexing import search
from weft.ops.linalg.matrix import dims

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "bincount", "bucketize", "histc", "isin", "searchsorted", "unique", "unique_consecutive",
]  # fmt: skip


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights.

    Raises:
        DTypeError: numbers that are negative or no integers.
        ShapeError: no vector, different numbers of weights and elements, or a negative `minlength`.
    """
    array = array_of(indices("bincount", x))
    if array.ndim != 1 or (weights is not None and dims_of(weights) != array.shape):
        shapes = array.shape if weights is None else (array.shape, dims_of(weights))
        raise ShapeError.here(
            f"bincount: expected a vector, and weights of its shape, got {shapes}"
        )
    if minlength < 0:
        raise ShapeError.here(f"bincount: expected minlength >= 0, got {minlength}")
    if array.size and int(array.min()) < 0:
        raise DTypeError.here(
            f"bincount: expected numbers that are not negative, got {int(array.min())}"
        )
    length = max(int(array.max()) + 1 if array.size else 0, minlength)
    values = None if weights is None else lazy_of(weights)
    if values is not None and not values.type.dtype.is_floating:
        values = as_type(values, types.float64)
    return _counted.on(kind_of(x, weights), leaf(array, lazy_of(x)), values, length=length)


@recorded
def _counted(x: Value, weights: Value | None, *, length: int) -> Value:
    return ops.bincount(x, length, weights)


def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts of elements in `bins` equal bins between two limits.

    Args:
        min, max: the limits; those of the elements, if both are 0.

    Raises:
        ShapeError: no bins, or limits that are not finite or in the wrong order; when computed, if
            they come from the elements.
    """
    if bins < 1 or not -math.inf < min <= max < math.inf:
        raise ShapeError.here(_wrong_bins(bins, min, max))
    return _histc.on(kind_of(x), lazy_of(x), bins=bins, limits=(min, max))


@recorded(differentiable=False)
def _histc(x: Value, *, bins: int, limits: tuple[float, float]) -> Value:
    count = _fallen.of(bins, limits)
    return call(count, x, types_of=[(x.dtype, (bins,))], title="histc")[0]


@routine
def _fallen(bins: int, limits: tuple[float, float], array: Array) -> Array:
    """Counts for each bin between the limits, or those of the elements if both are 0."""
    low, high = limits
    if low == high == 0 and array.size:
        low, high = float(array.min()), float(array.max())
    if not -math.inf < low <= high < math.inf:
        raise ShapeError(_wrong_bins(bins, low, high))
    if low == high:
        low, high = low - 1, high + 1
    return np.histogram(array.astype(np.float64), bins, (low, high))[0]


def _wrong_bins(bins: int, low: float, high: float) -> str:
    return (
        f"histc: expected at least one bin and finite limits min <= max, got {bins} bins from "
        f"{low} to {high}"
    )


def unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    """The sorted distinct elements; optionally with inverse indices and counts.

    NaNs are all distinct.

    Args:
        sorted: no effect: they always are.
        dim: an axis whose slices are compared as a whole.
    """
    array = array_of(lazy_of(x))
    found: Any = np.unique(
        array, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False
    )
    return _several(found, x, array.shape if dim is None and return_inverse else None)


def _several(found: Any, x: Any, shape: tuple[int, ...] | None) -> Any:
    if not isinstance(found, tuple):
        return _values("unique", found, x)
    arrays = list(cast("tuple[Array, ...]", found))
    if shape is not None:
        arrays[1] = arrays[1].reshape(shape)
    return _values("unique", arrays[0], x), *[
        wrap(leaf(a, lazy_of(x)), kind_of(x)) for a in arrays[1:]
    ]


def _values(name: str, found: Array, x: Any) -> Any:
    """Distinct elements; refuses gradients for a tensor, as PyTorch does."""
    like = kind_of(x)
    y = wrap(leaf(found, lazy_of(x)), like)
    return undefined(name, y, x) if like is None or like.rules is TORCH else y


def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The elements without consecutive duplicates."""
    array = array_of(lazy_of(x))
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, dim, 0)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    new = np.ones(len(rows), bool)
    new[1:] = (flat[1:] != flat[:-1]).any(1)
    kept = rows[new] if dim is None else np.moveaxis(rows[new], 0, dim)
    found: list[Array] = [np.array(kept, order="C")]
    if return_inverse:
        place = np.cumsum(new) - 1
        found.append(place.reshape(array.shape) if dim is None else place)
    if return_counts:
        found.append(np.diff(np.append(np.flatnonzero(new), len(rows))))
    values = _values("unique_consecutive", found[0], x)
    rest = [wrap(leaf(a, lazy_of(x)), kind_of(x)) for a in found[1:]]
    return (values, *rest) if rest else values


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among `test_elements`.

    Args:
        assume_unique: no effect.
    """
    like = kind_of(elements, test_elements)
    return _isin.on(like, lazy_of(elements), lazy_of(test_elements), invert=invert)


@recorded(differentiable=False)
def _isin(x: Value, among: Value, *, invert: bool) -> Value:
    return call(_among.of(invert), x, among, types_of=[(types.bool_, dims(x))], title="isin")[0]


@routine
def _among(invert: bool, x: Array, among: Array) -> Array:
    return np.isin(x, among, invert=invert)


places_in_order = recorded(search.places_in_order, differentiable=False)


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """The index at which each value would be inserted into a sorted row; NaN goes to the end.

    NaN in a row counts as larger than every number.

    Args:
        sorter: the indices that sort the sequence, as from `argsort`.
        right: insert after equal elements; the same as `side="right"`.

    Raises:
        ArgumentError: `side` and `right` differ.
        ShapeError: rows of other leading dimensions than the values.
        OutOfRangeError: when computed, an index in `sorter` is out of bounds.
    """
    if sorter is not None:
        sorted_sequence = gather(sorted_sequence, -1, whole_numbers("searchsorted", sorter))
    pair = promoted(sorted_sequence, values)
    if right and side == "left":
        raise ArgumentError.here(
            "searchsorted: expected side or right, got side='left', right=True"
        )
    row, sought = (lazy.type.shape or () for lazy in pair)
    if len(row) > 1 and row[:-1] != sought[:-1]:
        raise ShapeError.here(
            f"searchsorted: expected one sorted row, or rows of the values' leading dimensions, "
            f"got {show(row)} and values {show(sought)}"
        )
    where = side or ("right" if right else "left")
    return places_in_order.on(
        kind_of(sorted_sequence, values), *pair, side=where, int32=out_int32, nan_last=True
    )


def whole_numbers(name: str, order: Any) -> Any:
    """A `sorter`, checked.

    Raises:
        DTypeError: it does not hold integers.
    """
    kind = lazy_of(order).type.dtype
    if not kind.is_integer:
        raise DTypeError.here(f"{name}: expected integer indices, got {kind}")
    return order


def bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the interval between sorted boundaries for each element.

    Raises:
        ShapeError: the boundaries are no vector.
    """
    if len(dims_of(boundaries)) != 1:
        raise ShapeError.here(f"bucketize: expected a vector, got {show(dims_of(boundaries))}")
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)
