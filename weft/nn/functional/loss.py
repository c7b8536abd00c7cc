"""Losses of regression and of distances: a value an element, reduced to the mean by default."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft import ops
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.common import (
    promoted,
    reduced,
    reduction_of,
    refuse_complex,
    warn_of_sizes,
)
from weft.nn.functional.distance import distance
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast


def _half(x: Value) -> Value:
    return x * 0.5


def _zero(x: Value) -> Value:
    return constant_of(0, x.dtype)


def _above(x: Value) -> Value:
    """`x` where it is positive, else 0; the slope at 0 is 0."""
    return catalogue.relu(x)


def _weighted(losses: Value, weight: Value | None, reduction: str) -> Value:
    """Losses times weights that broadcast to them, reduced; the mean is weighted."""
    if weight is None:
        return reduced(losses, reduction)
    if reduction != "mean":
        return reduced(losses * weight, reduction)
    total = catalogue.sum(catalogue.broadcast_to(weight, shape=known(losses.shape)))
    return catalogue.sum(losses * weight) / total


@recorded(autocast=Autocast.FLOAT32)
def _mse_loss(x: Value, target: Value, weight: Value | None, *, reduction: str) -> Value:
    return _weighted(catalogue.square(x - target), weight, reduction)


def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Squared differences."""
    warn_of_sizes("mse_loss", input, target)
    way = reduction_of("mse_loss", reduction, size_average, reduce)
    refuse_complex("mse_loss", input, target)
    return _mse_loss(*promoted(input, target, weight), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _l1_loss(x: Value, target: Value, weight: Value | None, *, reduction: str) -> Value:
    return _weighted(catalogue.abs(x - target), weight, reduction)


def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Absolute differences."""
    warn_of_sizes("l1_loss", input, target)
    way = reduction_of("l1_loss", reduction, size_average, reduce)
    return _l1_loss(*promoted(input, target, weight), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _smooth_l1_loss(x: Value, target: Value, *, beta: float, reduction: str) -> Value:
    distance = catalogue.abs(x - target)
    near = catalogue.less(distance, constant_of(beta, x.dtype))
    square = _half(catalogue.square(distance)) / beta
    return reduced(catalogue.select(near, square, distance - 0.5 * beta), reduction)


def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """Absolute differences, squared (and scaled) below `beta`."""
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: expected beta >= 0, got {beta}{at_user_line()}")
    warn_of_sizes("smooth_l1_loss", input, target)
    way = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    return _smooth_l1_loss(*promoted(input, target), beta=float(beta), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _huber_loss(
    x: Value, target: Value, weight: Value | None, *, delta: float, reduction: str
) -> Value:
    distance = catalogue.abs(x - target)
    near = catalogue.less_equal(distance, constant_of(delta, x.dtype))
    far = (distance - 0.5 * delta) * delta
    losses = catalogue.select(near, _half(catalogue.square(distance)), far)
    return reduced(losses if weight is None else losses * weight, reduction)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Half squared differences, growing linearly beyond `delta` (Huber, 1964)."""
    if not delta > 0:
        raise ArgumentError(f"huber_loss: expected delta > 0, got {delta}{at_user_line()}")
    warn_of_sizes("huber_loss", input, target)
    way = reduction_of("huber_loss", reduction)
    return _huber_loss(*promoted(input, target, weight), delta=float(delta), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _kl_div(x: Value, target: Value, *, log_target: bool, reduction: str) -> Value:
    if log_target:
        losses = catalogue.exp(target) * (target - x)
    else:
        losses = ops.xlogy(target, target) - target * x
    if reduction == "batchmean":
        dims = known(losses.shape)
        return catalogue.sum(losses) / float(dims[0] if dims else 1)
    return reduced(losses, reduction)


def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """Kullback-Leibler divergence: `target * (log(target) - input)`.

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms with `log_target`.
        reduction: also `batchmean`, the sum over the number of rows, which is the mathematical one.
    """
    valid = ("none", "batchmean", "mean", "sum")
    way = reduction_of("kl_div", reduction, size_average, reduce, valid)
    return _kl_div(*promoted(input, target), log_target=bool(log_target), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _hinge_embedding_loss(x: Value, target: Value, *, margin: float, reduction: str) -> Value:
    one, zero = constant_of(1, target.dtype), _zero(x)
    apart = catalogue.select(catalogue.not_equal(target, one), _above(margin - x), zero)
    close = catalogue.select(catalogue.not_equal(target, -one), x, zero)
    return reduced(apart + close, reduction)


def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`x` where the target is 1, `max(0, margin - x)` where it is -1."""
    way = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    return _hinge_embedding_loss(*promoted(input, target), margin=float(margin), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _margin_ranking_loss(
    x1: Value, x2: Value, target: Value, *, margin: float, reduction: str
) -> Value:
    return reduced(_above(-target * (x1 - x2) + margin), reduction)


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`max(0, -target * (x1 - x2) + margin)`."""
    way = reduction_of("margin_ranking_loss", reduction, size_average, reduce)
    xs = promoted(input1, input2, target)
    return _margin_ranking_loss(*xs, margin=float(margin), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _soft_margin_loss(x: Value, target: Value, *, reduction: str) -> Value:
    return reduced(catalogue.softplus(-target * x), reduction)


def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """`log(1 + exp(-target * x))`, targets 1 and -1."""
    way = reduction_of("soft_margin_loss", reduction, size_average, reduce)
    return _soft_margin_loss(*promoted(input, target), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _triplet_margin_loss(
    a: Value, p: Value, n: Value,
    *, margin: float, power: float, eps: float, swap: bool, reduction: str,
) -> Value:  # fmt: skip
    close, far = distance(a, p, power, eps), distance(a, n, power, eps)
    if swap:
        far = catalogue.minimum(far, distance(p, n, power, eps))
    return reduced(_above(close - far + margin), reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """How much nearer the anchor is to the positive than to the negative, short of the margin.

    Args:
        swap: take the distance from the positive to the negative where it is smaller.

    Raises:
        ArgumentError: a margin that is not positive.
    """
    _check_margin("triplet_margin_loss", margin)
    way = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    return _triplet_margin_loss(
        *promoted(anchor, positive, negative), margin=float(margin), power=float(p),
        eps=float(eps), swap=bool(swap), reduction=way,
    )  # fmt: skip


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ArgumentError(f"{name}: expected margin > 0, got {margin}{at_user_line()}")


@recorded(autocast=Autocast.FLOAT32)
def _margin_of_distances(
    close: Value, far: Value, other: Value | None, *, margin: float, reduction: str
) -> Value:
    far = far if other is None else catalogue.minimum(far, other)
    return reduced(_above(close - far + margin), reduction)


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`triplet_margin_loss` with a distance of your own, a function of two tensors."""
    if distance_function is None:
        return triplet_margin_loss(
            anchor, positive, negative, margin, swap=swap, reduction=reduction
        )
    _check_margin("triplet_margin_with_distance_loss", margin)
    way = reduction_of("triplet_margin_with_distance_loss", reduction)
    other = distance_function(positive, negative) if swap else None
    return _margin_of_distances(
        distance_function(anchor, positive), distance_function(anchor, negative), other,
        margin=float(margin), reduction=way,
    )  # fmt: skip


_COSINE_EPSILON: Final = 1e-12


@recorded(autocast=Autocast.FLOAT32)
def _cosine_embedding_loss(
    x1: Value, x2: Value, target: Value, *, margin: float, reduction: str
) -> Value:
    def dot(a: Value, b: Value) -> Value:
        return catalogue.sum(a * b, axes=(-1,))

    sizes = (dot(x1, x1) + _COSINE_EPSILON) * (dot(x2, x2) + _COSINE_EPSILON)
    cosine = dot(x1, x2) * catalogue.rsqrt(sizes)
    one, zero = constant_of(1, target.dtype), _zero(cosine)
    close = catalogue.select(catalogue.equal(target, one), 1 - cosine, zero)
    apart = catalogue.select(catalogue.equal(target, -one), _above(cosine - margin), zero)
    return reduced(close + apart, reduction)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`1 - cos(x1, x2)` where the target is 1, `max(0, cos(x1, x2) - margin)` where it is -1.

    Args:
        input1: (N, D) or (D), and `input2` alike.
        target: (N) or ().

    Raises:
        ShapeError: other ranks.
    """
    ranks = [len(dims_of(x)) for x in (input1, input2, target)]
    if ranks not in ([2, 2, 1], [1, 1, 0]):
        raise ShapeError(
            f"cosine_embedding_loss: expected inputs (N, D) and a target (N), or (D) and (), got "
            f"{', '.join(show(dims_of(x)) for x in (input1, input2, target))}{at_user_line()}"
        )
    way = reduction_of("cosine_embedding_loss", reduction, size_average, reduce)
    xs = promoted(input1, input2, target)
    return _cosine_embedding_loss(*xs, margin=float(margin), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _poisson_nll_loss(
    x: Value, target: Value, *, log_input: bool, full: bool, eps: float, reduction: str
) -> Value:
    losses = catalogue.exp(x) - target * x if log_input else x - target * catalogue.log(x + eps)
    if full:  # Stirling's formula for the logarithm of target!
        one = constant_of(1, target.dtype)
        large = catalogue.greater(target, one)
        t = catalogue.select(large, target, one)
        stirling = t * catalogue.log(t) - t + _half(catalogue.log(t * (2 * math.pi)))
        losses = losses + catalogue.select(large, stirling, _zero(t))
    return reduced(losses, reduction)


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative logarithm of the likelihood of counts, whose rate is `exp(input)` or `input`."""
    way = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    return _poisson_nll_loss(
        *promoted(input, target), log_input=bool(log_input), full=bool(full), eps=float(eps),
        reduction=way,
    )  # fmt: skip


@recorded(autocast=Autocast.FLOAT32)
def _gaussian_nll_loss(
    x: Value, target: Value, var: Value, *, full: bool, eps: float, reduction: str
) -> Value:
    if len(known(var.shape)) == len(known(x.shape)) - 1:
        var = catalogue.expand_dims(var, axis=-1)
    least = constant_of(eps, var.dtype)
    low = catalogue.less(var, least)
    # The gradient sees no limit.
    safe = catalogue.select(low, var + catalogue.stop_gradient(least - var), var)
    losses = _half(catalogue.log(safe) + catalogue.square(x - target) / safe)
    found = reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
    negative = catalogue.sum(catalogue.cast(catalogue.less(var, _zero(var)), dtype=int32))
    return catalogue.check(found, negative, text="gaussian_nll_loss: expected variances >= 0")


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative logarithm of the likelihood of numbers of mean `input` and variance `var`.

    Args:
        var: of the shape of `input`, or with 1 in place of one dimension, or without the last one;
            or a number.

    Raises:
        ShapeError: a variance of another shape.
        OutOfRangeError: when it is computed, a negative variance.
    """
    shape, own = dims_of(input), dims_of(var)
    others = [b for a, b in zip(shape, own, strict=False) if a != b]
    if (
        not isinstance(var, float)
        and own != shape[:-1]
        and (len(own) != len(shape) or others not in ([], [1]))
    ):
        raise ShapeError(
            f"gaussian_nll_loss: expected var of shape {show(shape)}, with at most one dimension "
            f"of 1 in place, or {show(shape[:-1])}, got {show(own)}{at_user_line()}"
        )
    way = reduction_of("gaussian_nll_loss", reduction)
    xs = promoted(input, target, var)
    return _gaussian_nll_loss(*xs, full=bool(full), eps=float(eps), reduction=way)
