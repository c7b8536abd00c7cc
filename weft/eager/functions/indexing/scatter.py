"""Scatter: elements written or reduced at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise.binary import factor_of
from weft.eager.functions.elementwise.declared import floor_divide
from weft.eager.functions.elementwise.selection import chosen
from weft.eager.functions.indexing.mask import (
    masked_scatter,
)
from weft.eager.functions.indexing.subscript import accumulate as add_at
from weft.eager.functions.indexing.subscript import put
from weft.eager.functions.reduction.reduce import rank_of
from weft.eager.tensor.argument import axis_of, check_same_type, dims_of
from weft.eager.tensor.dispatch import cast as as_type
from weft.eager.tensor.dispatch import kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype.dtype_info import neutral
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import undisturbed, write
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import bool_, int64, uint8
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor
from weft.eager.functions.indexing.gather import check_places, indices, row_of

__all__ = ["index_add", "index_copy", "index_fill", "scatter", "scatter_add", "scatter_reduce"]

# Scattering

COMBINES: Final = {"add": "add", "multiply": "multiply", "sum": "add", "prod": "multiply",
                   "amax": "max", "amin": "min"}  # fmt: skip


@recorded
def _scattered(x: Value, index: Value, source: Value, *, axis: int, combine: str) -> Value:
    places, updates = concrete(index), source
    if updates.shape != index.shape:
        zeros = (0,) * len(places)
        if updates.shape:
            updates = catalogue.slice(updates, begin=zeros, end=places)
        updates = catalogue.broadcast_to(updates, shape=places)
    return ops.put_along_axis(x, index, updates, axis, combine, from_end=False)


def _scatter(name: str, x: Any, dim: Any, index: Any, source: Any, combine: str) -> Tensor:
    check_same_type(name, x, source)
    if combine != "set" and lazy_of(x).type.dtype is bool_:  # a product is "and", a sum is "or"
        bytes_, put = (wrap(as_type(lazy_of(y, bool_), uint8), kind_of(x)) for y in (x, source))
        both = {"multiply": "min", "add": "max"}.get(combine, combine)
        return _scatter(name, bytes_, dim, index, put, both).bool()
    lazy, places = row_of(lazy_of(x)), row_of(indices(name, index))
    at = axis_of(name, dim, rank_of(lazy))
    if 0 in known(places.type.shape):
        return wrap(record(REGISTRY["identity"], (lazy_of(x),), {})[0], kind_of(x))
    check_places(name, known(lazy.type.shape), known(places.type.shape), at)
    updates = as_type(lazy_of(source, lazy.type.dtype), lazy.type.dtype)
    dims = known(updates.type.shape)
    pairs = zip(dims, known(places.type.shape), strict=False)
    if dims and not (len(dims) == rank_of(places) and all(d >= n for d, n in pairs)):
        raise ShapeError.here(
            f"{name}: expected a source at least as large as the index {show(places.type.shape)}, "
            f"got {show(dims)}"
        )
    found = _scattered.on(kind_of(x), lazy, places, updates, axis=at, combine=combine)
    return found if dims_of(x) else found.reshape(())


def scatter(
    x: Any, dim: Any, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`x` with the elements of `src` written at `index` along an axis; the inverse of `gather`.

    Args:
        reduce: `"add"` or `"multiply"` combines them with the elements of `x`.

    Raises:
        DTypeError: another `reduce`.
        ShapeError: an index or a source that does not fit.
    """
    if reduce is not None and reduce not in COMBINES:
        raise DTypeError.here(f"scatter: expected reduce 'add' or 'multiply', got {reduce!r}")
    combine = "set" if reduce is None else COMBINES[reduce]
    return _scatter("scatter", x, dim, index, value if src is None else src, combine)


def scatter_add(x: Any, dim: Any, index: Any, src: Any) -> Tensor:
    """`x` with the elements of `src` added at `index` along an axis.

    Raises:
        ShapeError: an index or a source that does not fit.
    """
    return _scatter("scatter_add", x, dim, index, src, "add")


def scatter_reduce(
    x: Any, dim: Any, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`x` with the elements of `src` reduced into `index` along an axis.

    Args:
        reduce: `sum`, `prod`, `mean`, `amax` (or `max`) or `amin` (or `min`).
        include_self: whether the elements of `x` at these indices count as well.

    Raises:
        DTypeError: another `reduce`.
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in COMBINES and reduce != "mean":
        raise DTypeError.here(
            f"scatter_reduce: expected sum, prod, mean, amax or amin, got {reduce!r}"
        )
    lazy = lazy_of(x)
    if lazy.type.dtype is bool_:
        small = wrap(lazy, kind_of(x)).to(uint8)
        check_same_type("scatter_reduce", x, src)
        put_in = wrap(as_type(lazy_of(src), uint8), small)
        return scatter_reduce(small, dim, index, put_in, reduce, include_self=include_self).bool()
    start = x if include_self else scatter(x, dim, index, value=neutral(reduce, lazy.type.dtype))
    combine = COMBINES.get(reduce, "add")
    total = _scatter("scatter_reduce", start, dim, index, src, combine)
    if reduce != "mean":
        return total
    none = total.new_zeros(total.shape, dtype=int64)  # a small dtype may not hold the counts
    met = _scatter("scatter_reduce", none, dim, index, 1, "add")
    count = met + 1 if include_self else met.clamp(min=1)
    return total / count if total.dtype.is_inexact else floor_divide(total, count).to(total.dtype)


@recorded
def _put_rows(
    x: Value, index: Value, rows: Value, *, axis: int, combine: str, from_end: bool
) -> Value:
    dims = concrete(x)
    shape = (*dims[:axis], *concrete(index), *dims[axis + 1 :])
    updates = rows if rows.shape else catalogue.broadcast_to(rows, shape=shape)
    return ops.put_rows(x, index, updates, combine, from_end, axis)


def at_rows(
    name: str, x: Any, dim: Any, index: Any, source: Any, combine: str, from_end: bool = False
) -> Tensor:
    """`x` with slices of `source` written or reduced at a vector of indices along an axis."""
    lazy, places = row_of(lazy_of(x)), row_of(indices(name, index))
    at = axis_of(name, dim, rank_of(lazy))
    updates = as_type(lazy_of(source, lazy.type.dtype), lazy.type.dtype)
    dims = known(lazy.type.shape)
    expected = (*dims[:at], *known(places.type.shape), *dims[at + 1 :])
    if updates.type.shape not in ((), expected) or rank_of(places) != 1:
        raise ShapeError.here(
            f"{name}: expected a vector of indices and a source of shape {show(expected)}, got "
            f"{show(places.type.shape)} and {show(updates.type.shape)}"
        )
    how: dict[str, Any] = {"axis": at, "combine": combine, "from_end": from_end}
    found = _put_rows.on(kind_of(x), lazy, places, updates, **how)
    return found if dims_of(x) else found.reshape(())


def index_add(x: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """`x` with slices of `source`, times `alpha`, added at a vector of indices along an axis.

    Raises:
        DTypeError: a source of another dtype, or an `alpha` that the dtype cannot hold.
    """
    check_same_type("index_add", x, source)
    alpha = factor_of("index_add", "alpha", alpha, lazy_of(x).type.dtype)
    return at_rows("index_add", x, dim, index, source if alpha == 1 else source * alpha, "add")


def index_copy(x: Any, dim: Any, index: Any, source: Any) -> Tensor:
    """`x` with slices of `source` at a vector of indices along an axis.

    Raises:
        DTypeError: a source of another dtype.
    """
    check_same_type("index_copy", x, source)
    return at_rows("index_copy", x, dim, index, source, "set")


def index_fill(x: Any, dim: Any, index: Any, value: Any) -> Tensor:
    """`x` with a number at a vector of indices along an axis."""
    return at_rows("index_fill", x, dim, index, value, "set", from_end=True)


class Methods(Handle):
    """The methods of this module."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """The tensor where the condition is true, `other` elsewhere."""
        return chosen(condition, self, other)

    @undisturbed
    def scatter_(
        self, dim: Any, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
    ) -> Any:
        """`scatter` in place."""
        found = scatter(self, dim, index, src, value=value, reduce=reduce)
        return write(self, found.lazy, "scatter_")

    @undisturbed
    def scatter_add_(self, dim: Any, index: Any, src: Any) -> Any:
        """`scatter_add` in place."""
        return write(self, scatter_add(self, dim, index, src).lazy, "scatter_add_")

    @undisturbed
    def index_add_(self, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        """`index_add` in place."""
        found = index_add(self, dim, index, source, alpha=alpha)
        return write(self, found.lazy, "index_add_")

    @undisturbed
    def index_copy_(self, dim: Any, index: Any, source: Any) -> Any:
        """`index_copy` in place."""
        return write(self, index_copy(self, dim, index, source).lazy, "index_copy_")

    @undisturbed
    def index_fill_(self, dim: Any, index: Any, value: Any) -> Any:
        """`index_fill` in place."""
        return write(self, index_fill(self, dim, index, value).lazy, "index_fill_")

    @undisturbed
    def scatter_reduce_(
        self, dim: Any, index: Any, src: Any, reduce: str, *, include_self: bool = True
    ) -> Any:
        """`scatter_reduce` in place."""
        found = scatter_reduce(self, dim, index, src, reduce, include_self=include_self)
        return write(self, found.lazy, "scatter_reduce_")

    @undisturbed
    def index_put_(self, indices: Any, values: Any, accumulate: bool = False) -> Any:
        """`self[indices] = values`, or `+=`.

        Raises:
            DTypeError: values of another dtype.
        """
        check_same_type("index_put_", self, values)
        (add_at if accumulate else put)(self, tuple(indices), values)
        return self

    @undisturbed
    def masked_scatter_(self, mask: Any, source: Any) -> Any:
        """`masked_scatter` in place."""
        return write(self, masked_scatter(self, mask, source).lazy, "masked_scatter_")
