"""Choices by conditions and indices, joined arrays, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft.numpy as _plain
from weft.eager.tensor.dispatch import recorded
from weft.jax.array import ALL, Array, as_array, given, jaxed, of_keys_too
from weft.jax.config import refuse_given, without_effect
from weft.jax.numpy import creation
from weft.jax.numpy.common import (
    array_of,
    dtype_promoted,
    public,
    values_of,
    where_of,
    without_gradient,
)
from weft.jax.numpy.reduction import all
from weft.ops.indexing import search
from weft.ops.special import real

plain: Any = _plain

__all__: list[str] = []

_found = recorded(search.first_nonzero, differentiable=False)
_distinct = recorded(search.first_distinct, differentiable=False)
_repeated = recorded(search.repeated, differentiable=False)
_turned = recorded(search.turned)
_same = recorded(real.isclose, differentiable=False)

# Choices


@public
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """`x` where the condition is true, `y` elsewhere; without them, the indices."""
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return where_of(array_of(condition), x, y)


def _filled(found: Any, size: int, fill: Any, axis: int = 0) -> Any:
    """Results whose number depends on values, cut or filled to a size."""
    count = found.shape[axis]
    if count >= size:
        return plain.take(found, np.arange(size), axis)
    pads = [(0, size - count if i == axis else 0) for i in range(found.ndim)]
    return plain.pad(found, pads, constant_values=0 if fill is None else fill)


@public
def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The indices of nonzero elements: a vector for each axis.

    With a `size`, the function may be traced.
    """
    x = array_of(a)
    if size is None:
        return given(np.nonzero(values_of(x, "nonzero without size")))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * x.ndim
    found = given(_found(x, size=int(size), fills=tuple([int(f or 0) for f in fills])))
    return found if isinstance(found, tuple) else (found,)


@public
def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Array:
    """The indices of nonzero elements: a row for each."""
    return given(plain.stack(nonzero(a, size=size, fill_value=fill_value), -1))


@public
def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Array:
    """The positions of nonzero elements in the flattened array."""
    return nonzero(plain.ravel(array_of(a)), size=size, fill_value=fill_value)[0]


@public
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
    fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct values, sorted; the first `size` of them, if it is given."""
    without_effect("unique", sorted=sorted)
    wanted: Any = (return_index, return_inverse, return_counts, axis)
    if size is not None and axis is None:
        x = array_of(ar)
        first, index, inverse, counts, count = _distinct(plain.ravel(x), size=int(size))
        if fill_value is not None:
            first = where_of(creation.arange(size) < given(count), given(first), fill_value)
        parts = (index, given(inverse).reshape(x.shape), counts)
        kept = [y for y, is_wanted in zip(parts, wanted, strict=False) if is_wanted]
        return given((first, *kept)) if kept else given(first)
    name = "unique without size" if size is None else "unique with axis"
    found = given(np.unique(values_of(array_of(ar), name), *wanted, equal_nan=equal_nan))
    found = without_gradient(found, "unique", ar)
    if size is None:
        return found
    parts = found if isinstance(found, tuple) else (found,)
    first = _filled(parts[0], size, parts[0].min() if fill_value is None else fill_value)
    return (first, *parts[1:]) if isinstance(found, tuple) else first


@public
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The distinct values of two arrays; the first `size` of them, if it is given."""
    both = concatenate([plain.ravel(x) for x in dtype_promoted(ar1, ar2)])
    return unique(both, size=size, fill_value=fill_value)


@public
def clip(
    arr: Any = None, /, min: Any = None, max: Any = None, *, a: Any = None, a_min: Any = None,
    a_max: Any = None,
) -> Array:  # fmt: skip
    """Values within limits."""
    limits = (a_min if min is None else min), (a_max if max is None else max)
    return _clipped(creation.asarray(a if arr is None else arr), *limits)


_clipped = jaxed(plain.clip, ALL)


@public
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Array:  # fmt: skip
    """The elements at indices along an axis; NaN, or the smallest number, outside it."""
    refuse_given("take", out=out)
    without_effect("take", indices=unique_indices, sorted=indices_are_sorted)
    x, places = array_of(a), array_of(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    size = x.shape[axis]
    if mode == "wrap":
        places = places % size
    found = given(plain.take(x, plain.clip(places, -size, size - 1), axis))
    if mode in ("clip", "wrap") or (places.lazy.array is not None and _within(places.array, size)):
        return found
    outside = (places < -size) | (places >= size)
    wide = outside.reshape((*outside.shape, *(1,) * (x.ndim - axis % x.ndim - 1)))
    fill = (
        np.nan
        if x.dtype.is_inexact
        else int(np.iinfo(x.dtype.numpy).min)
        if x.dtype.kind == "i"
        else 0
    )
    return where_of(wide, fill if fill_value is None else fill_value, found)


def _within(x: Any, size: int) -> bool:
    return bool(((x >= -size) & (x < size)).all())


@public
def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None
) -> Array:
    """The elements at indices along an axis, position by position on the others."""
    refuse_given("take_along_axis", mode=mode, fill_value=fill_value)
    x, places = array_of(arr), array_of(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    shape = list(
        np.broadcast_shapes(
            *[(*s[: axis % x.ndim], 1, *s[axis % x.ndim + 1 :]) for s in (x.shape, places.shape)]
        )
    )
    at = axis % x.ndim
    x = plain.broadcast_to(x, tuple([*shape[:at], x.shape[at], *shape[at + 1 :]]))
    places = plain.broadcast_to(places, tuple([*shape[:at], places.shape[at], *shape[at + 1 :]]))
    return given(plain.take_along_axis(x, places, axis=at))


@public
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays joined along an axis."""
    parts = list(arrays)
    found = _joined([creation.asarray(x) for x in parts], axis=axis)
    return found if dtype is None else creation.astype(found, dtype)


_joined = jaxed(plain.concat, ALL)
concat = concatenate
__all__.append("concat")


@public
@of_keys_too
def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Array:
    """Arrays joined along a new axis."""
    refuse_given("stack", out=out)
    found = _piled([creation.asarray(x) for x in arrays], axis=axis)
    return found if dtype is None else creation.astype(found, dtype)


_piled = jaxed(plain.stack, ALL)


def _stacked(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name), ALL)

    def joined(tup: Any, dtype: Any = None) -> Any:
        found = face([creation.asarray(x) for x in tup])
        return found if dtype is None else found.astype(dtype)

    joined.__name__ = joined.__qualname__ = name
    joined.__doc__ = face.__doc__
    return joined


vstack, hstack, dstack, column_stack = map(_stacked, ("vstack", "hstack", "dstack", "column_stack"))
__all__ += ["column_stack", "dstack", "hstack", "vstack"]


@public
def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Elements repeated along an axis."""
    refuse_given("repeat", out_sharding=out_sharding)
    if total_repeat_length is not None:
        x = array_of(a)
        x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
        counts = plain.broadcast_to(plain.ravel(array_of(repeats)), (x.shape[axis],))
        return given(plain.take(x, _repeated(counts, total=int(total_repeat_length)), axis))
    counts = repeats if isinstance(repeats, int) else np.asarray(repeats)
    counts = int(counts) if isinstance(counts, np.ndarray) and counts.size == 1 else counts
    return given(plain.repeat(array_of(a), counts, axis=axis))


@public
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Elements moved along axes, with wrap-around."""
    x = array_of(a)
    if not isinstance(shift, Array):
        by = shift.tolist() if isinstance(shift, np.ndarray | np.generic) else shift
        return given(plain.roll(x, by, axis))
    moved, axes = (plain.ravel(x), 0) if axis is None else (x, axis)
    axes = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    by = plain.broadcast_to(plain.ravel(array_of(shift)), (len(axes),))
    found = _turned(
        moved, *[by[i] for i in range(len(axes))], axes=tuple([i % moved.ndim for i in axes])
    )
    return given(found).reshape(x.shape)


@public
@of_keys_too
def squeeze(a: Any, axis: Any = None) -> Array:
    """The array without axes of size 1."""
    x = as_array(a)
    if axis is None:
        axis = tuple([i for i, n in enumerate(x.shape) if n == 1])
    return given(plain.squeeze(x, tuple(axis) if isinstance(axis, list) else axis))


@public
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements."""
    x, y = dtype_promoted(a1, a2)
    if x.shape != y.shape:
        return creation.array(False)
    return all(_same(x, y, rtol=0.0, atol=0.0, equal_nan=equal_nan))


@public
def einsum(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: Any = None, **_: Any,
) -> Array:  # fmt: skip
    """Sums of products by indices."""
    without_effect("einsum", optimize=optimize, precision=precision)
    if not isinstance(subscripts, str):
        found = given(plain.einsum(*_lettered(subscripts, *operands)))
    else:
        found = given(plain.einsum(subscripts, *dtype_promoted(*operands)))
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def _lettered(*given_: Any) -> list[Any]:
    """The form with lists of numbers as the form with letters."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    arrays, axes = list(given_[0::2]), list(given_[1::2])
    out = arrays.pop() if len(arrays) > len(axes) else None
    name = ",".join(["".join([letters[i] for i in row]) for row in axes])
    name += "" if out is None else "->" + "".join([letters[i] for i in out])
    return [name, *dtype_promoted(*arrays)]


def _product(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name))

    def product(
        a: Any, b: Any, *args: Any, precision: Any = None, preferred_element_type: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        without_effect(name, precision=precision)
        found = face(*dtype_promoted(a, b), *args, **options)
        return found if preferred_element_type is None else found.astype(preferred_element_type)

    product.__name__ = product.__qualname__ = name
    product.__doc__ = getattr(plain, name).__doc__
    return product


dot, matmul, inner, vdot, tensordot, outer, vecdot = (
    _product(n) for n in ("dot", "matmul", "inner", "vdot", "tensordot", "outer", "vecdot")
)
__all__ += ["dot", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]


@public
def matvec(x1: Any, x2: Any, /) -> Array:
    """Matrices times vectors."""
    return matmul(x1, array_of(x2)[..., None])[..., 0]


@public
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Conjugated vectors times matrices."""
    return matmul(plain.conj(array_of(x1))[..., None, :], x2)[..., 0, :]


@public
def block(arrays: Any) -> Array:
    """Nested lists of arrays, joined: the innermost along the last axis."""

    def depth(x: Any) -> int:
        return 1 + depth(x[0]) if isinstance(x, list) else 0

    def ranks(x: Any) -> int:
        return max(map(ranks, x)) if isinstance(x, list) else array_of(x).ndim

    levels = depth(arrays)
    rank = max(levels, ranks(arrays))

    def joined(x: Any, level: int) -> Array:
        if isinstance(x, list):
            return concatenate([joined(each, level - 1) for each in x], axis=-level)
        y = array_of(x)
        return y.reshape((*[1] * (rank - y.ndim), *y.shape))

    return joined(arrays, levels)
