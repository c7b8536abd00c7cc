"""Searching: argmax, sorting, selection, indexing, sets."""

# pyright: reportReturnType=false
# Functions of tensors return arrays for arrays, which type checkers do not see.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.eager.functions.creation.arange import triangle
from weft.eager.functions.elementwise import selection
from weft.eager.functions.indexing import gather
from weft.eager.functions.reduction import extremum
from weft.eager.functions.sort import counting, order
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import kind_of, lazy_of
from weft.errors import ArgumentError, DTypeError, OutOfRangeError
from weft.ir.dtype import bool_, int64
from weft.numpy.convert import alike, array_like, hosted, operands, typed
from weft.numpy.manipulation import axis_within, broadcast_arrays, ravel

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "argmax", "argmin", "argsort", "argwhere", "bincount", "choose", "digitize", "flatnonzero",
    "isin", "nonzero", "partition", "searchsorted", "select", "sort", "take", "take_along_axis",
    "tril_indices", "triu_indices", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "where",
]  # fmt: skip

# Argmax and argmin


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """The index of the largest element along an axis; without one, in the flattened array."""
    return _extreme(extremum.argmax, "argmax", x, axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """The index of the smallest element along an axis; without one, in the flattened array."""
    return _extreme(extremum.argmin, "argmin", x, axis, keepdims)


def _extreme(find: Callable[..., Any], name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    x = array_like(x)
    if axis is not None:
        axis_within(name, axis, x.ndim)
    return find(x, axis, keepdims)


# Order


def _ordered(name: str, x: Any, axis: int | None, descending: bool) -> Any:
    x = array_like(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    axis_within(name, axis, x.ndim)
    return order.sort(x, axis, descending)


def sort(
    x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> ndarray:
    """The sorted elements along an axis; without one, of the flattened array.

    Args:
        stable: no effect: equal elements always keep their order.
    """
    return _ordered("sort", x, axis, descending).values


def argsort(
    x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> ndarray:
    """The indices that sort the elements along an axis; without one, the flattened array.

    Args:
        stable: no effect: equal elements always keep their order.
    """
    return _ordered("argsort", x, axis, descending).indices


def partition(a: Any, kth: Any, axis: int | None = -1) -> ndarray:
    """`sort`, which also satisfies a partition at `kth`.

    Raises:
        OutOfRangeError: an index outside the axis.
    """
    found = sort(a, axis)
    size = found.shape[-1 if axis is None else axis]
    for index in np.ravel(kth).tolist():
        if not -size <= index < size:
            text = f"expected {-size} <= kth < {size}, got {index}"
            raise OutOfRangeError.here(f"partition: {text}")
    return found


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> ndarray:
    """The index at which each value of `x2` would be inserted into the sorted vector `x1`.

    Args:
        side: `"left"` before equal elements, `"right"` after them.
        sorter: indices that sort `x1`.
    """
    row, values = alike(x1, x2)
    row = row if sorter is None else take(row, counting.whole_numbers("searchsorted", sorter))
    kind: Any = kind_of(row, values)
    return counting.places_in_order.on(kind, lazy_of(row), lazy_of(values), side=side)


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The index of the interval between `bins` for each element.

    Args:
        bins: increasing or decreasing numbers.
        right: whether intervals include their right end instead of their left one.

    Raises:
        ArgumentError: bins that neither increase nor decrease.
    """
    bins = array_like(bins)
    if trace.now.depth or bins.ndim != 1:
        return searchsorted(bins, x, side="left" if right else "right")
    steps = np.diff(bins.array)
    if (steps >= 0).all():
        return searchsorted(bins, x, side="left" if right else "right")
    if (steps <= 0).all():
        return bins.shape[0] - searchsorted(bins[::-1], x, side="left" if right else "right")
    raise ArgumentError.here("digitize: expected bins that increase or decrease")


# Choices


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition is true, `y` elsewhere; without them, the indices."""
    condition = array_like(condition)
    if x is None and y is None:
        return nonzero(condition)
    return selection.chosen(condition, *operands(x, y))


def choose(a: Any, choices: Sequence[Any]) -> ndarray:
    """For each position, the element of the choice selected by `a`."""
    given = broadcast_arrays(*alike(*choices))
    found: Any = given[0]
    for i, x in enumerate(given[1:], 1):
        found = where(array_like(a) == i, x, found)
    return found


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ndarray:
    """For each position, the element of the first choice whose condition is true."""
    *choices, found = alike(*choicelist, default)
    for holds, x in list(zip(condlist, choices, strict=True))[::-1]:
        found = where(holds, x, found)
    return found


# Elements at indices


def take(x: Any, indices: Any, /, axis: int | None = None) -> ndarray:
    """The elements at `indices` along an axis; without one, of the flattened array."""
    x, places = array_like(x), whole("take", indices)
    if axis is None and x.ndim == 1:
        axis = 0
    return gather.take(x, typed(places, int64), axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> ndarray:
    """The elements at `indices` along an axis, position by position on the others."""
    places = typed(whole("take_along_axis", indices), int64)
    return gather.take_along_axis(array_like(x), places, axis)


def whole(name: str, indices: Any) -> Any:
    """Indices as an array.

    Raises:
        DTypeError: they are not integers.
    """
    found = array_like(indices)
    dtype = found.lazy.type.dtype
    if not dtype.is_integer and dtype is not bool_ and math.prod(found.shape):
        raise DTypeError.here(f"{name}: expected indices of integers, got {dtype}")
    return found


def nonzero(x: Any, /) -> tuple[ndarray, ...]:
    """The indices of nonzero elements: a vector for each axis."""
    x = array_like(x)
    axis_within("nonzero", 0, x.ndim)
    return gather.nonzero(x, as_tuple=True)


def argwhere(a: Any) -> ndarray:
    """The indices of nonzero elements: a row for each."""
    return gather.argwhere(array_like(a))


def flatnonzero(a: Any) -> ndarray:
    """The row-major positions of nonzero elements."""
    return gather.flatnonzero(array_like(a))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Row and column indices of a matrix's lower triangle up to its `k`-th diagonal."""
    return _triangle("tril_indices", n, k, m, True)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Row and column indices of a matrix's upper triangle from its `k`-th diagonal on."""
    return _triangle("triu_indices", n, k, m, False)


def _triangle(name: str, n: int, k: int, m: int | None, lower: bool) -> tuple[ndarray, ...]:
    found = triangle(name, n, n if m is None else m, k, lower)
    return hosted(lambda: tuple(found))


# Sets: values decide the shapes of results, so they are read


class UniqueAll(NamedTuple):
    """Distinct values, their first indices, inverse indices and counts."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCounts(NamedTuple):
    """Distinct values and their counts."""

    values: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    """Distinct values and inverse indices."""

    values: ndarray
    inverse_indices: ndarray


def unique_all(x: Any, /) -> UniqueAll:
    """The sorted distinct values with first indices, inverse indices and counts; NaNs differ."""
    return UniqueAll(*hosted(np.unique_all, array_like(x)))


def unique_counts(x: Any, /) -> UniqueCounts:
    """The sorted distinct values and their counts; NaNs differ."""
    return UniqueCounts(*hosted(np.unique_counts, array_like(x)))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The sorted distinct values and inverse indices; NaNs differ."""
    return UniqueInverse(*hosted(np.unique_inverse, array_like(x)))


def unique_values(x: Any, /) -> ndarray:
    """The sorted distinct values; NaNs differ."""
    return hosted(_sorted_values, array_like(x))


def _sorted_values(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None,
) -> Any:  # fmt: skip
    """The sorted distinct values, with optional indices and counts; NaNs are equal."""
    return hosted(
        lambda x: np.unique(x, return_index, return_inverse, return_counts, axis), array_like(ar)
    )


def isin(element: Any, test_elements: Any, *, invert: bool = False) -> ndarray:
    """Whether each element is among `test_elements`."""
    return counting.isin(array_like(element), array_like(test_elements), invert=invert)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each integer from 0 on occurs, or the sum of its weights."""
    return counting.bincount(
        array_like(x), None if weights is None else array_like(weights), minlength
    )
