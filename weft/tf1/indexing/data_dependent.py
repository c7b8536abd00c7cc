"""Operations whose shapes depend on data: a run is cut before what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import ShapeError
from weft.tf1.control.py_func import host_function
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import OPERATORS, Tensor
from weft.tf1.indexing.slicing import gather, gather_nd
from weft.tf1.shaping.arrangement import concat, reshape, shape

__all__ = [
    "boolean_mask", "dynamic_partition", "dynamic_stitch", "listdiff", "setdiff1d",
    "unique", "unique_with_counts",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def positions(condition: Any, name: str | None = None) -> Tensor:
    """The indices of true (or other than 0) elements, int64, [number, rank]."""
    flags = convert_to_tensor(condition, name="condition")
    found = host_function(
        "Where", lambda x: np.argwhere(x), [flags], [dtypes.int64], [(None, flags.shape.ndims)],
        name, alike=False,
    )  # fmt: skip
    return found.outputs[0]


def _broadcast_at(dense: Tensor, indices: Tensor) -> Tensor:
    """The elements of a tensor, broadcast over the axes of indices, at these.

    Args:
        dense: of a known rank, at most that of the indices.
        indices: [number, rank].
    """
    rank = dense.shape.ndims
    if rank is None:
        raise fail(ShapeError, "a SparseTensor's operator: expected a tensor of known rank")
    if not rank:
        return dense
    at = indices[:, -rank:]
    wide = cast(shape(dense) > 1, at.dtype)
    return gather_nd(dense, at * wide)


OPERATORS["broadcast_at"] = _broadcast_at


def boolean_mask(
    tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None
) -> Tensor:
    """The parts of a tensor at which a mask is true.

    Args:
        tensor: a tensor.
        mask: booleans, of the shape of some of the tensor's axes.
        axis: the first of these axes.

    Raises:
        ShapeError: the mask's rank is not known or 0, or its shape does not fit.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     session.run(tf.boolean_mask([1, 2, 3], [True, False, True])).tolist()
    [1, 3]
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        x = convert_to_tensor(tensor, name="tensor")
        flags = convert_to_tensor(mask, name="mask", dtype=dtypes.bool_)
        rank, at = flags.shape.ndims, axis or 0
        if not rank:
            what = "a known rank" if rank is None else "at least one axis"
            raise fail(ShapeError, f"boolean_mask: expected {what} of the mask, got {flags.shape}")
        dims = x.shape.as_list() if x.shape.ndims is not None else None
        if dims is not None:
            pairs = zip(dims[at : at + rank], flags.shape.as_list(), strict=False)
            if len(dims) < at + rank or any(None not in p and p[0] != p[1] for p in pairs):
                text = f"shapes {x.shape} and {flags.shape} are incompatible"
                raise fail(ShapeError, f"boolean_mask: {text}")
        where = reshape(positions(reshape(flags, [-1])), [-1])
        if rank > 1:
            sizes = shape(x)
            x = reshape(x, concat([sizes[:at], [-1], sizes[at + rank :]], 0))
            if dims is not None:
                x.set_shape([*dims[:at], None, *dims[at + rank :]])
        return gather(x, where, axis=at)


class Unique(NamedTuple):
    """Distinct elements, and for each element the index of its own among them."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Distinct elements, each element's index among them, and how often they occur."""

    y: Tensor
    idx: Tensor
    count: Tensor  # pyright: ignore[reportIncompatibleMethodOverride]


def _first_seen(x: Array) -> tuple[Array, Array, Array]:
    """Distinct elements in the order of their first occurrences."""
    values, first, idx, count = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values[order], rank[idx.reshape(-1)], count[order]


def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """The distinct elements of a vector in the order of their first occurrences, with counts."""
    tensor = convert_to_tensor(x, name="x")
    kind = as_dtype(out_idx)
    index = kind.as_numpy_dtype

    def distinct(x: Array) -> tuple[Array, Array, Array]:
        values, at, count = _first_seen(x)
        return values, at.astype(index), count.astype(index)

    found = host_function(
        "UniqueWithCounts", distinct, [tensor], [tensor.dtype.base_dtype, kind, kind],
        [(None,), tensor.shape.as_dims(), (None,)], name, alike=False,
    )  # fmt: skip
    return UniqueWithCounts(*found.outputs)


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in the order of their first occurrences.

    Args:
        x: a vector.
        out_idx: the type of the indices.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     y, idx = session.run(tf.unique([5, 2, 5]))
    >>> y.tolist(), idx.tolist()
    ([5, 2], [0, 1, 0])
    """
    found = unique_with_counts(x, out_idx, name or "Unique")
    return Unique(found.y, found.idx)


class ListDiff(NamedTuple):
    """Elements, and their indices."""

    out: Tensor
    idx: Tensor


def listdiff(x: Any, y: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of x that are not in y, in order, and their indices."""
    a, b = convert_to_tensor(x, name="x"), convert_to_tensor(y, name="y")

    def difference(first: Array, second: Array) -> tuple[Array, Array]:
        at = np.flatnonzero(~np.isin(first, second))
        return first[at], at.astype(as_dtype(out_idx).as_numpy_dtype)

    found = host_function(
        "ListDiff", difference, [a, b], [a.dtype.base_dtype, out_idx], [(None,), (None,)], name,
        alike=False,
    )  # fmt: skip
    return ListDiff(*found.outputs)


setdiff1d = listdiff


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """The parts of a tensor with each number.

    Args:
        data: a tensor.
        partitions: a number from 0 to num_partitions - 1 for each of its slices, int32.
        num_partitions: the number of parts.
    """
    with name_scope(name, "DynamicPartition", [data, partitions]):
        x, parts = convert_to_tensor(data), convert_to_tensor(partitions)
        rank = parts.shape.ndims or 1
        flat = reshape(parts, [-1])
        if rank > 1:
            tail = x.shape.as_list()[rank:] if x.shape.ndims is not None else None
            x = reshape(x, concat([[-1], shape(x)[rank:]], 0))
            if tail is not None:
                x.set_shape([None, *tail])
        found = host_function(
            "DynamicPartitionIndices",
            lambda n: tuple(np.flatnonzero(n == i) for i in range(num_partitions)),
            [flat], [dtypes.int64] * num_partitions, [(None,)] * num_partitions, None, alike=False,
        )  # fmt: skip
        return [gather(x, at) for at in found.outputs]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Parts put at indices; the last one counts where indices are equal.

    Args:
        indices: integers, a tensor for each part.
        data: the parts; each has its indices' axes first.
    """
    with name_scope(name, "DynamicStitch", [*indices, *data]):
        places = [reshape(convert_to_tensor(i), [-1]) for i in indices]
        parts: list[Tensor] = []
        for at, part in zip(indices, data, strict=True):
            x, rank = convert_to_tensor(part), convert_to_tensor(at).shape.ndims or 0
            tail = x.shape.as_list()[rank:] if x.shape.ndims is not None else None
            flat = reshape(x, concat([[-1], shape(x)[rank:]], 0))
            if tail is not None:
                flat.set_shape([None, *tail])
            parts.append(flat)
        both = concat(parts, 0) if len(parts) > 1 else parts[0]

        def sources(at: Array) -> Array:
            found = np.zeros(int(at.max()) + 1 if len(at) else 0, np.int64)
            found[at] = np.arange(len(at))
            return found

        joined = concat(places, 0) if len(places) > 1 else places[0]
        found = host_function(
            "DynamicStitchSources", sources, [joined], [dtypes.int64], [(None,)], None, alike=False
        )
        return gather(both, found.outputs[0])


OPERATORS["positions"] = positions
