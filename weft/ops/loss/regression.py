"""Regression and distance losses: a value for each element, then reduced."""

from __future__ import annotations

import math
from typing import Final

from weft import ops
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.loss.reduction import reduced
from weft.ops.reduction.distance import pairwise_distance


def _half(x: Value) -> Value:
    return x * 0.5


def _zero(x: Value) -> Value:
    return constant_of(0, x.dtype)


def _above(x: Value) -> Value:
    """`max(x, 0)`, with gradient 1 at 0, as in PyTorch's losses."""
    return catalogue.maximum(x, _zero(x))


def _weighted(losses: Value, weight: Value | None, reduction: str) -> Value:
    """Losses times weights that broadcast to them, reduced; the mean is weighted."""
    if weight is None:
        return reduced(losses, reduction)
    if reduction != "mean":
        return reduced(losses * weight, reduction)
    total = catalogue.sum(catalogue.broadcast_to(weight, shape=known(losses.shape)))
    return catalogue.sum(losses * weight) / total


@autocasting(Autocast.FLOAT32)
def mse_loss(x: Value, target: Value, weight: Value | None, *, reduction: str) -> Value:
    """Squared differences."""
    return _weighted(catalogue.square(x - target), weight, reduction)


@autocasting(Autocast.FLOAT32)
def l1_loss(x: Value, target: Value, weight: Value | None, *, reduction: str) -> Value:
    """Absolute differences."""
    return _weighted(catalogue.abs(x - target), weight, reduction)


@autocasting(Autocast.FLOAT32)
def smooth_l1_loss(x: Value, target: Value, *, beta: float, reduction: str) -> Value:
    """Absolute differences, quadratic below `beta`."""
    losses = _huber(x - target, beta) / beta if beta else catalogue.abs(x - target)
    return reduced(losses, reduction)


@autocasting(Autocast.FLOAT32)
def huber_loss(
    x: Value, target: Value, weight: Value | None, *, delta: float, reduction: str
) -> Value:
    """Half squared differences, linear beyond `delta`."""
    losses = _huber(x - target, delta)
    return reduced(losses if weight is None else losses * weight, reduction)


def _huber(away: Value, limit: float) -> Value:
    """Half squares of what is within `limit`, lines beyond.

    The square is not one of the magnitude, whose derivative at 0 counts as 0, and it is one of
    nothing else, so that the derivative for infinite residuals is `limit`.
    """
    distance = catalogue.abs(away)
    near = catalogue.less(distance, constant_of(limit, away.dtype))
    square = _half(catalogue.square(catalogue.select(near, away, _zero(away))))
    return catalogue.select(near, square, (distance - 0.5 * limit) * limit)


def absolute_percentage_error(x: Value, target: Value, *, epsilon: float) -> Value:
    """`100 * |target - x| / |target|`; `|target|` counts as `epsilon` at least."""
    size = catalogue.maximum(catalogue.abs(target), epsilon)
    return catalogue.abs((target - x) / size) * 100.0


def squared_logarithmic_error(x: Value, target: Value, *, epsilon: float) -> Value:
    """`(log(x + 1) - log(target + 1)) ** 2`; both count as `epsilon` at least."""
    logs = [catalogue.log(catalogue.maximum(v, epsilon) + 1.0) for v in (x, target)]
    return catalogue.square(logs[0] - logs[1])


def log_cosh(x: Value, target: Value) -> Value:
    """`log(cosh(x - target))`, which does not overflow."""
    away = x - target
    return away + catalogue.softplus(away * -2.0) - math.log(2.0)


@autocasting(Autocast.FLOAT32)
def kl_div(x: Value, target: Value, *, log_target: bool, reduction: str) -> Value:
    """`target * (log(target) - x)`, for log probabilities `x`, and targets or their logarithms."""
    if log_target:
        losses = catalogue.exp(target) * (target - x)
    else:
        losses = ops.xlogy(target, target) - target * x
    if reduction == "batchmean":
        dims = known(losses.shape)
        return catalogue.sum(losses) / float(dims[0] if dims else 1)
    return reduced(losses, reduction)


@autocasting(Autocast.FLOAT32)
def hinge_embedding_loss(x: Value, target: Value, *, margin: float, reduction: str) -> Value:
    """`x` where the target is 1, `max(0, margin - x)` where it is -1."""
    one, zero = constant_of(1, target.dtype), _zero(x)
    apart = catalogue.select(catalogue.not_equal(target, one), _above(margin - x), zero)
    close = catalogue.select(catalogue.not_equal(target, -one), x, zero)
    return reduced(apart + close, reduction)


def hinge(x: Value, sign: Value, margin: float = 1.0, *, at_margin: bool = False) -> Value:
    """`max(0, margin - sign * x)`, signs 1 and -1.

    Args:
        at_margin: whether the gradient where both are equal is that of the line, or 0.
    """
    room = margin - sign * x
    return _above(room) if at_margin else catalogue.relu(room)


@autocasting(Autocast.FLOAT32)
def margin_ranking_loss(
    x1: Value, x2: Value, target: Value, *, margin: float, reduction: str
) -> Value:
    """`max(0, margin - target * (x1 - x2))`."""
    return reduced(hinge(x1 - x2, target, margin, at_margin=True), reduction)


@autocasting(Autocast.FLOAT32)
def soft_margin_loss(x: Value, target: Value, *, reduction: str) -> Value:
    """`log(1 + exp(-target * x))`, targets 1 and -1."""
    return reduced(catalogue.softplus(-target * x), reduction)


@autocasting(Autocast.FLOAT32)
def triplet_margin_loss(
    a: Value, p: Value, n: Value,
    *, margin: float, power: float, eps: float, swap: bool, reduction: str,
) -> Value:  # fmt: skip
    """`max(0, |a - p| - |a - n| + margin)`."""
    close, far = (pairwise_distance(a, other, p=power, eps=eps) for other in (p, n))
    if swap:
        far = catalogue.minimum(far, pairwise_distance(p, n, p=power, eps=eps))
    return reduced(_above(close - far + margin), reduction)


@autocasting(Autocast.FLOAT32)
def margin_of_distances(
    close: Value, far: Value, other: Value | None, *, margin: float, reduction: str
) -> Value:
    """`max(0, close - far + margin)`; with `swap`, `far` is the smaller of two distances."""
    far = far if other is None else catalogue.minimum(far, other)
    return reduced(_above(close - far + margin), reduction)


_COSINE_EPSILON: Final = 1e-12


@autocasting(Autocast.FLOAT32)
def cosine_embedding_loss(
    x1: Value, x2: Value, target: Value, *, margin: float, reduction: str
) -> Value:
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1."""

    def dot(a: Value, b: Value) -> Value:
        return catalogue.sum(a * b, axes=(-1,))

    sizes = (dot(x1, x1) + _COSINE_EPSILON) * (dot(x2, x2) + _COSINE_EPSILON)
    cosine = dot(x1, x2) * catalogue.rsqrt(sizes)
    one, zero = constant_of(1, target.dtype), _zero(cosine)
    close = catalogue.select(catalogue.equal(target, one), 1 - cosine, zero)
    apart = catalogue.select(catalogue.equal(target, -one), _above(cosine - margin), zero)
    return reduced(close + apart, reduction)


@autocasting(Autocast.FLOAT32)
def poisson_nll_loss(
    x: Value, target: Value, *, log_input: bool, full: bool, eps: float, reduction: str
) -> Value:
    """The Poisson negative log-likelihood of counts, for the rate `exp(x)` or `x`."""
    losses = catalogue.exp(x) - target * x if log_input else x - target * catalogue.log(x + eps)
    if full:  # Stirling's formula for log(target!)
        one = constant_of(1, target.dtype)
        large = catalogue.greater(target, one)
        t = catalogue.select(large, target, one)
        stirling = t * catalogue.log(t) - t + _half(catalogue.log(t * (2 * math.pi)))
        losses = losses + catalogue.select(large, stirling, _zero(t))
    return reduced(losses, reduction)


@autocasting(Autocast.FLOAT32)
def gaussian_nll_loss(
    x: Value, target: Value, var: Value, *, full: bool, eps: float, reduction: str
) -> Value:
    """The Gaussian negative log-likelihood, for mean `x` and variance `var`."""
    if len(known(var.shape)) == len(known(x.shape)) - 1:
        var = catalogue.expand_dims(var, axis=-1)
    least = constant_of(eps, var.dtype)
    low = catalogue.less(var, least)
    # The clamp does not affect the gradient.
    safe = catalogue.select(low, var + catalogue.stop_gradient(least - var), var)
    losses = _half(catalogue.log(safe) + catalogue.square(x - target) / safe)
    found = reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
    negative = catalogue.sum(catalogue.cast(catalogue.less(var, _zero(var)), dtype=int32))
    return catalogue.check(found, negative, text="gaussian_nll_loss: expected variances >= 0")
