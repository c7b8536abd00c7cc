"""Composite reductions: mean, variance, norm, logsumexp.

They expand into reductions and elementwise steps that fuse into one kernel. Half precision is
computed in float32 throughout and rounded once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Shape, known, normal_axes
from weft.ops.declaration import Array, Case, Composite, Op, catalogue, constant_of, defop
from weft.ops.declaration.blocked_reduction import reduced
from weft.ops.declaration.fact import IN_FLOAT32, Autocast, Facts
from weft.ops.declaration.numeric import Rule, widened
from weft.ops.declaration.rule import floating, inexact, reduced_shape
from weft.ops.elementwise.arithmetic import abs, divide, sign, square
from weft.ops.elementwise.compare import equal, isfinite, select
from weft.ops.elementwise.convert import cast
from weft.ops.elementwise.transcendental import exp, log, sqrt
from weft.ops.reduction import reduce
from weft.ops.reduction.reduce import (
    REDUCTION,
    Axes,
    count,
    divisor,
    kept,
    normal,
    reduction_cases,
    shared,
    spread,
)

__all__ = ["moments"]


def in_wider(dtype: DType, expand: Rule) -> Rule:
    """An `expand` that computes narrower floating-point dtypes in `dtype` and rounds once."""

    @functools.wraps(expand)
    def run(x: Any, *rest: Any, **attrs: Any) -> Any:
        if not x.dtype.is_floating or x.dtype.size >= dtype.size:
            return expand(x, *rest, **attrs)
        wide = [cast(v, dtype=dtype) if v.dtype is x.dtype else v for v in (x, *rest)]
        found = expand(*wide, **attrs)
        if isinstance(found, tuple):
            return tuple(cast(y, dtype=x.dtype) for y in found)
        return cast(found, dtype=x.dtype)

    return run


def in_float32(expand: Rule) -> Rule:
    """An `expand` that rounds half precision once, at its end."""
    return in_wider(types.float32, expand)


def _composite(
    name: str, expand: Rule, reference: Rule, vjp: Rule, *, shape: Rule = reduced_shape,
    attrs: Mapping[str, Any] | None = None, variants: Sequence[Mapping[str, Any]] = (),
    dtype: Rule = floating, facts: Facts = IN_FLOAT32,
) -> Op:  # fmt: skip
    def cases() -> Iterator[Case]:
        yield from reduction_cases("f" if dtype is floating else "fc", empty=True)()
        for variant in variants:
            yield from (replace(c, attrs={**c.attrs, **variant}) for c in reduction_cases("f")())

    def run(x: Array, **attrs: Any) -> Array:
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        return np.asarray(reference(x.astype(wide), **attrs)).astype(x.dtype)

    return defop(
        name, inputs="x", dtype=dtype, shape=shape, reference=widened(run), vjp=vjp,
        lower=Composite(in_float32(expand)), cases=cases,
        attrs={**REDUCTION, **(attrs or {})}, normal=normal, fast=reference,
        facts=facts,
    )  # fmt: skip


def _number(x: Array, axes: Axes) -> int:
    return math.prod(x.shape[a] for a in normal_axes(axes, x.ndim))


_sum = functools.partial(reduced, np.add)


# mean(x) = sum(x) / n
def _mean_reference(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.divide(_sum(x, axes, keepdims), _number(x, axes))


def _mean_expand(x: Value, axes: Axes, keepdims: bool) -> Value:
    return divide(reduce.sum(x, axes=axes, keepdims=keepdims), divisor(count(x, axes), x.dtype))


def _mean_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    return (spread(g / divisor(count(x, axes), x.dtype), x, axes, keepdims),)


mean = _composite(
    "mean", _mean_expand, _mean_reference, _mean_vjp, dtype=inexact,
    facts=Facts(autocast=Autocast.FLOAT32, linear=True),
)  # fmt: skip


# variance(x) = sum((x - mean(x)) ** 2) / (n - ddof), in two passes
def _variance_reference(x: Array, axes: Axes, keepdims: bool, ddof: int) -> Array:
    distance = x - _mean_reference(x, axes, True)
    return np.divide(_sum(distance * distance, axes, keepdims), max(_number(x, axes) - ddof, 0))


def _variance_expand(x: Value, axes: Axes, keepdims: bool, ddof: int) -> Value:
    distance = x - mean(x, axes=axes, keepdims=True)
    total = reduce.sum(square(distance), axes=axes, keepdims=keepdims)
    return divide(total, divisor(max(count(x, axes) - ddof, 0), x.dtype))


def _variance_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool, ddof: int) -> tuple[Any, ...]:
    distance = x - mean(x, axes=axes, keepdims=True)
    free = divisor(max(count(x, axes) - ddof, 0), x.dtype)
    return (kept(g, x, axes, keepdims) * distance * constant_of(2, x.dtype) / free,)


variance = _composite(
    "variance", _variance_expand, _variance_reference, _variance_vjp, attrs={"ddof": 0},
    variants=({"ddof": 1},),
)  # fmt: skip


# std(x) = sqrt(variance(x)); its gradient is 0 if all x are equal
def _std_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool, ddof: int) -> tuple[Any, ...]:
    zero = constant_of(0, y.dtype)
    flat = equal(y, zero)
    scale = select(flat, zero, g * 0.5 / select(flat, constant_of(1, y.dtype), y))
    return _variance_vjp(scale, y, x, axes, keepdims, ddof)


std = _composite(
    "std",
    lambda x, **attrs: sqrt(variance(x, **attrs)),
    lambda x, **attrs: np.sqrt(_variance_reference(x, **attrs)),
    _std_vjp,
    attrs={"ddof": 0},
    variants=({"ddof": 1},),
)


def moments(x: Value, axes: Axes = None, keepdims: bool = False) -> tuple[Value, Value]:
    """Mean and variance of `x` over `axes`."""
    return (
        mean(x, axes=axes, keepdims=keepdims),
        variance(x, axes=axes, keepdims=keepdims),
    )


# logsumexp(x) = m + log(sum(exp(x - m))), m the maximum, if finite
def _logsumexp_reference(x: Array, axes: Axes, keepdims: bool) -> Array:
    m = np.max(x, axis=normal_axes(axes, x.ndim), keepdims=True, initial=-np.inf)
    m = np.where(np.isfinite(m), m, 0.0)
    total = _sum(np.exp(x - m), axes, True)
    return (np.log(total) + m).reshape(known(reduced_shape(x.shape, axes, keepdims)))


def _finite_or_zero(m: Value) -> Value:
    return select(isfinite(m), m, constant_of(0, m.dtype))


def _logsumexp_expand(x: Value, axes: Axes, keepdims: bool) -> Value:
    if not count(x, axes):
        return log(reduce.sum(x, axes=axes, keepdims=keepdims))
    m = _finite_or_zero(reduce.max(x, axes=axes, keepdims=True))
    total = reduce.sum(exp(x - m), axes=axes, keepdims=True)
    y = log(total) + m
    return y if keepdims else catalogue.reshape(y, shape=reduced_shape(x.shape, axes))


def _logsumexp_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    # Nothing but minus infinity: no element has a share. Infinity and NaN spread as in a softmax.
    total = kept(y, x, axes, keepdims)
    nothing = equal(total, constant_of(-math.inf, total.dtype))
    share = exp(x - select(nothing, constant_of(0, total.dtype), total))
    return (kept(g, x, axes, keepdims) * share,)


logsumexp = _composite("logsumexp", _logsumexp_expand, _logsumexp_reference, _logsumexp_vjp)


# norm(x): the sum of magnitudes (ord 1), the Euclidean length (2), the largest magnitude (inf)
def _norm_reference(x: Array, axes: Axes, keepdims: bool, ord: float) -> Array:
    a = np.abs(x)
    if ord == math.inf:
        return np.max(a, axis=normal_axes(axes, x.ndim), keepdims=keepdims, initial=0.0)
    return _sum(a, axes, keepdims) if ord == 1 else np.sqrt(_sum(a * a, axes, keepdims))


def _norm_expand(x: Value, axes: Axes, keepdims: bool, ord: float) -> Value:
    if ord == 2:
        return sqrt(reduce.sum(square(x), axes=axes, keepdims=keepdims))
    if ord == 1 or not count(x, axes):
        return reduce.sum(abs(x), axes=axes, keepdims=keepdims)
    return reduce.max(abs(x), axes=axes, keepdims=keepdims)


def _norm_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool, ord: float) -> tuple[Any, ...]:
    if ord == 1:
        return (kept(g, x, axes, keepdims) * sign(x),)
    if ord == math.inf:
        return (shared(g, y, abs(x), axes, keepdims) * sign(x),)
    flat = equal(y, constant_of(0, x.dtype))  # the gradient at the origin is 0
    safe = select(flat, constant_of(1, x.dtype), y)
    return (kept(select(flat, constant_of(0, x.dtype), g / safe), x, axes, keepdims) * x,)


def _norm_shape(x: Shape, axes: Axes, keepdims: bool, ord: float) -> Shape:
    if ord not in (1, 2, math.inf):
        raise ShapeError(f"ord: expected 1, 2 or inf, got {ord}")
    return reduced_shape(x, axes, keepdims)


norm = _composite(
    "norm", _norm_expand, _norm_reference, _norm_vjp, shape=_norm_shape, attrs={"ord": 2},
    variants=({"ord": 1}, {"ord": math.inf}),
)  # fmt: skip
