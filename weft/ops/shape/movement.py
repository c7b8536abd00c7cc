"""Roll, repeat, and move axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, normal_axis
from weft.ops.declaration import Case, Pull, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count, each_dtype
from weft.ops.declaration.fact import Batching, Facts
from weft.ops.declaration.rule import concrete, same
from weft.ops.indexing.gather import gather
from weft.ops.shape.reshape import axis_of

__all__ = ["moveaxis", "repeat", "rot90", "swapaxes"]

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
        raise ShapeError.here(
            f"moveaxis: expected as many different sources as destinations, got {source} and"
            f" {destination}"
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
        raise ShapeError.here(
            f"repeat: expected a number or {dims[at]} numbers that are not negative, one an element"
            f" of axis {at}, got {times}"
        )
    places = np.repeat(np.arange(dims[at]), times)
    return gather(x, constant_of(places), axis=at)
