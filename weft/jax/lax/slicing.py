"""Slices, static and dynamic, gathers and scatters under the names of `jax.lax`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.tensor.dispatch import call
from weft.jax.array import Array, as_array, of_keys_too, strong
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.ops.declaration import REGISTRY

jnp: Any = _numpy

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "gather",
    "index_in_dim",
    "index_take",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "slice",
    "slice_in_dim",
]  # fmt: skip

_SLICE: Final = REGISTRY["dynamic_slice"]
_UPDATE: Final = REGISTRY["dynamic_update_slice"]


class GatherScatterMode(Enum):
    """What happens outside an array."""

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3


class GatherDimensionNumbers(NamedTuple):
    """Which axes of indices and slices belong to which of an operand and a result."""

    offset_dims: Any
    collapsed_slice_dims: Any
    start_index_map: Any
    operand_batching_dims: Any = ()
    start_indices_batching_dims: Any = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for updates."""

    update_window_dims: Any
    inserted_window_dims: Any
    scatter_dims_to_operand_dims: Any
    operand_batching_dims: Any = ()
    scatter_indices_batching_dims: Any = ()


def _of(x: Any) -> Any:
    return strong(as_array(x))


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any = None
) -> Array:
    """The part between starts and limits, in steps."""
    steps = [1] * len(start_indices) if strides is None else strides
    bounds = zip(start_indices, limit_indices, steps, strict=True)
    return _of(operand)[tuple([builtins.slice(*map(int, b)) for b in bounds])]


def slice_in_dim(
    operand: Any, start_index: Any, limit_index: Any, stride: int = 1, axis: int = 0
) -> Array:
    """The part between a start and a limit along an axis."""
    x = _of(operand)
    key = [builtins.slice(None)] * x.ndim
    key[axis] = builtins.slice(start_index, limit_index, stride)
    return x[tuple(key)]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at an index."""
    found = jnp.take(_of(operand), jnp.array([index]), axis)
    return found if keepdims else jnp.squeeze(found, axis)


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Array:
    """The elements at indices along axes."""
    x = jnp.moveaxis(_of(src), axes, range(len(axes)))
    return x[tuple(idxs)]


def _starts(start_indices: Any, rank: int) -> Any:
    if isinstance(start_indices, Array) or not isinstance(start_indices, Sequence):
        return jnp.asarray(start_indices).astype("int32")
    if not rank:
        return jnp.zeros((0,), "int32")
    if all(isinstance(i, int | np.integer) for i in start_indices):
        return jnp.asarray(np.array(start_indices, np.int32))
    return jnp.stack([jnp.asarray(i).astype("int32").reshape(()) for i in start_indices])


def _inside(starts: Any, dims: Sequence[int], sizes: Sequence[int]) -> Any:
    """Starts as JAX takes them: negative ones from the end, then clamped so that slices fit."""
    limits = np.array([d - n for d, n in zip(dims, sizes, strict=True)], np.int32)
    wrapped = jnp.where(starts < 0, starts + np.array(dims, np.int32), starts)
    return jnp.clip(wrapped, 0, limits).astype("int32")


@of_keys_too
def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int], **_: Any) -> Array:
    """The part of a size that begins at an index; moved so that it lies inside.

    >>> dynamic_slice(jnp.arange(5), (4,), (2,)).tolist()
    [3, 4]
    """
    x, sizes = _of(operand), tuple(map(int, slice_sizes))
    if not x.ndim:
        return x
    starts = _inside(_starts(start_indices, x.ndim), x.shape, sizes)
    return call(_SLICE, x, starts, sizes=sizes)


@of_keys_too
def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Array:
    """The same along one axis."""
    x = _of(operand)
    starts, sizes = [0] * x.ndim, list(x.shape)
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(x, starts, sizes)


@of_keys_too
def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at an index along an axis."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else jnp.squeeze(found, axis)


@of_keys_too
def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, **_: Any) -> Array:
    """The array with a part replaced that begins at an index."""
    x = _of(operand)
    part = _of(update).astype(x.dtype)
    if not x.ndim:
        return part
    starts = _inside(_starts(start_indices, x.ndim), x.shape, part.shape)
    return call(_UPDATE, x, part, starts)


@of_keys_too
def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Array:
    """The same along one axis."""
    x = _of(operand)
    starts: list[Any] = [0] * x.ndim
    starts[axis] = start_index
    return dynamic_update_slice(x, update, starts)


@of_keys_too
def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Array:
    """The array with the slice at an index replaced."""
    x, part = _of(operand), _of(update)
    part = jnp.expand_dims(part, axis) if part.ndim < x.ndim else part
    return dynamic_update_slice_in_dim(x, part, index, axis)


def _places(
    indices: Any, dims: Sequence[int], sizes: Sequence[int], mapped: Sequence[int],
    collapsed: Sequence[int], offsets: Sequence[int], rank: int,
) -> Any:  # fmt: skip
    """For each axis of an operand, the index at every element of gathered slices."""
    window = [a for a in range(len(dims)) if a not in collapsed]
    batch = [a for a in range(rank) if a not in offsets]
    found: list[Any] = []
    for axis in range(len(dims)):
        shape = [1] * rank
        place = np.zeros(shape, np.int32)
        if axis in window:
            at = offsets[window.index(axis)]
            shape[at] = sizes[axis]
            place = np.arange(sizes[axis], dtype=np.int32).reshape(shape)
        if axis in mapped:
            start = indices[..., list(mapped).index(axis)]
            start = jnp.clip(start, 0, dims[axis] - sizes[axis])
            lead = [1] * rank
            for b, n in zip(batch, start.shape, strict=True):
                lead[b] = n
            place = start.reshape(tuple(lead)) + place
        found.append(place)
    return tuple(found)


def gather(
    operand: Any, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], **_: Any
) -> Array:
    """Slices of an array that begin at indices; moved so that they lie inside."""
    x, indices, n = _of(operand), _of(start_indices), dimension_numbers
    rank = indices.ndim - 1 + len(n.offset_dims)
    sizes = tuple(slice_sizes)
    args = (n.start_index_map, n.collapsed_slice_dims, tuple(n.offset_dims), rank)
    return x[_places(indices, x.shape, sizes, *args)]


def _scatter(combine: str) -> Callable[..., Array]:
    def scatter(
        operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, **_: Any
    ) -> Array:
        x, values = promoted(operand, updates)
        indices, n = _of(scatter_indices), dimension_numbers
        window = tuple(n.update_window_dims)
        sizes = [1] * x.ndim
        kept = [a for a in range(x.ndim) if a not in n.inserted_window_dims]
        for axis, at in zip(kept, window, strict=True):
            sizes[axis] = values.shape[at]
        args = (n.scatter_dims_to_operand_dims, n.inserted_window_dims, window, values.ndim)
        places = _places(indices, x.shape, sizes, *args)
        return getattr(x.at[places], combine)(values)

    scatter.__doc__ = f"An array with slices that begin at indices combined by `{combine}`."
    return scatter


scatter: Final = _scatter("set")
scatter_add: Final = _scatter("add")
scatter_sub: Final = _scatter("subtract")
scatter_mul: Final = _scatter("multiply")
scatter_min: Final = _scatter("min")
scatter_max: Final = _scatter("max")
