"""Arrays from shapes and numbers (iota, arange, one_hot, band_part), and shapes of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, float32, int32, int64
from weft.ir.extent import symbolic
from weft.ir.node import Value
from weft.ir.shape import Shape, normal_axis, show
from weft.ops.declaration import (
    NO_GRADIENT,
    Array,
    Case,
    Composite,
    Pull,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.declaration.attribute import REQUIRED, UNKNOWN
from weft.ops.declaration.example import NUMBERS, count, each_dtype
from weft.ops.declaration.fact import AS_GIVEN, Autocast, Batching, Facts
from weft.ops.declaration.rule import (
    attribute_shape,
    checked_shape,
    concrete,
    front_new_axis,
    index_dtype,
    same,
    scalar_shape,
    shape_argument,
)

__all__ = ["eye", "full", "full_like", "ones_like", "tril", "triu", "zeros_like"]

# The shapes of arrays, as values. Specializing a graph turns them into constants.


def _integral(_: DType, *, dtype: Any) -> DType:
    return index_dtype(as_dtype(dtype), "dtype")


def _folded(number: Any) -> Any:
    """An expansion into the constant that `number` computes from a concrete shape."""

    def expand(x: Value, *, dtype: Any) -> Value:
        return constant_of(np.array(number(concrete(x)), as_dtype(dtype).numpy))

    return Composite(expand)


shape_of = defop(
    "shape_of",
    inputs="x",
    attrs={"dtype": int32},
    dtype=_integral,
    shape=lambda x, **_: (None if x is None else len(x),),
    reference=lambda x, dtype: np.array(x.shape, as_dtype(dtype).numpy),
    vjp=NO_GRADIENT,
    lower=_folded(tuple),
    cases=lambda: [Case((count((2, 3)),)), Case((count(()),), {"dtype": int64})],
    partial=True,
    facts=AS_GIVEN,
)

size_of = defop(
    "size_of",
    inputs="x",
    attrs={"dtype": int32},
    dtype=_integral,
    shape=scalar_shape,
    reference=lambda x, dtype: np.array(x.size, as_dtype(dtype).numpy),
    vjp=NO_GRADIENT,
    lower=_folded(math.prod),
    cases=lambda: [Case((count((2, 3)),))],
    partial=True,
    facts=AS_GIVEN,
)

rank_of = defop(
    "rank_of",
    inputs="x",
    attrs={"dtype": int32},
    dtype=_integral,
    shape=scalar_shape,
    reference=lambda x, dtype: np.array(x.ndim, as_dtype(dtype).numpy),
    vjp=NO_GRADIENT,
    lower=_folded(len),
    cases=lambda: [Case((count((2, 3)),))],
    partial=True,
    facts=AS_GIVEN,
)

# Ranges


def _iota_dtype(*, dtype: Any, **_: Any) -> DType:
    found = as_dtype(dtype)
    if found.kind == "b":
        raise DTypeError("dtype: expected a numeric dtype, got bool")
    return found


def _iota_shape(*, shape: Any, axis: int, **_: Any) -> Shape:
    dims = attribute_shape(shape=shape)
    if dims is not None:
        normal_axis(axis, len(dims))
    return dims


def _iota_reference(*, shape: Any, axis: int, dtype: Any) -> Array:
    dims = (shape,) if isinstance(shape, int) else shape
    at = normal_axis(axis, len(dims))
    line = np.arange(dims[at]).reshape([-1 if i == at else 1 for i in range(len(dims))])
    return np.array(np.broadcast_to(line, dims)).astype(as_dtype(dtype).numpy)


def _iota_normal(*, shape: Any, axis: int, dtype: Any) -> Mapping[str, Any]:
    dims = checked_shape(shape) or ()
    return {"shape": dims, "axis": normal_axis(axis, len(dims)), "dtype": dtype}


iota = defop(
    "iota",
    inputs="",
    attrs={"shape": REQUIRED, "axis": 0, "dtype": int32},
    dtype=_iota_dtype,
    shape=_iota_shape,
    reference=_iota_reference,
    vjp=NO_GRADIENT,
    normal=_iota_normal,
    lower=Pull(
        lambda b, index, *, axis, dtype, **_: b.scalar(index[axis % len(index)], as_dtype(dtype))
    ),
    cases=lambda: [
        *[Case((), {"shape": (3, 5), "axis": 1, "dtype": d}) for d in NUMBERS],
        Case((), {"shape": (67,)}),
        Case((), {"shape": (3, 4), "axis": -2}),
        Case((), {"shape": (0,)}),
    ],
    partial=True,
)


# number_of(n) = n, a size: no constant where it differs from run to run
number_of = defop(
    "number_of",
    inputs="",
    attrs={"size": REQUIRED, "dtype": int64},
    dtype=lambda *, dtype, **_: as_dtype(dtype),
    shape=lambda **_: (),
    reference=lambda size, dtype: np.array(size, as_dtype(dtype).numpy),
    vjp=NO_GRADIENT,
    lower=Pull(lambda b, index, *, size, dtype: b.scalar(size, as_dtype(dtype))),
    cases=lambda: [Case((), {"size": 7, "dtype": d}) for d in NUMBERS],
    partial=True,
)


def _arange_length(start: float, stop: float, step: float) -> int:
    if step == 0:
        raise ShapeError("step: expected a number other than 0, got 0")
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        if symbolic(start, stop, step):
            return max(-((start - stop) // step), 0)
        return len(range(start, stop, step))
    return max(math.ceil((stop - start) / step), 0)


def _arange_shape(*, start: Any, stop: Any, step: Any, **_: Any) -> Shape:
    if UNKNOWN in (start, stop, step):
        return (None,)
    return (_arange_length(start, stop, step),)


def _arange_expand(*, start: Any, stop: Any, step: Any, dtype: Any) -> Value:
    steps = iota(shape=(_arange_length(start, stop, step),), dtype=dtype)
    scaled = steps if step == 1 else catalogue.multiply(steps, step)
    return scaled if start == 0 else catalogue.add(scaled, start)


def _arange_reference(*, start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    kind = as_dtype(dtype).numpy
    steps = np.arange(_arange_length(start, stop, step)).astype(kind)
    return (steps * np.array(step, kind) + np.array(start, kind)).astype(kind)


arange = defop(
    "arange",
    inputs="",
    attrs={"start": 0, "stop": REQUIRED, "step": 1, "dtype": int32},
    dtype=_iota_dtype,
    shape=_arange_shape,
    reference=_arange_reference,
    vjp=NO_GRADIENT,
    lower=Composite(_arange_expand),
    cases=lambda: [
        Case((), {"stop": 5}),
        Case((), {"start": 7, "stop": -4, "step": -3, "dtype": int64}),
        Case((), {"start": 0.5, "stop": 2.0, "step": 0.25, "dtype": float32}),
        Case((), {"start": 3, "stop": 3}),
    ],
    partial=True,
    facts=AS_GIVEN,
)

# one_hot


def _one_hot_dtype(indices: DType, *, dtype: Any, **_: Any) -> DType:
    index_dtype(indices)
    return as_dtype(dtype)


def _one_hot_shape(indices: Shape, *, depth: Any, axis: int, **_: Any) -> Shape:
    if indices is None:
        return None
    if depth is not UNKNOWN and depth < 0:
        raise ShapeError(f"depth: expected a number that is not negative, got {depth}")
    at = normal_axis(axis, len(indices) + 1)
    return (*indices[:at], None if depth is UNKNOWN else depth, *indices[at:])


def _one_hot_reference(indices: Array, *, depth: int, on: Any, off: Any, axis: int, dtype: Any):
    at = normal_axis(axis, indices.ndim + 1)
    classes = np.arange(depth).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
    hit = np.expand_dims(indices, at) == classes
    kind = as_dtype(dtype).numpy
    return np.where(hit, np.array(on, kind), np.array(off, kind)).astype(kind)


def _one_hot_expand(
    indices: Value, *, depth: int, on: Any, off: Any, axis: int, dtype: Any
) -> Value:
    at = normal_axis(axis, len(concrete(indices)) + 1)
    column = catalogue.cast(catalogue.expand_dims(indices, axis=at), dtype=int64)
    line = iota(shape=tuple(depth if i == at else 1 for i in range(at + 1)), axis=at, dtype=int64)
    if at < len(concrete(indices)):
        tail = (1,) * (len(concrete(indices)) - at)
        line = catalogue.reshape(line, shape=(*concrete(line), *tail))
    kind = as_dtype(dtype)
    return catalogue.select(
        catalogue.equal(column, line), constant_of(on, kind), constant_of(off, kind)
    )


def _one_hot_cases() -> Iterator[Case]:
    indices = np.array([[0, 2, 4], [5, -1, 1]], np.int32)
    for axis in (-1, 0, 1):
        yield Case((indices,), {"depth": 5, "axis": axis})
    yield Case((indices.astype(np.int64),), {"depth": 3, "on": 5, "off": -1, "dtype": int32})
    yield Case((np.array(1, np.uint8),), {"depth": 2})
    yield Case((indices,), {"depth": 0})


one_hot = defop(
    "one_hot",
    inputs="indices:int32",
    attrs={"depth": REQUIRED, "on": 1, "off": 0, "axis": -1, "dtype": float32},
    dtype=_one_hot_dtype,
    shape=_one_hot_shape,
    reference=_one_hot_reference,
    vjp=NO_GRADIENT,
    normal=front_new_axis,
    lower=Composite(_one_hot_expand),
    cases=_one_hot_cases,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, batching=Batching.AXIS),
)

# Parts of matrices


def _band_shape(x: Shape, **_: Any) -> Shape:
    assert x is not None
    if len(x) < 2:
        raise ShapeError(f"expected x of rank at least 2, got shape {show(x)}")
    return x


def _band_reference(x: Array, *, lower: int | None, upper: int | None) -> Array:
    rows, columns = x.shape[-2:]
    distance = np.arange(columns) - np.arange(rows)[:, None]
    low, high = _band(rows, columns, lower, upper)
    inside = (low <= distance) & (distance < high)
    return np.where(inside, x, np.zeros((), x.dtype))


def _band(rows: int, columns: int, lower: int | None, upper: int | None) -> tuple[int, int]:
    return -rows if lower is None else -lower, columns if upper is None else upper + 1


def _band_pull(b: Any, index: Any, x: Any, *, lower: int | None, upper: int | None) -> Any:
    rows, columns = x.shape[-2:]
    low, high = _band(rows, columns, lower, upper)
    return b.select(b.inside(index[-1] - index[-2], low, high), x(index), b.const(0, x.dtype))


band_part = defop(
    "band_part",
    inputs="x",
    attrs={"lower": None, "upper": None},
    dtype=same,
    shape=_band_shape,
    reference=_band_reference,
    vjp=lambda g, y, x, **attrs: (band_part(g, **attrs),),
    lower=Pull(_band_pull),
    cases=lambda: [
        *each_dtype((3, 5), lower=1, upper=0),
        *[Case((count((2, 5, 4)),), {"lower": a, "upper": b}) for a, b in ((None, 1), (-1, None))],
    ],
    facts=Facts(linear=True, batching=Batching.LEADING),
)
"""Keep entries at most `lower` below and `upper` above the diagonal; `None` keeps a whole side."""


def tril(x: Value, k: int = 0) -> Value:
    """The lower triangle, up to the `k`-th diagonal."""
    return band_part(x, upper=k)


def triu(x: Value, k: int = 0) -> Value:
    """The upper triangle, from the `k`-th diagonal on."""
    return band_part(x, lower=-k)


# Filled arrays


def full(shape: Any, value: Any, dtype: Any = None) -> Value:
    """An array filled with a number; the number and the shape, or parts of it, may be values."""
    scalar = value
    if not isinstance(value, Value):
        scalar = constant_of(value, None if dtype is None else as_dtype(dtype))
    return catalogue.broadcast_to(scalar, shape=shape)


def full_like(x: Value, value: Any) -> Value:
    """An array filled with a number, with the shape and dtype of `x`."""
    return full(shape_argument(x), value, x.dtype)


def zeros_like(x: Value) -> Value:
    """Zeros with the shape and dtype of `x`."""
    return full_like(x, 0)


def is_zeros(x: Value) -> bool:
    """Whether a value is known to be all zeros, as from `zeros_like`."""
    node = x.node.inputs[0].node if x.node.op == "broadcast_to" else x.node
    return node.op == "constant" and not node.attrs["value"].array.any()


def ones_like(x: Value) -> Value:
    """Ones with the shape and dtype of `x`."""
    return full_like(x, 1)


def eye(rows: Any, columns: Any = None, dtype: Any = float32) -> Value:
    """The identity matrix; `columns` defaults to `rows`."""
    wide = rows if columns is None else columns
    diagonal = catalogue.equal(iota(shape=(rows, 1), axis=0), iota(shape=(1, wide), axis=1))
    return catalogue.cast(diagonal, dtype=dtype)
