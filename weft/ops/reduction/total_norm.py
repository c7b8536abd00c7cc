"""Total norms over several values, and clipping by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.ir.dtype import bool_, float32, int32
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.ops.declaration import catalogue, constant_of

Groups = tuple[tuple[int, ...], ...]


def _wide(x: Value) -> Value:
    return catalogue.cast(x, dtype=float32) if x.dtype.size == 2 else x


def norm_of(xs: Sequence[Value], p: float, groups: Groups) -> Value:
    """The p-norm of all elements of all values.

    Args:
        groups: for each value, the numbers of the process groups that hold its other parts.
    """
    kinds = dict.fromkeys(groups)
    parts = [
        _part([_wide(x) for x, g in zip(xs, groups, strict=True) if g == kind], p, kind)
        for kind in kinds
    ]
    if p == math.inf:
        return parts[0] if len(parts) == 1 else catalogue.max(catalogue.stack(*parts))
    total = parts[0] if len(parts) == 1 else catalogue.add_n(*parts)
    if p == 2:
        return catalogue.sqrt(total)
    return total if p in (0, 1) else catalogue.power(total, 1 / p)


def _part(xs: Sequence[Value], p: float, groups: tuple[int, ...]) -> Value:
    """The partial norm of some values: a maximum or a sum of powers of their magnitudes."""
    if p == 2:
        return _over_ranks(catalogue.add_n(*[_squares(x) for x in xs]), "sum", groups)
    sizes = [catalogue.abs(x) for x in xs]
    if p in (0, math.inf):
        most = catalogue.stack(*[_largest(s) for s in sizes])
        if p == math.inf:
            return _over_ranks(catalogue.max(most), "max", groups)
        # the number of values that are not all zero, as in PyTorch
        some = catalogue.not_equal(_over_ranks(most, "max", groups), constant_of(0, most.dtype))
        return catalogue.sum(catalogue.cast(some, dtype=most.dtype))
    powers = [catalogue.sum(s if p == 1 else catalogue.power(s, p)) for s in sizes]
    return _over_ranks(catalogue.add_n(*powers), "sum", groups)


def _squares(x: Value) -> Value:
    """The sum of squares; not of magnitudes, whose derivative at 0 counts as 0."""
    if not x.dtype.is_complex:
        return catalogue.sum(x * x)
    return catalogue.sum(catalogue.square(catalogue.real(x)) + catalogue.square(catalogue.imag(x)))


def _largest(x: Value) -> Value:
    """The largest of nonnegative numbers; 0 if there are none."""
    return catalogue.max(x) if size(known(x.shape)) else constant_of(0, x.dtype)


def _over_ranks(x: Value, reduction: str, groups: tuple[int, ...]) -> Value:
    for group in groups:
        x = catalogue.all_reduce.all(x, reduction=reduction, group=group)[0]
    return x


def limited(most: Value, *grads: Value, p: float, groups: Groups) -> tuple[Value, ...]:
    """The total norm of values, and the values scaled down if it exceeds `most`."""
    total = norm_of(grads, p, groups)
    share = catalogue.cast(most, dtype=total.dtype) / (total + 1e-6)
    factor = catalogue.minimum(share, constant_of(1, total.dtype))
    return total, *[g * catalogue.cast(factor, dtype=g.dtype) for g in grads]


def size_of_all(*xs: Value, p: float) -> Value:
    """The Euclidean norm of all elements of all values."""
    return norm_of(xs, p, ((),) * len(xs))


def bounded(most: Value, *grads: Value) -> tuple[Value, ...]:
    """Values clipped to `most` in magnitude."""
    found: list[Value] = []
    for g in grads:
        bound = catalogue.cast(most, dtype=g.dtype)
        found.append(catalogue.minimum(catalogue.maximum(g, -bound), bound))
    return tuple(found)


def unscaled(inverse: Value, *gs: Value, groups: tuple[int, ...]) -> tuple[Value, ...]:
    """The gradients times a number, and whether all of them are finite.

    Args:
        groups: numbers of the process groups that hold other parts of them.
    """
    found = [g * catalogue.cast(inverse, dtype=g.dtype) for g in gs]
    finite = catalogue.all(catalogue.isfinite(found[0]))
    for g in found[1:]:
        finite = catalogue.logical_and(finite, catalogue.all(catalogue.isfinite(g)))
    for group in groups:
        least = catalogue.cast(finite, dtype=int32)
        found_everywhere = catalogue.all_reduce.all(least, reduction="min", group=group)[0]
        finite = catalogue.cast(found_everywhere, dtype=bool_)
    return (*found, finite)


def scaled_to(x: Value, limit: Value, *, axes: Any, average: bool) -> Value:
    """`x` scaled down to a norm over axes of at most `limit`.

    Args:
        average: whether the norm is divided by the number of elements.
    """
    squares = catalogue.sum(catalogue.square(x), axes=axes, keepdims=True)
    above = catalogue.greater(squares, 0)
    length = catalogue.select(above, catalogue.sqrt(catalogue.select(above, squares, 1)), 0)
    if average:
        length = length / catalogue.cast(catalogue.size_of(x), dtype=x.dtype)
    return x * limit / catalogue.maximum(length, limit)


def share_of(norm: Value, limit: Value) -> Value:
    """limit / max(norm, limit); NaN if the norm is not finite, so that this is noticed."""
    factor = limit * catalogue.minimum(1.0 / norm, 1.0 / limit)
    return catalogue.select(catalogue.isfinite(norm), factor, float("nan"))
