"""Sorting along an axis: sort, argsort, top_k, argmax, argmin, searchsorted.

NaN counts as larger than every number, as in NumPy's order. Equal elements keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, bool_, int32, int64
from weft.ir.node import Value
from weft.ir.shape import Shape, normal_axis, show
from weft.ops.declaration import NO_GRADIENT, Array, Case, Composite, Opaque, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import ALL, count
from weft.ops.declaration.fact import IN_WIDEST, Autocast, Batching, Facts
from weft.ops.declaration.rule import concrete, front_axis, index_dtype
from weft.ops.shape.creation import full, iota

__all__ = ["argsort", "scatter_along_axis"]


def _mixed(shape: tuple[int, ...], dtype: DType) -> Array:
    """An example with repeated elements, out of order; floats have a NaN and both zeros."""
    size = math.prod(shape)
    x = (np.arange(size) * 7 % 11 - 3 * (dtype.kind in "if")).astype(dtype.numpy)
    if dtype.is_floating and size > 4:
        x[[1, 3, 4]] = [np.nan, -0.0, 0.0]
    return x.reshape(shape)


def _keys(x: Array) -> Array:
    """An array with the same order in a dtype that NumPy sorts with NaN last."""
    return x.astype(np.float32) if as_dtype(x.dtype).name in ("bfloat16", "float16") else x


# sort and argsort


def _order(x: Array, axis: int, descending: bool) -> Array:
    keys = _keys(x)
    if not descending:
        return np.argsort(keys, axis, kind="stable")
    turned = np.flip(np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - turned


def _sort_shape(x: Shape, *, axis: int, **_: Any) -> tuple[Shape, Shape]:
    assert x is not None
    if not x:
        raise ShapeError("expected x of rank at least 1, got shape ()")
    normal_axis(axis, len(x))
    return x, x


def _sort_reference(x: Array, *, axis: int, descending: bool) -> tuple[Array, Array]:
    order = _order(x, axis, descending)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def _sort_vjp(g: Any, y: Any, x: Value, *, axis: int, **_: Any) -> tuple[Value]:
    return (scatter_along_axis(g[0], y[1], concrete(x)[axis], axis),)


def _sort_cases() -> Iterator[Case]:
    for dtype in ALL:
        for descending in (False, True):
            attrs = {"axis": -1, "descending": descending}
            yield Case((_mixed((2, 9), dtype),), attrs, differentiate=False)
    x = np.array([[3.0, -1.0, 2.5], [0.0, 7.0, 5.0]], np.float32)
    for axis in (0, 1):
        yield Case((x,), {"axis": axis})
    yield Case((_mixed((70,), int32),), {"descending": True})
    yield Case((np.zeros((3, 0), np.float32),))


sort = defop(
    "sort",
    inputs="x",
    attrs={"axis": -1, "descending": False},
    dtype=lambda x, **_: (x, int32),
    shape=_sort_shape,
    reference=_sort_reference,
    vjp=_sort_vjp,
    normal=front_axis,
    lower=Opaque("sort"),
    cases=_sort_cases,
    outputs=2,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.AXIS),
)
"""The sorted elements, and (second output) their original int32 indices."""


def argsort(x: Value, axis: int = -1, descending: bool = False) -> Value:
    """The int32 indices that sort `x`; equal elements keep their order."""
    return sort.all(x, axis=axis, descending=descending)[1]


# top_k


def _top_k_shape(x: Shape, *, k: Any) -> tuple[Shape, Shape]:
    assert x is not None
    if not x:
        raise ShapeError("expected x of rank at least 1, got shape ()")
    if not isinstance(k, int) or k < 0 or (x[-1] is not None and k > x[-1]):
        raise ShapeError(f"k: expected 0 <= k <= x.shape[-1], got {k} for shape {show(x)}")
    return (*x[:-1], k), (*x[:-1], k)


def _top_k_reference(x: Array, *, k: int) -> tuple[Array, Array]:
    order = _order(x, x.ndim - 1, True)[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


def scatter_along_axis(g: Value, indices: Value, size: int, axis: int) -> Value:
    """Zeros of `size` along `axis`, with each element of `g` added at its index.

    The transpose of `take_along_axis`; `g` and `indices` have one shape, which must be known.
    """
    dims = concrete(g)
    at = normal_axis(axis, len(dims))
    order = (*[i for i in range(len(dims)) if i != at], at)
    rest = tuple(dims[i] for i in order[:-1])
    rows, picked = math.prod(rest), dims[at]

    def flat(x: Value) -> Value:
        return catalogue.reshape(catalogue.transpose(x, perm=order), shape=(rows, picked))

    places = flat(catalogue.cast(indices, dtype=int64))
    places = places + iota(shape=(rows, 1), dtype=int64) * size
    shape = (rows * picked,)
    added = catalogue.scatter_add(
        full((rows * size,), 0, g.dtype),
        catalogue.reshape(places, shape=shape),
        catalogue.reshape(flat(g), shape=shape),
    )
    back = tuple(order.index(i) for i in range(len(dims)))
    return catalogue.transpose(catalogue.reshape(added, shape=(*rest, size)), perm=back)


def _top_k_cases() -> Iterator[Case]:
    for dtype in ALL:
        yield Case((_mixed((2, 9), dtype),), {"k": 4}, differentiate=False)
    x = np.array([[3.0, -1.0, 2.5], [0.0, 7.0, 5.0]], np.float32)
    for k in (0, 1, 2, 3):
        yield Case((x,), {"k": k})
    yield Case((_mixed((70,), int32),), {"k": 1})


top_k = defop(
    "top_k",
    inputs="x",
    attrs={"k": REQUIRED},
    dtype=lambda x, **_: (x, int32),
    shape=_top_k_shape,
    reference=_top_k_reference,
    vjp=lambda g, y, x, **_: (scatter_along_axis(g[0], y[1], concrete(x)[-1], -1),),
    lower=Opaque("top_k"),
    cases=_top_k_cases,
    outputs=2,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.LEADING),
)
"""The `k` largest of each row, largest first, and their int32 indices; ties by index."""

# argmax and argmin


def _arg_dtype(x: DType, *, dtype: Any, **_: Any) -> DType:
    return index_dtype(as_dtype(dtype), "dtype")


def _arg_shape(x: Shape, *, axis: int, keepdims: bool, **_: Any) -> Shape:
    assert x is not None
    if not x:
        raise ShapeError("expected x of rank at least 1, got shape ()")
    at = normal_axis(axis, len(x))
    if x[at] == 0:
        raise ShapeError(f"expected a non-empty axis {at}, got shape {show(x)}")
    return (*x[:at], *((1,) if keepdims else ()), *x[at + 1 :])


def _arg_reference(function: Any) -> Any:
    def reference(x: Array, *, axis: int, keepdims: bool, dtype: Any) -> Array:
        found = function(_keys(x), axis=axis, keepdims=keepdims)
        return np.asarray(found).astype(as_dtype(dtype).numpy)

    return reference


def _arg_cases() -> Iterator[Case]:
    for dtype in ALL:
        yield Case((_mixed((3, 7), dtype),), {"axis": 1})
    for axis in (0, 1, -1):
        yield Case((_mixed((4, 35, 3), int32),), {"axis": axis, "keepdims": True, "dtype": int32})
    yield Case((count((1,)),), {"axis": 0})
    yield Case((np.zeros((0, 2), np.float32),), {"axis": 1})


def _arg_reduction(name: str, combine: str, function: Any) -> Any:
    return defop(
        name,
        inputs="x",
        attrs={"axis": REQUIRED, "keepdims": False, "dtype": int64},
        dtype=_arg_dtype,
        shape=_arg_shape,
        reference=_arg_reference(function),
        vjp=NO_GRADIENT,
        normal=front_axis,
        lower=Opaque("argreduce", combine=combine),
        cases=_arg_cases,
        facts=Facts(autocast=Autocast.KEPT, batching=Batching.AXIS),
    )


argmax = _arg_reduction("argmax", "maximum", np.argmax)
argmin = _arg_reduction("argmin", "minimum", np.argmin)

# searchsorted


def _search_dtype(sorted: DType, values: DType, **_: Any) -> DType:
    if sorted is not values:
        raise DTypeError(f"expected one dtype, got {sorted} and {values}")
    return int32


def _search_shape(sorted: Shape, values: Shape, *, side: str) -> Shape:
    if sorted is not None and len(sorted) != 1:
        raise ShapeError(f"sorted: expected rank 1, got shape {show(sorted)}")
    if side not in ("left", "right"):
        raise ShapeError(f"side: expected left or right, got {side!r}")
    return values


def _search_reference(sorted: Array, values: Array, *, side: Any) -> Array:
    return np.searchsorted(_keys(sorted), _keys(values), side).astype(np.int32)


def _search_expand(sorted: Value, values: Value, *, side: str) -> Value:
    before = comes_before(sorted, catalogue.expand_dims(values, axis=-1), side)
    return catalogue.sum(catalogue.cast(before, dtype=int32), axes=(-1,))


def comes_before(x: Value, y: Value, side: str) -> Value:
    """Whether `y` is inserted after `x`; with side `"right"`, also after equal elements."""
    is_left = side == "left"
    found = (catalogue.less if is_left else catalogue.less_equal)(x, y)
    if not y.dtype.is_floating:
        return found
    last = catalogue.not_equal(y, y)
    last = catalogue.logical_and(last, catalogue.equal(x, x)) if is_left else last
    return catalogue.logical_or(found, last)


searchsorted = defop(
    "searchsorted",
    inputs="sorted values",
    attrs={"side": "left"},
    dtype=_search_dtype,
    shape=_search_shape,
    reference=_search_reference,
    vjp=NO_GRADIENT,
    lower=Composite(_search_expand),
    cases=lambda: [
        Case((np.array([1, 2, 2, 5], d.numpy), count((2, 3), d)), {"side": side})
        for d in ALL
        if d is not bool_
        for side in ("left", "right")
    ],
    facts=IN_WIDEST,
)
"""The index at which each value would be inserted into a sorted row."""
