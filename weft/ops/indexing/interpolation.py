"""Piecewise linear functions, and how many numbers lie between edges."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather
from weft.ops.indexing.sort import argsort
from weft.ops.shape.creation import full, ones_like


def _end(x: Value, last: bool) -> Value:
    size = concrete(x)[0]
    at = size - 1 if last else 0
    return catalogue.slice(x, begin=(at,), end=(at + 1,))


def interpolated(
    x: Value, xs: Value, ys: Value, left: Value | None = None, right: Value | None = None,
    period: Value | None = None,
) -> Value:  # fmt: skip
    """Values at `x` of the piecewise linear function through the points (xs, ys).

    Args:
        xs: increasing; any order with a period.
        left, right: values outside; by default those at the ends.
        period: of the function.
    """
    if period is not None:
        x, xs = catalogue.remainder(x, period), catalogue.remainder(xs, period)
        order = argsort(xs, axis=0)
        xs, ys = gather(xs, order), gather(ys, order)
        ends = _end(xs, True) - period, _end(xs, False) + period
        xs = catalogue.concatenate(ends[0], xs, ends[1], axis=0)
        ys = catalogue.concatenate(_end(ys, True), ys, _end(ys, False), axis=0)
    size = concrete(xs)[0]
    place = catalogue.searchsorted(xs, x, side="right")
    above = catalogue.minimum(catalogue.maximum(place, 1), max(size - 1, 1))
    below = above - 1
    above = catalogue.minimum(above, size - 1)
    x0, x1, y0, y1 = gather(xs, below), gather(xs, above), gather(ys, below), gather(ys, above)
    step = x1 - x0
    none = catalogue.equal(step, 0.0)
    found = y0 + (x - x0) / catalogue.select(none, 1.0, step) * (y1 - y0)
    found = catalogue.select(none, y0, found)
    if period is not None:
        return found
    first, last, low, high = [
        catalogue.reshape(_end(v, end), shape=()) for v in (xs, ys) for end in (False, True)
    ]
    low, high = low if left is None else left, high if right is None else right
    found = catalogue.select(catalogue.less(x, first), low, found)
    return catalogue.select(catalogue.greater(x, last), high, found)


def histogram(x: Value, edges: Value, weights: Value | None = None, *, density: bool) -> Value:
    """How many elements of a vector lie between edges; the last bin has its right edge.

    Args:
        weights: of each element, 1 by default.
        density: so that the integral is 1.
    """
    count = concrete(edges)[0] - 1
    first, last = _end(edges, False), _end(edges, True)
    place = catalogue.searchsorted(edges, x, side="right") - 1
    place = catalogue.select(catalogue.equal(x, last), count - 1, place)
    inside = catalogue.logical_and(catalogue.greater_equal(x, first), catalogue.less_equal(x, last))
    weights = ones_like(x) if weights is None else weights
    empty = full((count + 1,), 0, weights.dtype)
    found = catalogue.scatter_add(empty, catalogue.select(inside, place, count), weights)
    found = catalogue.slice(found, begin=(0,), end=(count,))
    if not density:
        return found
    widths = catalogue.slice(edges, begin=(1,), end=(count + 1,)) - catalogue.slice(
        edges, begin=(0,), end=(count,)
    )
    return found / (catalogue.sum(found) * widths)
