"""Slices with static sizes and computed starts: reading and replacing.

Starts are clamped so that the slice fits; nothing is out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, compatible, show
from weft.ops.declaration import Array, Case, Pull, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import ALL, count
from weft.ops.declaration.fact import Facts
from weft.ops.declaration.rule import concrete, index_dtype
from weft.ops.shape.creation import zeros_like


def _check(x: Dims, start: Shape, sizes: Dims) -> None:
    if not compatible(start, (len(x),)):
        raise ShapeError(f"start: expected shape ({len(x)},), got {show(start)}")
    fits = len(sizes) == len(x) and all(
        n is None or (n >= 0 and (d is None or n <= d)) for n, d in zip(sizes, x, strict=True)
    )
    if not fits:
        raise ShapeError(f"expected sizes that fit into x {show(x)}, got {show(sizes)}")


def _starts(x: Array, start: Array, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    places = [min(max(int(s), 0), d - n) for s, d, n in zip(start, x.shape, sizes, strict=True)]
    return tuple(slice(s, s + n) for s, n in zip(places, sizes, strict=True))


def _offsets(b: Any, x: Any, start: Any, sizes: tuple[int, ...]) -> list[Any]:
    room = [d - n for d, n in zip(x.shape, sizes, strict=True)]
    return [0 if r == 0 else b.index(start((k,)), r + 1) for k, r in enumerate(room)]


# dynamic_slice


def _slice_dtype(x: DType, start: DType, **_: Any) -> DType:
    index_dtype(start, "start")
    return x


def _slice_shape(x: Shape, start: Shape, *, sizes: Any) -> Shape:
    assert x is not None
    _check(x, start, sizes)
    return sizes


def _slice_pull(b: Any, index: Any, x: Any, start: Any, *, sizes: Any) -> Any:
    offsets = _offsets(b, x, start, sizes)
    return x(tuple(i + o for i, o in zip(index, offsets, strict=True)))


def _slice_vjp(g: Value, y: Value, x: Value, start: Value, **_: Any) -> tuple[Value, None]:
    return dynamic_update_slice(zeros_like(x), g, start), None


def _starting(*start: int, kind: Any = np.int32) -> Array:
    return np.array(start, kind)


def _slice_cases() -> Iterator[Case]:
    for dtype in ALL:
        yield Case((count((4, 7), dtype), _starting(1, 3)), {"sizes": (2, 4)})
    x = count((3, 20))
    for start in ((-5, 2), (2, 99), (0, 0)):
        yield Case((x, _starting(*start, kind=np.int64)), {"sizes": (2, 17)})
    yield Case((x, _starting(1, 1)), {"sizes": (3, 20)})
    yield Case((x, _starting(1, 1)), {"sizes": (0, 5)})


def _plain_sizes(*_: Shape, sizes: Any) -> Mapping[str, Any]:
    return {"sizes": tuple(sizes)}


dynamic_slice = defop(
    "dynamic_slice",
    inputs="x start:int32",
    attrs={"sizes": REQUIRED},
    dtype=_slice_dtype,
    shape=_slice_shape,
    reference=lambda x, start, sizes: np.array(x[_starts(x, start, sizes)], order="C"),
    vjp=_slice_vjp,
    normal=_plain_sizes,
    lower=Pull(_slice_pull),
    cases=_slice_cases,
    facts=Facts(linear=True),
)
"""The slice of `x` of shape `sizes` that begins at `start`, one index per axis."""

# dynamic_update_slice


def _update_dtype(x: DType, update: DType, start: DType) -> DType:
    index_dtype(start, "start")
    if x is not update:
        raise DTypeError(f"update: expected the dtype of x, {x}, got {update}")
    return x


def _update_shape(x: Shape, update: Shape, start: Shape) -> Shape:
    assert x is not None and update is not None
    _check(x, start, update)
    return x


def _update_reference(x: Array, update: Array, start: Array) -> Array:
    y = np.array(x)
    y[_starts(x, start, update.shape)] = update
    return y


def _update_pull(b: Any, index: Any, x: Any, update: Any, start: Any) -> Any:
    value = x(index)
    if 0 in update.shape:
        return value
    sizes = update.shape
    inner = [i - o for i, o in zip(index, _offsets(b, x, start, sizes), strict=True)]
    new = update(tuple(b.clamp(i, 0, n) for i, n in zip(inner, sizes, strict=True)))
    for i, n, d in zip(inner, sizes, x.shape, strict=True):
        new = new if n == d else b.select(b.inside(i, 0, n), new, value)
    return new


def _update_vjp(
    g: Value, y: Value, x: Value, update: Value, start: Value
) -> tuple[Value, Value, None]:
    kept = dynamic_update_slice(g, zeros_like(update), start)
    return kept, dynamic_slice(g, start, sizes=concrete(update)), None


def _update_cases() -> Iterator[Case]:
    for case in _slice_cases():
        x, start = case.inputs
        update = x[tuple(slice(n) for n in case.attrs["sizes"])]
        yield Case((x, np.array(update[::-1], order="C"), start))


dynamic_update_slice = defop(
    "dynamic_update_slice",
    inputs="x update start:int32",
    dtype=_update_dtype,
    shape=_update_shape,
    reference=_update_reference,
    vjp=_update_vjp,
    lower=Pull(_update_pull),
    cases=_update_cases,
    facts=Facts(linear=True),
)
"""`x` with the slice that begins at `start` replaced by `update`."""
