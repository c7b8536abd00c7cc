"""Numerical gradients of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.eager.functions.reduction.statistic import beside
from weft.eager.tensor.argument import axes_of, axis_of, dims_of
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded, wrap
from weft.eager.tensor.elementwise import check_truths
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.ops.reduction import numerical_gradient

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["gradient"]


def gradient(
    x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Numerical gradients along axes, second-order accurate inside, `edge_order` at the edges.

    Args:
        spacing: the distance of samples, one for all axes (by default 1) or one for each axis; or
            for each axis a vector of coordinates.
        dim: the axes; all by default.

    Returns:
        A tensor for each axis.

    Raises:
        ShapeError: an axis with too few samples, or spacings that do not fit.

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
        raise ShapeError.here(
            f"gradient: expected a spacing for each of {len(axes)} dims, got {len(given)}"
        )
    return tuple(
        [slope(tensor, axis, step, edge_order) for axis, step in zip(axes, given, strict=True)]
    )


def slope(x: Any, axis: int, spacing: Any, edge_order: int = 1) -> Any:
    """Numerical gradients along one axis.

    Args:
        spacing: the distance of samples, or a vector of their coordinates.

    Raises:
        ShapeError: too few samples, an order other than 1 and 2, or a wrong number of coordinates.
    """
    dims = dims_of(x)
    count = dims[axis]
    if edge_order not in (1, 2) or count < edge_order + 1:
        raise ShapeError.here(
            f"gradient: expected an edge_order of 1 or 2 and more samples than it along dim {axis},"
            f" got edge_order={edge_order} and {count} samples"
        )
    spaced = dims_of(spacing) if isinstance(spacing, Handle) or np.ndim(spacing) else ()
    if spaced not in ((), (count,)):
        raise ShapeError.here(f"gradient: expected {count} coordinates, got shape {spaced}")
    check_truths(x)
    return _slopes.on(kind_of(x, spacing), *beside(x, spacing), axis=axis, edge_order=edge_order)


_slopes = recorded(numerical_gradient.slopes)
