"""`nonzero`, and elements selected by a mask.

If values decide the shape of the result, they are computed and read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.functions.elementwise.selection import check_mask
from weft.eager.functions.indexing.subscript import get
from weft.eager.functions.shape.movement import broadcast_shapes
from weft.eager.functions.shape.reshape import broadcast_to
from weft.eager.record.pending.access import array_if_known, array_of
from weft.eager.tensor.argument import check_same_type, dims_of, integer
from weft.eager.tensor.dispatch import cast as as_type
from weft.eager.tensor.dispatch import kind_of, lazy_of, leaf, recorded, wrap
from weft.errors import ShapeError
from weft.ir.dtype import bool_, int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.indexing import search

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


def nonzero(x: Any, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements: a row for each, or a vector for each axis."""
    array = array_of(lazy_of(x))
    found = np.atleast_1d(array).nonzero()
    if as_tuple:
        return tuple([wrap(leaf(p, lazy_of(x)), kind_of(x)) for p in found])
    places = np.stack(found, 1)[:, : array.ndim]
    return wrap(leaf(np.ascontiguousarray(places), lazy_of(x)), kind_of(x))


def nonzero_static(x: Any, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` with a given number of rows: truncated, or padded with `fill_value`.

    Its shape is static, so it can be traced.

    Raises:
        ShapeError: a negative size.

    Example:
        >>> import weft as wf
        >>> wf.nonzero_static(wf.tensor([0, 2, 3]), size=3).tolist()
        [[1], [2], [-1]]
    """
    count = integer("nonzero_static", size)
    if count < 0:
        raise ShapeError.here(f"nonzero_static: expected size >= 0, got {count}")
    given, fills = lazy_of(x), (int(fill_value),) * len(dims_of(x))
    if not fills:
        return wrap(leaf(np.zeros((count, 0), np.int64)), kind_of(x))
    return _first_nonzero.on(kind_of(x), given, size=count, fills=fills)


@recorded(differentiable=False)
def _first_nonzero(x: Value, *, size: int, fills: tuple[int, ...]) -> Value:
    found = catalogue.stack(*search.first_nonzero(x, size=size, fills=fills), axis=-1)
    return catalogue.cast(found, dtype=int64)


def argwhere(x: Any) -> Tensor:
    """`nonzero`: a row for each nonzero element."""
    return nonzero(x)


def flatnonzero(x: Any) -> Tensor:
    """The row-major positions of all nonzero elements."""
    return wrap(leaf(np.flatnonzero(array_of(lazy_of(x))), lazy_of(x)), kind_of(x))


def masked_select(x: Any, mask: Any) -> Tensor:
    """The elements where the mask is true, in row-major order; the two broadcast."""
    check_mask("masked_select", mask)
    shape = broadcast_shapes(dims_of(x), dims_of(mask))
    holds = np.broadcast_to(array_of(lazy_of(mask)), shape).astype(bool)
    wide = broadcast_to(x, shape)
    return get(wide, holds) if shape else get(wide.reshape(1), holds.reshape(1))


@recorded
def _masked_scattered(x: Value, places: Value, source: Value) -> Value:
    flat = catalogue.reshape(x, shape=(-1,))
    count = concrete(places)[0]
    updates = catalogue.slice(catalogue.reshape(source, shape=(-1,)), begin=(0,), end=(count,))
    return catalogue.reshape(ops.put_rows(flat, places, updates), shape=concrete(x))


@recorded
def _masked_where(x: Value, mask: Value, source: Value) -> Value:
    holds = catalogue.broadcast_to(mask, shape=concrete(x))
    flat = catalogue.reshape(holds, shape=(-1,))
    rank = catalogue.cumsum(catalogue.cast(flat, dtype=int64), axis=0) - 1
    place = catalogue.select(flat, rank, constant_of(0, int64))
    found = ops.take_nd(catalogue.reshape(source, shape=(-1,)), [place])
    return catalogue.select(holds, catalogue.reshape(found, shape=concrete(x)), x)


def masked_scatter(x: Any, mask: Any, source: Any) -> Tensor:
    """`x` with the elements of `source`, in order, where the mask is true; the two broadcast.

    Raises:
        ShapeError: the source has too few elements.
        OutOfRangeError: the same, when computed, if the mask is an argument of a traced function.
        DTypeError: a source of another dtype.
    """
    check_mask("masked_scatter", mask)
    check_same_type("masked_scatter", x, source)
    wide = broadcast_shapes(dims_of(x), dims_of(mask))
    lazy = lazy_of(x if wide == dims_of(x) else broadcast_to(x, wide))
    updates = as_type(lazy_of(source), lazy.type.dtype)
    array = array_if_known(lazy_of(mask))
    if array is None:
        return _masked_where.on(kind_of(x), lazy, lazy_of(mask, bool_), updates)
    places = np.flatnonzero(np.broadcast_to(array, known(lazy.type.shape)))
    if len(places) > np.prod(dims_of(source)):
        raise ShapeError.here(
            f"masked_scatter: expected a source of at least {len(places)} elements, got shape "
            f"{show(dims_of(source))}"
        )
    return _masked_scattered.on(kind_of(x), lazy, leaf(places, lazy), updates)
