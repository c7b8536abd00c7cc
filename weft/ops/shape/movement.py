"""Roll, repeat, move axes; and grids of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType, as_dtype, float32
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, normal_axis, show
from weft.ops.base import Array, Case, Pull, at_user_line, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count, each_dtype
from weft.ops.declaration.fact import Batching, Facts
from weft.ops.declaration.rule import concrete, same
from weft.ops.indexing.gather import gather
from weft.ops.shape.creation import full, iota
from weft.ops.shape.reshape import axis_of

__all__ = [
    "broadcast_arrays", "linspace", "logspace", "meshgrid", "moveaxis", "repeat", "rot90",
    "swapaxes", "tri", "vander",
]  # fmt: skip

# roll


def _shifts(x: Dims, shifts: Any, axes: Any) -> dict[int, int]:
    """The shift of each axis; several for one axis add up."""
    by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    along = (axes,) if isinstance(axes, int) else tuple(axes)
    if len(by) != len(along):
        raise ShapeError(f"shifts: expected one for each of axes {along}, got {by}")
    found: dict[int, int] = {}
    for shift, axis in zip(by, along, strict=True):
        at = normal_axis(axis, len(x))
        found[at] = found.get(at, 0) + shift
    return found


def _roll_shape(x: Shape, *, shifts: Any, axes: Any) -> Shape:
    assert x is not None
    _shifts(x, shifts, axes)
    return x


def _roll_normal(x: Dims, *, shifts: Any, axes: Any) -> Mapping[str, Any]:
    found = _shifts(x, shifts, axes)
    by = {a: s % (x[a] or 1) for a, s in sorted(found.items())}
    kept = {a: s for a, s in by.items() if s}
    return {"shifts": tuple(kept.values()), "axes": tuple(kept)}


def _roll_pull(b: Any, index: Any, x: Any, *, shifts: Any, axes: Any) -> Any:
    by = _shifts(x.shape, shifts, axes)
    return x(
        tuple(
            (i + (d - by[k])) % d if k in by else i
            for k, (i, d) in enumerate(zip(index, x.shape, strict=True))
        )
    )


def _roll_vjp(g: Value, y: Value, x: Value, *, shifts: Any, axes: Any) -> tuple[Value]:
    by = -shifts if isinstance(shifts, int) else tuple(-s for s in shifts)
    return (roll(g, shifts=by, axes=axes),)


def _roll_cases() -> Iterator[Case]:
    yield from each_dtype((3, 5), shifts=(1, -2), axes=(0, 1))
    for shifts, axes in ((7, 1), ((1, 1), (0, 0)), ((), ()), (-1, -2)):
        yield Case((count((4, 19)),), {"shifts": shifts, "axes": axes})
    yield Case((count((0, 3)),), {"shifts": 2, "axes": 0})


roll = defop(
    "roll",
    inputs="x",
    attrs={"shifts": REQUIRED, "axes": REQUIRED},
    dtype=same,
    shape=_roll_shape,
    reference=lambda x, shifts, axes: np.roll(x, shifts, axes),
    vjp=_roll_vjp,
    normal=_roll_normal,
    lower=Pull(_roll_pull),
    cases=_roll_cases,
    facts=Facts(linear=True, batching=Batching.AXES),
)
"""Elements shifted by `shifts` along `axes`, with wrap-around."""

# Axes


def moveaxis(x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """Move the axes `source` to the positions `destination`; the others keep their order.

    Raises:
        ShapeError: axes outside the rank or repeated, or different numbers of axes.
    """
    old, new = (
        [axis_of("moveaxis", x, a) for a in ((axes,) if isinstance(axes, int) else axes)]
        for axes in (source, destination)
    )
    if len(set(old)) != len(old) or len(set(new)) != len(new) or len(old) != len(new):
        raise ShapeError(
            f"moveaxis: expected as many different sources as destinations, got {source} and"
            f" {destination}{at_user_line()}"
        )
    rank = x.rank or 0
    rest = iter([a for a in range(rank) if a not in old])
    places = dict(zip(new, old, strict=True))
    return catalogue.transpose(
        x, perm=tuple(places[i] if i in places else next(rest) for i in range(rank))
    )


def swapaxes(x: Value, axis1: int, axis2: int) -> Value:
    """Swap two axes."""
    a, b = (axis_of("swapaxes", x, axis) for axis in (axis1, axis2))
    order = list(range(x.rank or 0))
    order[a], order[b] = order[b], order[a]
    return catalogue.transpose(x, perm=tuple(order))


def rot90(x: Value, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Value:
    """Rotate by `k` quarter turns, from the first axis to the second."""
    a, b = (axis_of("rot90", x, axis) for axis in axes)
    for _ in range(k % 4):
        x = catalogue.flip(swapaxes(x, a, b), axes=(a,))
    return x


# Repetition


def repeat(x: Value, repeats: int | Sequence[int], axis: int | None = None) -> Value:
    """Repeat each element along an axis, as in NumPy; one number, or one for each element.

    Without an axis, the flattened array is repeated.

    Raises:
        ShapeError: the numbers of repeats and elements differ; the shape must be known.
    """
    if axis is None:
        x, axis = catalogue.reshape(x, shape=(-1,)), 0
    dims = concrete(x)
    at = axis_of("repeat", x, axis)
    times = [repeats] if isinstance(repeats, int) else [int(n) for n in repeats]
    if len(times) == 1:
        wide = catalogue.expand_dims(x, axis=at + 1)
        spread = catalogue.broadcast_to(wide, shape=(*dims[: at + 1], times[0], *dims[at + 1 :]))
        return catalogue.reshape(spread, shape=(*dims[:at], dims[at] * times[0], *dims[at + 1 :]))
    if len(times) != dims[at] or min(times, default=0) < 0:
        raise ShapeError(
            f"repeat: expected a number or {dims[at]} numbers that are not negative, one an element"
            f" of axis {at}, got {times}{at_user_line()}"
        )
    places = np.repeat(np.arange(dims[at]), times)
    return gather(x, constant_of(places), axis=at)


def broadcast_arrays(*xs: Value) -> tuple[Value, ...]:
    """All values broadcast to their common shape, which must be known."""
    shape = np.broadcast_shapes(*[concrete(x) for x in xs])
    return tuple(catalogue.broadcast_to(x, shape=shape) for x in xs)


def meshgrid(*xs: Value, indexing: str = "xy") -> tuple[Value, ...]:
    """Coordinate grids from a vector for each axis, in NumPy's order `xy` or `ij`.

    Raises:
        ShapeError: values of a rank other than 0 and 1, or another order.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: expected order xy or ij, got {indexing!r}{at_user_line()}")
    if any(len(concrete(x)) > 1 for x in xs):
        shapes = ", ".join(show(x.shape) for x in xs)
        raise ShapeError(f"meshgrid: expected rank 0 or 1, got {shapes}{at_user_line()}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    sizes = [math.prod(concrete(x)) for x in xs]
    shape = tuple(sizes[order.index(i)] for i in range(len(xs)))
    lines = [
        catalogue.reshape(x, shape=tuple(sizes[n] if k == i else 1 for k in range(len(xs))))
        for n, (x, i) in enumerate(zip(xs, order, strict=True))
    ]
    return tuple(catalogue.broadcast_to(line, shape=shape) for line in lines)


# Grids of numbers


def tri(rows: int, columns: int | None = None, k: int = 0, dtype: Any = float32) -> Value:
    """Ones up to the `k`-th diagonal, zeros above."""
    wide = rows if columns is None else columns
    line, column = iota(shape=(1, wide), axis=1), iota(shape=(rows, 1), axis=0)
    return catalogue.cast(catalogue.less_equal(line, column + k), dtype=as_dtype(dtype))


def linspace(
    start: float | Value, stop: float | Value, num: int, endpoint: bool = True, dtype: Any = float32
) -> Value:
    """`num` evenly spaced numbers from `start` to `stop`, inclusive if `endpoint`.

    `start` and `stop` may be values that broadcast, and get gradients; the new axis is the first.
    """
    kind = as_dtype(dtype)
    if not isinstance(start, Value) and not isinstance(stop, Value):
        return _numbers(np.linspace(start, stop, num, endpoint), kind)
    first, last = (
        v if isinstance(v, Value) else constant_of(np.array(v, kind.numpy)) for v in (start, stop)
    )
    first, last = broadcast_arrays(first, last)
    shape = (num, *[1] * len(concrete(first)))
    part = iota(shape=shape, axis=0, dtype=first.dtype) / max(num - endpoint, 1)
    return catalogue.cast(first * (1 - part) + last * part, dtype=kind)


def _numbers(x: Array, dtype: DType) -> Value:
    """Numbers as a constant of a dtype; integers are rounded down, as in NumPy."""
    return constant_of((np.floor(x) if dtype.is_integer else x).astype(dtype.numpy))


def logspace(
    start: float, stop: float, num: int, endpoint: bool = True, base: float = 10.0,
    dtype: Any = float32,
) -> Value:  # fmt: skip
    """`base` to the powers of `linspace(start, stop, num, endpoint)`."""
    return _numbers(np.logspace(start, stop, num, endpoint, base), as_dtype(dtype))


def vander(x: Value, columns: int | None = None, increasing: bool = False) -> Value:
    """The Vandermonde matrix of a vector, highest power first unless `increasing`.

    Raises:
        ShapeError: a rank other than 1.
    """
    dims = concrete(x)
    if len(dims) != 1:
        raise ShapeError(f"vander: expected x of rank 1, got shape {show(dims)}{at_user_line()}")
    count = dims[0] if columns is None else columns
    ones = full((dims[0], min(count, 1)), 1, x.dtype)
    if count <= 1:
        return ones
    column = catalogue.reshape(x, shape=(dims[0], 1))
    same = catalogue.broadcast_to(column, shape=(dims[0], count - 1))
    powers = catalogue.cumprod(catalogue.concatenate(ones, same, axis=1), axis=1)
    return powers if increasing else catalogue.flip(powers, axes=(1,))
