"""Masks that prune the entries or slices with the smallest scores."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.creation.constructor import zeros_like
from weft.eager.functions.reduction.norm import norm
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import show


def checked_shape(x: Any, like: Any) -> Any:
    """Scores or a mask, checked to have the parameter's shape."""
    if tuple(x.shape) != tuple(like.shape):
        raise ShapeError.here(
            f"prune: expected scores or a mask {show(tuple(like.shape))} as of the parameter, got "
            f"{show(tuple(x.shape))}"
        )
    return x


def axis_of(t: Any, dim: int) -> int:
    """A dimension counted from 0."""
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(
            f"prune: expected a dimension of {show(tuple(t.shape))}, got {dim}{at_user_line()}"
        )
    return dim % t.ndim


def slice_count(t: Any, dim: int) -> int:
    """The number of slices along a dimension."""
    if t.ndim < 2:
        raise ArgumentError.here(
            f"prune: expected a parameter of rank 2 or more to take slices of, got "
            f"{show(tuple(t.shape))}"
        )
    return t.shape[axis_of(t, dim)]


def without(mask: Any, sizes: Any, count: int) -> Any:
    """A mask that is also zero where the scores are smallest."""
    if count == 0:
        return mask.clone()
    flat = mask.reshape(-1).clone()
    flat[sizes.topk(count, largest=False).indices] = 0
    return flat.reshape(mask.shape)


def without_slices(mask: Any, sizes: Any, count: int, dim: int) -> Any:
    """A mask that is also zero in the slices with the smallest scores."""
    axis = axis_of(mask, dim)
    kept = zeros_like(mask)
    places = sizes.topk(sizes.numel() - count).indices
    kept[(*[slice(None)] * axis, places)] = 1
    return kept * mask


def slice_norms(t: Any, n: Any, dim: int) -> Any:
    """The norms of the slices along a dimension."""
    axis = axis_of(t, dim)
    return norm(t, p=n, dim=[d for d in range(t.ndim) if d != axis])
