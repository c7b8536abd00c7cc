"""Slopes of functions that samples are known of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from weft.eager.functions.shape.joining import cat
from weft.eager.functions.shape.movement import narrow
from weft.eager.functions.shape.reshape import reshape
from weft.eager.tensor.argument import axes_of, axis_of, dims_of
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.ops.base import at_user_line

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["gradient"]


def gradient(
    x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Slopes along axes, of second order inside and of order `edge_order` at the ends.

    Args:
        spacing: the distance of samples, one for all axes (by default 1) or one an axis; or a
            vector an axis of the samples' coordinates.
        dim: the axes, all by default.

    Returns:
        A tensor an axis.

    Raises:
        ShapeError: an axis of too few samples, or spacings that do not fit.

    >>> import weft as wf
    >>> wf.gradient(wf.tensor([1.0, 2.0, 4.0, 7.0]))[0].tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    tensor = x if isinstance(x, Handle) else wrap(lazy_of(x))
    spacing = 1 if spacing is None else spacing
    rank = len(dims_of(tensor))
    axes = axes_of("gradient", dim, rank)
    if isinstance(dim, list | tuple):
        axes = [axis_of("gradient", axis, rank) for axis in cast("Sequence[Any]", dim)]
    several = isinstance(spacing, list | tuple)
    given: Sequence[Any] = spacing if several else [spacing] * len(axes)
    if len(given) != len(axes):
        raise ShapeError(
            f"gradient: expected a spacing for each of {len(axes)} dims, got {len(given)}"
            f"{at_user_line()}"
        )
    return tuple(
        [slope(tensor, axis, step, edge_order) for axis, step in zip(axes, given, strict=True)]
    )


def slope(x: Any, axis: int, spacing: Any, edge_order: int = 1) -> Any:
    """Slopes along one axis.

    Args:
        spacing: the distance of samples, or a vector of their coordinates.

    Raises:
        ShapeError: too few samples, an order other than 1 and 2, or coordinates of another number.
    """
    dims = dims_of(x)
    count = dims[axis]
    if edge_order not in (1, 2) or count < edge_order + 1:
        raise ShapeError(
            f"gradient: expected an edge_order of 1 or 2 and more samples than it along dim {axis},"
            f" got edge_order={edge_order} and {count} samples{at_user_line()}"
        )
    shape = [-1 if i == axis else 1 for i in range(len(dims))]
    steps = _steps(spacing, count, shape)

    def at(start: int, length: int = 1) -> Any:
        return narrow(x, axis, start, length)

    def step(start: int, length: int = 1) -> Any:
        return narrow(steps, axis, start, length) if isinstance(steps, Handle) else steps

    if not isinstance(steps, Handle):
        inner = (at(2, count - 2) - at(0, count - 2)) / (2 * steps)
    else:
        a, b = step(0, count - 2), step(1, count - 2)
        weights = -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))
        inner = _weighed(*weights, [at(i, count - 2) for i in range(3)])
    if edge_order == 1:
        first = (at(1) - at(0)) / step(0)
        last = (at(count - 1) - at(count - 2)) / step(count - 2)
    else:
        first = _edge(step(0), step(1), [at(i) for i in range(3)])
        last = -_edge(step(count - 2), step(count - 3), [at(count - 1 - i) for i in range(3)])
    return cat([first, inner, last], axis)


def _weighed(a: Any, b: Any, c: Any, parts: Sequence[Any]) -> Any:
    return parts[0] * a + parts[1] * b + parts[2] * c


def _edge(a: Any, b: Any, parts: Sequence[Any]) -> Any:
    """The slope at the first of three samples, of second order."""
    return _weighed(-(2.0 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)), parts)


def _steps(spacing: Any, count: int, shape: list[int]) -> Any:
    """The distances of neighbours: one number, or a tensor that broadcasts along the axis."""
    dims = () if isinstance(spacing, int | float | complex) else dims_of(spacing)
    if not dims:
        return spacing if isinstance(spacing, int | float | complex) else spacing.item()
    if dims != (count,):
        raise ShapeError(
            f"gradient: expected {count} coordinates, got shape {dims}{at_user_line()}"
        )
    places = spacing if isinstance(spacing, Handle) else wrap(lazy_of(spacing))
    return reshape(narrow(places, 0, 1, count - 1) - narrow(places, 0, 0, count - 1), shape)
