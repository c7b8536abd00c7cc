"""Normalization: y = (x - mean) / sqrt(variance + epsilon) * scale + offset.

Batch norm computes mean and variance over all axes but the last, and returns them as well, for the
moving averages. Layer norm computes them over the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.declaration import BY_EXPANSION, Array, Case, Composite, Opaque, defop
from weft.ops.declaration.blocked_reduction import reduced
from weft.ops.declaration.fact import AS_GIVEN, IN_FLOAT32, IN_WIDEST
from weft.ops.declaration.numeric import FLOATS, draw
from weft.ops.declaration.rule import floating, sum_like
from weft.ops.elementwise.transcendental import rsqrt
from weft.ops.reduction import reduce
from weft.ops.reduction.statistic import in_float32, mean, variance
from weft.ops.shape.creation import is_zeros

__all__ = ["normalize"]

EPSILON: Final = 1e-5


def normalize(
    x: Value, mean: Value, variance: Value, scale: Value, offset: Value, epsilon: float = EPSILON
) -> Value:
    """`x` normalized by a given mean and variance, as in batch norm in evaluation mode."""
    return (x - mean) * (rsqrt(variance + epsilon) * scale) + offset


def _check(x: Shape, scale: Shape, offset: Shape, least: int) -> Shape:
    assert x is not None
    if len(x) < least:
        raise ShapeError(f"expected x of rank {least} or more, got shape {show(x)}")
    for name, shape in (("scale", scale), ("offset", offset)):
        if not compatible(shape, x[-1:]):
            raise ShapeError(f"expected {name} of shape {show(x[-1:])}, got {show(shape)}")
    return x[-1:]


def _by(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """Normalized values, means and variances, with reduced axes kept."""
    n = math.prod(x.shape[a] for a in axes)
    m = np.divide(reduced(np.add, x, axes, True), n)
    distance = x - m
    v = np.divide(reduced(np.add, distance * distance, axes, True), n)
    return distance / np.sqrt(v + epsilon), m, v


def _in_float64(fast: Callable[..., Any]) -> Callable[..., Any]:
    """A reference on arrays of one dtype: computed in float64, rounded once."""

    def run(x: Array, *rest: Array, **attrs: Any) -> Any:
        wide = [a.astype(np.float64) for a in (x, *rest)]
        found = fast(*wide, **attrs)
        if isinstance(found, tuple):
            return tuple([y.astype(x.dtype) for y in cast("tuple[Array, ...]", found)])
        return found.astype(x.dtype)

    return run


def _cases_over(shapes: tuple[tuple[int, ...], ...]) -> Callable[[], Iterator[Case]]:
    def cases() -> Iterator[Case]:
        for i, dtype in enumerate(FLOATS):
            for shape in shapes[: 2 if i else None]:
                channels = shape[-1:]
                scale, offset = draw(channels, dtype, 0.5, 2), draw(channels, dtype, seed=1)
                yield Case((draw(shape, dtype), scale, offset), rtol=1e-5, atol=1e-5)

    return cases


# Moments of columns
def _column_moments_shape(x: Shape) -> tuple[Shape, Shape]:
    assert x is not None
    if not x:
        raise ShapeError(f"expected x of rank 1 or more, got shape {show(x)}")
    return x[-1:], x[-1:]


def _fast_column_moments(x: Array) -> tuple[Array, Array]:
    _, m, v = _by(x, _batch_axes(x), 1.0)
    return m.reshape(-1), v.reshape(-1)


def _column_moments_expand(x: Value) -> tuple[Value, Value]:
    axes = _batch_axes(x)
    return mean(x, axes=axes), variance(x, axes=axes)


def _column_moments_cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for shape in ((2, 3, 4, 5), (6, 5), (37, 33), (1, 4), (700, 3))[: 2 if i else None]:
            yield Case((draw(shape, dtype) + dtype.numpy.type(30),), rtol=1e-5, atol=1e-5)


column_moments = defop(
    "column_moments",
    inputs="x",
    dtype=lambda *dtypes: (floating(*dtypes),) * 2,
    shape=_column_moments_shape,
    reference=_in_float64(_fast_column_moments),
    fast=_fast_column_moments,
    vjp=BY_EXPANSION,
    lower=Opaque("column_moments", _column_moments_expand),
    cases=_column_moments_cases,
    outputs=2,
    facts=AS_GIVEN,
)
"""Mean and variance over all axes but the last, in one pass, accurate even far from zero."""


# Batch norm
def _batch_axes(x: Any) -> tuple[int, ...]:
    return tuple(range(len(known(x.shape)) - 1))


def _batch_norm_shape(
    x: Shape, scale: Shape, offset: Shape, epsilon: float
) -> tuple[Shape, Shape, Shape]:
    channels = _check(x, scale, offset, 2)
    return x, channels, channels


def _fast_batch_norm(
    x: Array, scale: Array, offset: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    hat, m, v = _by(x, _batch_axes(x), epsilon)
    return hat * scale + offset, m.reshape(-1), v.reshape(-1)


def _batch_norm_expand(
    x: Value, scale: Value, offset: Value, epsilon: float
) -> tuple[Value, Value, Value]:
    m, v = column_moments.all(x)
    return normalize(x, m, v, scale, offset, epsilon), m, v


def _batch_norm_vjp(
    gs: Any, ys: Any, x: Any, scale: Any, offset: Any, epsilon: float
) -> tuple[Any, ...]:
    (g, gm, gv), (_, m, v) = gs, ys
    axes = _batch_axes(x)
    n = float(math.prod(known(x.shape)[:-1]))
    inverse = rsqrt(v + epsilon)
    distance = x - m
    d_offset = reduce.sum(g, axes=axes)
    d_scale = reduce.sum(g * distance, axes=axes) * inverse
    # What is constant over a channel is computed once per channel.
    slope = scale * inverse
    along, flat = slope * inverse * d_scale / n, slope * d_offset / n
    dx = g * slope - distance * along - flat
    if not (is_zeros(gm) and is_zeros(gv)):
        dx = dx + (gm + distance * gv * 2) / n
    return dx, d_scale, d_offset


batch_norm = defop(
    "batch_norm",
    inputs="x scale offset",
    attrs={"epsilon": EPSILON},
    dtype=lambda *dtypes, **_: (floating(*dtypes),) * 3,
    shape=_batch_norm_shape,
    reference=_in_float64(_fast_batch_norm),
    fast=_fast_batch_norm,
    vjp=_batch_norm_vjp,
    lower=Composite(in_float32(_batch_norm_expand)),
    cases=_cases_over(((6, 5), (2, 3, 4, 5), (9, 1), (2, 17, 33))),
    outputs=3,
    facts=IN_FLOAT32,
)


# Layer norm
def _layer_norm_shape(x: Shape, scale: Shape, offset: Shape, epsilon: float) -> Shape:
    _check(x, scale, offset, 1)
    return x


def _fast_layer_norm(x: Array, scale: Array, offset: Array, epsilon: float) -> Array:
    hat, inverse = _fast_hat(_rows(x), epsilon)
    hat *= inverse
    hat *= scale
    hat += offset
    return hat.reshape(x.shape)


def _rows(x: Array) -> Array:
    """All axes but the last, flattened."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _fast_hat(rows: Array, epsilon: float) -> tuple[Array, Array]:
    """The rows minus their means, and the factors that normalize them.

    Sums along and over rows are matmuls with a vector, which are faster than reductions.
    """
    n = rows.shape[1]
    distance = rows - (rows @ np.full(n, 1 / max(n, 1), rows.dtype))[:, None]
    variances = np.einsum("ij,ij->i", distance, distance) / rows.dtype.type(max(n, 1))
    return distance, (1 / np.sqrt(variances + rows.dtype.type(epsilon)))[:, None]


def _hat(x: Value, epsilon: float) -> tuple[Value, Value]:
    """Normalized rows, and their scale factors."""
    m = mean(x, axes=(-1,), keepdims=True)
    inverse = rsqrt(variance(x, axes=(-1,), keepdims=True) + epsilon)
    return (x - m) * inverse, inverse


def _layer_norm_expand(x: Value, scale: Value, offset: Value, epsilon: float) -> Value:
    return _hat(x, epsilon)[0] * scale + offset


def _layer_norm_vjp(
    g: Any, y: Any, x: Any, scale: Any, offset: Any, epsilon: float
) -> tuple[Any, ...]:
    dx, d_scale = layer_norm_grad.all(g, x, scale, epsilon=epsilon)
    return dx, d_scale, sum_like(g, offset)


layer_norm = defop(
    "layer_norm",
    inputs="x scale offset",
    attrs={"epsilon": EPSILON},
    dtype=lambda *dtypes, **_: floating(*dtypes),
    shape=_layer_norm_shape,
    reference=_in_float64(_fast_layer_norm),
    fast=_fast_layer_norm,
    vjp=_layer_norm_vjp,
    lower=Composite(in_float32(_layer_norm_expand)),
    cases=_cases_over(((3, 5), (2, 3, 17), (7,), (4, 130), (2, 3, 0))),
    facts=IN_FLOAT32,
)


def _layer_norm_grad_shape(g: Shape, x: Shape, scale: Shape, epsilon: float) -> tuple[Shape, Shape]:
    if not compatible(g, _check(x, scale, scale, 1) and x):
        raise ShapeError(f"expected g of shape {show(x)}, got {show(g)}")
    return x, scale


def _fast_layer_norm_grad(g: Array, x: Array, scale: Array, epsilon: float) -> tuple[Array, Array]:
    n, gs = x.shape[-1], _rows(g)
    hat, inverse = _fast_hat(_rows(x), epsilon)
    hat *= inverse
    inner = gs * hat
    d_scale = np.ones(len(gs), x.dtype) @ inner
    share = scale / x.dtype.type(max(n, 1))
    hat *= (inner @ share)[:, None]
    hat += (gs @ share)[:, None]
    np.multiply(gs, scale, out=inner)
    inner -= hat
    inner *= inverse
    return inner.reshape(x.shape), d_scale


def _layer_norm_grad_expand(
    g: Value, x: Value, scale: Value, epsilon: float
) -> tuple[Value, Value]:
    hat, inverse = _hat(x, epsilon)
    inner = g * scale
    along = mean(inner * hat, axes=(-1,), keepdims=True)
    dx = (inner - mean(inner, axes=(-1,), keepdims=True) - hat * along) * inverse
    return dx, sum_like(g * hat, scale)


def _layer_norm_grad_cases() -> Iterator[Case]:
    for case in _cases_over(((3, 5), (2, 3, 17), (7,), (4, 130), (2, 3, 0)))():
        x, scale, g = case.inputs[0], case.inputs[1], draw(case.inputs[0].shape, FLOATS[0], seed=2)
        yield Case((g.astype(x.dtype), x, scale), rtol=1e-5, atol=1e-4)


layer_norm_grad = defop(
    "layer_norm_grad",
    inputs="g x scale",
    attrs={"epsilon": EPSILON},
    dtype=lambda *dtypes, **_: (floating(*dtypes),) * 2,
    shape=_layer_norm_grad_shape,
    reference=_in_float64(_fast_layer_norm_grad),
    fast=_fast_layer_norm_grad,
    vjp=BY_EXPANSION,
    lower=Composite(in_float32(_layer_norm_grad_expand)),
    cases=_layer_norm_grad_cases,
    outputs=2,
    facts=IN_WIDEST,
)
"""Cotangents of x and scale from that of y, for `layer_norm`."""
