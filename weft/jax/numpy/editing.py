"""Entries removed, inserted and put."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import weft.numpy as _plain
from weft.eager.tensor.dispatch import recorded
from weft.jax.array import Array, given, of_array, taken
from weft.jax.config import refuse_given, without_effect
from weft.jax.numpy import creation
from weft.jax.numpy.common import array_of, floating_of, public, values_of, without_gradient
from weft.ops.signal import phase

plain: Any = _plain

__all__: list[str] = []

# Insertion and removal


@public
def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without entries along an axis."""
    without_effect("delete", assume_unique_indices=assume_unique_indices)
    x = array_of(arr)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    kept = np.delete(np.arange(x.shape[axis]), values_of(obj, "delete"))
    return given(plain.take(x, kept, axis))


@public
def compress(condition: Any, a: Any, axis: int | None = None) -> Array:
    """The entries along an axis for which a condition holds."""
    x = array_of(a)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    return given(plain.take(x, np.flatnonzero(values_of(condition, "compress")), axis))


@public
def extract(condition: Any, arr: Any) -> Array:
    """The elements where a condition holds."""
    return compress(plain.ravel(array_of(condition)), arr)


@public
def trim_zeros(filt: Any, trim: str = "fb") -> Array:
    """A vector without zeros at its front or back."""
    x = array_of(filt)
    there = np.flatnonzero(values_of(x, "trim_zeros"))
    first = there[0] if "f" in trim.lower() and there.size else 0
    last = there[-1] + 1 if "b" in trim.lower() and there.size else len(x) * bool(there.size)
    return x[int(first) : int(last)]


@public
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """The array with entries inserted along an axis."""
    x = array_of(arr)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    places = values_of(taken(obj), "insert")
    count, rank, added = x.shape[axis], x.ndim, array_of(values)
    added = added.reshape((*[1] * (rank - added.ndim), *added.shape))
    if np.ndim(places) == 0:  # then the first axis of the values has the entries
        added = plain.moveaxis(added, 0, axis)
        times = added.shape[axis]
    else:
        times = len(np.insert(np.arange(count), places, -1)) - count
    dims = tuple([times if i == axis % rank else n for i, n in enumerate(x.shape)])
    added = plain.astype(plain.broadcast_to(added, dims), x.dtype)
    order = np.insert(np.arange(count), places, np.arange(count, count + times))
    return given(plain.take(plain.concat([x, added], axis=axis), order, axis))


@public
def resize(a: Any, new_shape: Any) -> Array:
    """The elements, repeated, in another shape."""
    x = plain.ravel(array_of(a))
    dims = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if not x.shape[0]:
        return creation.zeros(dims, x.dtype)
    return given(plain.take(x, np.arange(math.prod(dims)) % x.shape[0], 0).reshape(dims))


@public
def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with the elements on a diagonal."""
    return given(plain.diag(plain.ravel(array_of(v)), k))


@public
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy with another diagonal; `inplace` must be False."""
    refuse_given("fill_diagonal", wrap=wrap)
    if inplace:
        raise NotImplementedError(
            "JAX arrays are immutable, must use inplace=False. fill_diagonal returns a new array"
        )
    x = array_of(a)
    i = np.arange(x.shape[0] if x.shape[0] < x.shape[1] else x.shape[1])
    return x.at[tuple([i] * x.ndim)].set(val)


@public
def put(a: Any, ind: Any, v: Any, mode: Any = None, *, inplace: bool = True) -> Array:
    """A copy with values at positions of the flattened array; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    x, places = array_of(a), plain.ravel(array_of(ind))
    places, mode = (places % x.size, "clip") if mode == "wrap" else (places, mode or "clip")
    found = plain.ravel(x).at[places].set(resize(v, places.size), mode=mode)
    return found.reshape(x.shape)


@public
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy with values where a mask is true; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    found, chosen, new = [values_of(array_of(x), "place") for x in (arr, mask, vals)]
    found = np.array(found)
    np.place(found, chosen, new)
    return without_gradient(of_array(found), "place", arr, vals)


@public
def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Array:
    """A copy with values at indices along an axis; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    x, places = array_of(arr), array_of(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    grid = list(np.ogrid[tuple([slice(n) for n in places.shape])])
    grid[axis] = places
    return x.at[tuple(grid)].set(values, mode=mode)


@public
def unwrap(p: Any, discont: Any = None, axis: int = -1, period: float = 2 * math.pi) -> Array:
    """Phases without jumps of more than half a period."""
    x = floating_of(p)
    jump = float(period / 2 if discont is None else discont)
    return given(_unwrap(x, axis=axis % x.ndim, period=float(period), jump=jump))


_unwrap = recorded(phase.unwrap)
