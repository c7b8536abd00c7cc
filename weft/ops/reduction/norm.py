"""Norms of vectors and matrices over given axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.linalg.factorization import svdvals
from weft.ops.linalg.matrix import dims

__all__ = ["matrix_norm", "vector_norm"]

Reduction = Callable[..., Value]


@autocasting(Autocast.FLOAT32)
def vector_norm(x: Value, *, ord: float, axes: tuple[int, ...], keepdims: bool) -> Value:
    """`sum(abs(x) ** ord) ** (1 / ord)` over axes; `ord` 0 counts nonzero elements."""
    how: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    if ord == 2 and x.dtype.is_complex:
        return length_of_complex(x, **how)
    size = catalogue.abs(x) if x.dtype.is_complex or ord not in (1, 2, math.inf) else x
    if ord in (1, 2, math.inf):
        return catalogue.norm(size, **how, ord=ord)
    if size.dtype.size == 2:  # the sum of powers may be larger than the norm by far
        wide = catalogue.cast(size, dtype="float32")
        return catalogue.cast(vector_norm(wide, ord=ord, **how), dtype=size.dtype)
    if ord == -math.inf:
        return catalogue.min(size, **how)
    if ord == 0:
        nonzero = catalogue.not_equal(size, constant_of(0, size.dtype))
        return catalogue.sum(catalogue.cast(nonzero, dtype=size.dtype), **how)
    return _power(catalogue.sum(_power(size, ord), **how), 1 / ord)


def stepwise_norm(
    x: Value, *, order: float, axes: tuple[int, ...] | None, keepdims: bool
) -> Value:  # fmt: skip
    """The norm of positive order in single steps: its gradient at 0 is NaN, as in TensorFlow.

    That of complex numbers is complex, too.
    """
    if x.dtype.is_complex:
        found = stepwise_norm(catalogue.abs(x), order=order, axes=axes, keepdims=keepdims)
        return catalogue.cast(found, dtype=x.dtype)
    how: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    if order == 2:
        return catalogue.sqrt(catalogue.sum(catalogue.square(x), **how))
    size = catalogue.abs(x)
    if order == 1:
        return catalogue.sum(size, **how)
    if order == math.inf:
        return catalogue.max(size, **how)
    return catalogue.power(catalogue.sum(catalogue.power(size, order), **how), 1.0 / order)


def length_of_complex(x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The 2-norm of real and imaginary parts; magnitudes have no derivative at 0."""
    rank = len(dims(x))
    over = (0, *[axis % rank + 1 for axis in axes])
    parts = catalogue.stack(catalogue.real(x), catalogue.imag(x), axis=0)
    y = catalogue.norm(parts, axes=over, keepdims=keepdims)
    return catalogue.squeeze(y, axes=(0,)) if keepdims else y


def _power(x: Value, exponent: float) -> Value:
    """`x ** exponent` of nonnegative numbers, with gradient 0 at 0."""
    zero, one = constant_of(0, x.dtype), constant_of(1, x.dtype)
    above = catalogue.not_equal(x, zero)
    raised = catalogue.power(catalogue.select(above, x, one), exponent)
    return catalogue.select(above, raised, constant_of(0.0 if exponent > 0 else math.inf, x.dtype))


def slice_norms(x: Value, *, dim: int | None) -> Value:
    """The 2-norm of each slice along a dimension, which stays, or of everything."""
    rank = len(dims(x))
    axes = tuple([i for i in range(rank) if dim is None or i != dim % rank])
    return catalogue.sqrt(catalogue.sum(x * x, axes=axes, keepdims=dim is not None))


def with_norms(x: Value, norms: Value, *, dim: int | None) -> Value:
    """`x` rescaled to the given norms of its slices along a dimension, or of everything."""
    return x * (norms / slice_norms(x, dim=dim))


def norms_between(
    x: Value, *, low: float, high: float, axes: Any, rate: float = 1.0, epsilon: float = 1e-7
) -> Value:
    """`x` rescaled so that its 2-norms over axes move into [low, high], by `rate` of the way."""
    size = catalogue.sqrt(catalogue.sum(catalogue.square(x), axes=axes, keepdims=True))
    wanted = catalogue.clip(size, low, high)
    if rate != 1.0:
        wanted = wanted * rate + size * (1.0 - rate)
    return x * (wanted / (size + epsilon))


def renorm(x: Value, limit: Value, *, p: float, axis: int) -> Value:
    """Slices along an axis, scaled down to a `p`-norm of at most `limit`."""
    others = tuple([i for i in range(len(dims(x))) if i != axis])
    if x.dtype.size == 2:
        wide, most = (catalogue.cast(v, dtype="float32") for v in (x, limit))
        return catalogue.cast(renorm(wide, most, p=p, axis=axis), dtype=x.dtype)
    size = vector_norm(x, ord=p, axes=others, keepdims=True)
    scale = limit / (size + constant_of(1e-7, size.dtype))
    return x * catalogue.select(catalogue.greater(size, limit), scale, constant_of(1.0, x.dtype))


def _sum(x: Value, axis: int) -> Value:
    return catalogue.sum(x, axes=(axis,), keepdims=True)


def _largest(x: Value, axis: int) -> Value:
    return catalogue.max(x, axes=(axis,), keepdims=True)


def _smallest(x: Value, axis: int) -> Value:
    return catalogue.min(x, axes=(axis,), keepdims=True)


_OF_SINGULAR: Final[dict[Any, Reduction]] = {"nuc": _sum, 2: _largest, -2: _smallest}
_OF_SUMS: Final[dict[Any, tuple[int, Reduction]]] = {
    1: (0, _largest), -1: (0, _smallest), math.inf: (1, _largest), -math.inf: (1, _smallest),
}  # fmt: skip
MATRIX_NORMS: Final = ("fro", *_OF_SINGULAR, *_OF_SUMS)


@autocasting(Autocast.FLOAT32)
def matrix_norm(x: Value, *, ord: Any, axes: tuple[int, int], keepdims: bool) -> Value:
    """One of `MATRIX_NORMS` for the matrices along the two `axes`."""
    if ord == "fro":
        return vector_norm(x, ord=2, axes=tuple(sorted(axes)), keepdims=keepdims)
    if ord in _OF_SINGULAR:
        rank = len(dims(x))
        others = [i for i in range(rank) if i not in axes]
        s = svdvals(catalogue.transpose(x, perm=(*others, *axes)))
        found = catalogue.expand_dims(_OF_SINGULAR[ord](s, -1), axis=-1)
        back = sorted(range(rank), key=(*others, *axes).__getitem__)
        found = catalogue.transpose(found, perm=tuple(back))
    else:
        first, over = _OF_SUMS[ord]
        found = over(_sum(catalogue.abs(x), axes[first]), axes[1 - first])
    return found if keepdims else catalogue.squeeze(found, axes=axes)
