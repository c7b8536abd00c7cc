"""Differences of adjacent elements, numerical gradients, integrals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.reduction import numerical_gradient, statistic
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.ir.dtype import bool_
from weft.numpy.convert import array_like, floats
from weft.numpy.manipulation import axis_within, concat
from weft.numpy.statistical import axes_within, sum

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = ["diff", "ediff1d", "gradient", "trapezoid"]


def _part(axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    """A subscript for a slice of one axis."""
    return (slice(None),) * axis + (slice(start, stop),)


def diff(
    x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> ndarray:
    """The `n`-th difference of adjacent elements along an axis; for booleans, not_equal.

    Args:
        prepend, append: arrays (or numbers) joined before and after `x` first.
    """
    x = array_like(x)
    at = axis_within("diff", axis, x.ndim)
    ends = [None if v is None else _end(v, x, at) for v in (prepend, append)]
    x = concat([v for v in (ends[0], x, ends[1]) if v is not None], axis=at)
    for _ in range(min(n, x.shape[at])):  # then nothing is left
        before, after = _part(at, None, -1), _part(at, 1, None)
        x = x[after] != x[before] if x.dtype is bool_ else x[after] - x[before]
    return x


def _end(value: Any, x: Any, axis: int) -> Any:
    end = array_like(value)
    dims = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return end if end.ndim else end.broadcast_to(dims)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> ndarray:
    """The integral along an axis by the trapezoidal rule."""
    y = array_like(y)
    at = axis_within("trapezoid", axis, y.ndim)
    at_x = None if x is None else array_like(x)
    step: Any = dx if at_x is None else diff(at_x, axis=at if at_x.ndim == y.ndim else -1)
    if at_x is not None and step.ndim == 1:
        step = step.reshape(tuple([-1 if i == at else 1 for i in range(y.ndim)]))
    return sum(statistic.areas(y, step, at), at)


def ediff1d(ary: Any) -> ndarray:
    """The differences of adjacent elements of the flattened array."""
    return diff(array_like(ary).reshape(-1))


def gradient(f: Any, *varargs: Any, axis: Any = None) -> Any:
    """Numerical gradients along axes: central differences inside, one-sided ones at the edges.

    Args:
        varargs: the distance of samples, one for all axes or one for each axis; 1 by default.

    Returns:
        An array, or a list with one for each axis if there are several.

    Raises:
        ShapeError: an axis of fewer than two samples, or distances that do not fit.
    """
    x = floats(f)
    axes = [axis_within("gradient", a, x.ndim) for a in axis] if isinstance(axis, tuple) else None
    axes = list(axes_within("gradient", axis, x.ndim)) if axes is None else axes
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if len(steps) != len(axes) or any([np.ndim(_plain(s)) for s in steps]):
        raise ShapeError.here(
            f"gradient: expected a number as distance for each of axes {tuple(axes)}, got {steps!r}"
        )
    found = [_slope(x, a, s) for a, s in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _plain(step: Any) -> Any:
    return step.array if isinstance(step, Handle) else step


def _slope(x: Any, axis: int, step: Any) -> Any:
    if x.shape[axis] < 2:
        raise ShapeError.here(
            f"gradient: expected at least 2 samples along axis {axis}, got {x.shape[axis]}"
        )
    return numerical_gradient.slope(x, axis, step)
