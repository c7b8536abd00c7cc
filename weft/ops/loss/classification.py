"""Classification losses: a value for each row or element, then reduced."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ir.dtype import int64, uint8
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.loss.reduction import reduced
from weft.ops.shape.layout import to_last


def _masked(target: Value, ignore_index: int) -> tuple[Value, Value]:
    """Which targets count, and the targets with ignored ones set to 0."""
    if target.dtype == uint8:
        target = catalogue.cast(target, dtype=int64)
    valid = catalogue.not_equal(target, constant_of(ignore_index, target.dtype))
    return valid, catalogue.select(valid, target, constant_of(0, target.dtype))


def _weighted(losses: Value, valid: Value, factors: Value | None, reduction: str) -> Value:
    """Losses times class weights, without ignored ones; the mean is weighted."""
    zero = constant_of(0, losses.dtype)
    losses = losses if factors is None else losses * factors
    losses = catalogue.select(valid, losses, zero)
    if reduction != "mean":
        return reduced(losses, reduction)
    return catalogue.sum(losses) / _total(valid, factors, losses)


def _total(valid: Value, factors: Value | None, like: Value) -> Value:
    counted = catalogue.cast(valid, dtype=like.dtype)
    return catalogue.sum(counted if factors is None else counted * factors)


def _factors(weight: Value | None, labels: Value) -> Value | None:
    return None if weight is None else catalogue.gather(weight, labels)


@autocasting(Autocast.FLOAT32)
def cross_entropy(
    x: Value, target: Value, weight: Value | None,
    *, ignore_index: int, reduction: str, smoothing: float,
) -> Value:  # fmt: skip
    """`-log(softmax(x)[target])`, with classes along dimension 1."""
    logits = to_last(x)
    valid, labels = _masked(target, ignore_index)
    losses = catalogue.sparse_softmax_cross_entropy(logits, labels)
    factors = _factors(weight, labels)
    plain = _weighted(losses, valid, factors, reduction)
    if not smoothing:
        return plain
    logs = catalogue.log_softmax(logits)
    logs = logs if weight is None else logs * weight
    spread = catalogue.select(valid, -catalogue.sum(logs, axes=(-1,)), constant_of(0, x.dtype))
    if reduction == "mean":
        spread = catalogue.sum(spread) / _total(valid, factors, spread)
    else:
        spread = reduced(spread, reduction)
    return plain * (1 - smoothing) + spread * (smoothing / known(logits.shape)[-1])


@autocasting(Autocast.FLOAT32)
def soft_cross_entropy(
    x: Value, target: Value, weight: Value | None, *, reduction: str, smoothing: float
) -> Value:
    """`-sum(target * log(softmax(x)))`, with class probabilities as targets."""
    logits, probabilities = to_last(x), to_last(target)
    if smoothing:
        probabilities = smoothed(probabilities, smoothing, known(logits.shape)[-1])
    if weight is not None:
        probabilities = probabilities * weight
    losses = -catalogue.sum(catalogue.log_softmax(logits) * probabilities, axes=(-1,))
    return reduced(losses, reduction)


@autocasting(Autocast.FLOAT32)
def nll_loss(
    x: Value, target: Value, weight: Value | None, *, ignore_index: int, reduction: str
) -> Value:
    """`-x[target]`, for log probabilities `x`."""
    logs = to_last(x)
    valid, labels = _masked(target, ignore_index)
    rank = len(known(logs.shape))
    chosen = catalogue.gather(logs, labels, axis=-1, batch_dims=rank - 1)
    return _weighted(-chosen, valid, _factors(weight, labels), reduction)


@autocasting(Autocast.FLOAT32)
def binary_cross_entropy(x: Value, target: Value, weight: Value | None, *, reduction: str) -> Value:
    """`-target * log(x) - (1 - target) * log(1 - x)`; logarithms are clamped to at least -100.

    The clamps do not affect the gradient, which is finite at 0 and 1.
    """
    losses = catalogue.clamped_cross_entropy(x, target)
    found = reduced(losses if weight is None else losses * weight, reduction)
    for what, given in (("an input", x), ("a target", target)):
        text = f"binary_cross_entropy: expected {what} of numbers from 0 to 1"
        found = catalogue.check(found, ops.count_outside(given, 0, 1), text=text)
    return found


def log_loss(x: Value, target: Value, *, epsilon: float) -> Value:
    """`-target * log(x + epsilon) - (1 - target) * log(1 - x + epsilon)`."""
    return -target * catalogue.log(x + epsilon) - (1.0 - target) * catalogue.log(1.0 - x + epsilon)


def class_log_loss(x: Value, target: Value, *, epsilon: float) -> Value:
    """`-sum(target * log(x / sum(x)))` over the last axis, with logarithms kept finite."""
    share = x / catalogue.sum(x, axes=(-1,), keepdims=True)
    logs = catalogue.log(catalogue.clip(share, epsilon, 1.0 - epsilon))
    return -catalogue.sum(target * logs, axes=(-1,))


def relative_entropy(x: Value, target: Value, *, epsilon: float) -> Value:
    """`sum(target * log(target / x))` over the last axis; both are clipped to [epsilon, 1]."""
    x, target = (catalogue.clip(v, epsilon, 1.0) for v in (x, target))
    return catalogue.sum(target * catalogue.log(target / x), axes=(-1,))


def categorical_hinge(x: Value, target: Value) -> Value:
    """`max(0, 1 + largest score of another class - score of the class)`, of one-hot targets."""
    other = catalogue.max((1.0 - target) * x, axes=(-1,))
    return catalogue.relu(other - catalogue.sum(target * x, axes=(-1,)) + 1.0)


def signs(labels: Value) -> Value:
    """Labels as -1 and 1, whether they are given so or as 0 and 1."""
    zero, one = (constant_of(n, labels.dtype) for n in (0, 1))
    binary = catalogue.logical_or(catalogue.equal(labels, zero), catalogue.equal(labels, one))
    return catalogue.select(catalogue.all(binary), labels * 2.0 - 1.0, labels)


def smoothed(labels: Any, smoothing: float, classes: Any) -> Any:
    """Probabilities of classes mixed with uniform ones (Szegedy et al., 2015)."""
    return labels * (1.0 - smoothing) + smoothing / classes


@autocasting(Autocast.FLOAT32)
def binary_cross_entropy_with_logits(
    x: Value, target: Value, weight: Value | None, pos_weight: Value | None, *, reduction: str
) -> Value:
    """`binary_cross_entropy` of `sigmoid(x)`, stable for any logits."""
    if pos_weight is None:
        losses = catalogue.sigmoid_cross_entropy(x, target)
    else:
        losses = (1 - target) * x + ((pos_weight - 1) * target + 1) * catalogue.softplus(-x)
    return reduced(losses if weight is None else losses * weight, reduction)


@autocasting(Autocast.FLOAT32)
def multilabel_soft_margin_loss(
    x: Value, target: Value, weight: Value | None, *, reduction: str
) -> Value:
    """The mean over classes of `binary_cross_entropy_with_logits`."""
    losses = catalogue.sigmoid_cross_entropy(x, target)
    losses = losses if weight is None else losses * weight
    return reduced(catalogue.mean(losses, axes=(-1,)), reduction)


@autocasting(Autocast.FLOAT32)
def multilabel_margin_loss(x: Value, target: Value, *, reduction: str) -> Value:
    """`sum over j, i of max(0, 1 - x[y[j]] + x[i]) / classes`, for all i not among the y[j]."""
    classes = known(x.shape)[-1]
    nothing = constant_of(0, target.dtype)
    text = f"multilabel_margin_loss: expected classes from -1 to {classes - 1}"
    outside = ops.count_outside(target, -1, classes - 1)
    target = catalogue.check(target, outside, text=text)
    given = catalogue.cast(catalogue.greater_equal(target, nothing), dtype=x.dtype)
    given = catalogue.cumprod(given, axis=-1)  # up to the first negative class
    places = catalogue.maximum(target, nothing)
    chosen = catalogue.take_along_axis(x, places, axis=-1)
    hits = catalogue.one_hot(places, depth=classes, dtype=x.dtype)
    hits = catalogue.max(hits * catalogue.expand_dims(given, axis=-1), axes=(-2,))
    room = 1 - catalogue.expand_dims(chosen, axis=-1) + catalogue.expand_dims(x, axis=-2)
    counted = catalogue.expand_dims(given, axis=-1) * catalogue.expand_dims(1 - hits, axis=-2)
    losses = catalogue.sum(catalogue.relu(room) * counted, axes=(-2, -1)) / float(classes)
    return reduced(losses, reduction)


@autocasting(Autocast.FLOAT32)
def multi_margin_loss(
    x: Value, target: Value, weight: Value | None, *, p: int, margin: float, reduction: str
) -> Value:
    """`sum over i != t of max(0, margin - x[t] + x[i]) ** p / classes`."""
    classes = known(x.shape)[-1]
    rank = len(known(x.shape))
    chosen = catalogue.gather(x, target, axis=-1, batch_dims=rank - 1)
    room = catalogue.relu(x - catalogue.expand_dims(chosen, axis=-1) + margin)
    room = catalogue.square(room) if p == 2 else room
    if weight is not None:
        room = room * catalogue.expand_dims(catalogue.gather(weight, target), axis=-1)
    others = 1 - catalogue.one_hot(target, depth=classes, dtype=x.dtype)
    return reduced(catalogue.sum(room * others, axes=(-1,)) / float(classes), reduction)
