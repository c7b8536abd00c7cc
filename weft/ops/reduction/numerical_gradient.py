"""Numerical gradients of samples, and integrals over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.dtype import bool_
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.slicing import cut

Part = Callable[[int, int], Value]


def slopes(x: Value, spacing: Value, *, axis: int, edge_order: int) -> Value:
    """Gradients along an axis, second-order accurate inside, `edge_order` at the edges.

    Args:
        spacing: the distance of samples, or a vector of their coordinates; in the result's dtype.
    """
    count = concrete(x)[axis]

    def at(start: int, length: int = 1) -> Value:
        return cut(x, axis, start, start + length)

    def apart(one: Value, other: Value) -> Value:  # subtract integers before converting
        return catalogue.cast(one - other, dtype=spacing.dtype)

    if concrete(spacing):
        return _uneven(x, spacing, axis, edge_order)
    inner = apart(at(2, count - 2), at(0, count - 2)) / (spacing * 2.0)
    if edge_order == 1:
        first = apart(at(1), at(0)) / spacing
        last = apart(at(count - 1), at(count - 2)) / spacing
    else:
        wide = catalogue.cast(x, dtype=spacing.dtype)
        ends = [[cut(wide, axis, k, k + 1) for k in _end(count, back)] for back in (False, True)]
        first = _edge(spacing, spacing, ends[0])
        last = -_edge(spacing, spacing, ends[1])
    return catalogue.concatenate(first, inner, last, axis=axis)


def _end(count: int, back: bool) -> list[int]:
    """The indices of the last three samples, or of the first ones."""
    return [count - 1 - i for i in range(3)] if back else [0, 1, 2]


def _uneven(x: Value, places: Value, axis: int, edge_order: int) -> Value:
    """Gradients of samples at these coordinates."""
    count = concrete(x)[axis]
    x = catalogue.cast(x, dtype=places.dtype)
    shape = tuple([-1 if i == axis else 1 for i in range(len(concrete(x)))])
    steps = catalogue.reshape(cut(places, 0, 1, count) - cut(places, 0, 0, count - 1), shape=shape)

    def at(start: int, length: int = 1) -> Value:
        return cut(x, axis, start, start + length)

    def step(start: int, length: int = 1) -> Value:
        return cut(steps, axis, start, start + length)

    a, b = step(0, count - 2), step(1, count - 2)
    weights = -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))
    inner = _weighed(weights, [at(i, count - 2) for i in range(3)])
    if edge_order == 1:
        first = (at(1) - at(0)) / step(0)
        last = (at(count - 1) - at(count - 2)) / step(count - 2)
    else:
        first = _edge(step(0), step(1), [at(k) for k in _end(count, False)])
        last = -_edge(step(count - 2), step(count - 3), [at(k) for k in _end(count, True)])
    return catalogue.concatenate(first, inner, last, axis=axis)


def _weighed(weights: Sequence[Value], parts: Sequence[Value]) -> Value:
    return parts[0] * weights[0] + parts[1] * weights[1] + parts[2] * weights[2]


def _edge(a: Value, b: Value, parts: Sequence[Value]) -> Value:
    """The second-order gradient at the first of three samples."""
    weights = -(a * 2.0 + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))
    return _weighed(weights, parts)


def areas(y: Value, width: Value, *, axis: int) -> Value:
    """The trapezoid areas between adjacent samples along an axis.

    Args:
        width: the distance of samples, one number or one each; in the result's dtype.
    """
    count = concrete(y)[axis]
    before, after = cut(y, axis, 0, max(count - 1, 0)), cut(y, axis, min(count, 1), count)
    both = catalogue.logical_or(before, after) if y.dtype is bool_ else before + after
    return catalogue.cast(both, dtype=width.dtype) * width / 2.0
