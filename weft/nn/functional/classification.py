"""Losses of classification: a value a row, reduced to the mean by default."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import int64, uint8
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.common import promoted, reduced, reduction_of
from weft.nn.functional.embedding import check_indices
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast


def _classes_last(x: Value) -> Value:
    """(N, C, d...) as (N, d..., C); (C) and (N, C) stay."""
    rank = len(known(x.shape))
    return x if rank < 3 else catalogue.transpose(x, perm=(0, *range(2, rank), 1))


def _masked(target: Value, ignore_index: int) -> tuple[Value, Value]:
    """Which targets count, and the targets with 0 in place of those that do not."""
    if target.dtype == uint8:
        target = catalogue.cast(target, dtype=int64)
    valid = catalogue.not_equal(target, constant_of(ignore_index, target.dtype))
    return valid, catalogue.select(valid, target, constant_of(0, target.dtype))


def _weighted(losses: Value, valid: Value, factors: Value | None, reduction: str) -> Value:
    """Losses where they count, times the weights of their classes; the mean is weighted."""
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


@recorded(autocast=Autocast.FLOAT32)
def _cross_entropy(
    x: Value, target: Value, weight: Value | None,
    *, ignore_index: int, reduction: str, smoothing: float,
) -> Value:  # fmt: skip
    logits = _classes_last(x)
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


@recorded(autocast=Autocast.FLOAT32)
def _soft_cross_entropy(
    x: Value, target: Value, weight: Value | None, *, reduction: str, smoothing: float
) -> Value:
    logits, probabilities = _classes_last(x), _classes_last(target)
    if smoothing:
        classes = known(logits.shape)[-1]
        probabilities = probabilities * (1 - smoothing) + smoothing / classes
    if weight is not None:
        probabilities = probabilities * weight
    losses = -catalogue.sum(catalogue.log_softmax(logits) * probabilities, axes=(-1,))
    return reduced(losses, reduction)


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """`-log(softmax(input)[target])`.

    Args:
        input: logits (N, C), (N, C, d...) or (C).
        target: classes (N), (N, d...) or (), or probabilities of the shape of `input`.
        weight: a factor a class (C); the mean is weighted.
        ignore_index: a target that does not count.
        label_smoothing: how much of the target's weight goes to all classes alike.

    Raises:
        ShapeError: shapes that do not fit.
        OutOfRangeError: a target is no class; when the value is looked at, with this line's place.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            f"cross_entropy: expected label_smoothing from 0 to 1, got {label_smoothing}"
            f"{at_user_line()}"
        )
    way = reduction_of("cross_entropy", reduction, size_average, reduce)
    smoothing = float(label_smoothing)
    if lazy_of(target).type.dtype.is_floating:
        _check_like("cross_entropy", input, target)
        xs = promoted(input, target, weight)
        return _soft_cross_entropy(*xs, reduction=way, smoothing=smoothing)
    _check_classes("cross_entropy", input, target, weight)
    return _cross_entropy(
        input, target, weight, ignore_index=ignore_index, reduction=way, smoothing=smoothing
    )


@recorded(autocast=Autocast.FLOAT32)
def _nll_loss(
    x: Value, target: Value, weight: Value | None, *, ignore_index: int, reduction: str
) -> Value:
    logs = _classes_last(x)
    valid, labels = _masked(target, ignore_index)
    rank = len(known(logs.shape))
    chosen = catalogue.gather(logs, labels, axis=-1, batch_dims=rank - 1)
    return _weighted(-chosen, valid, _factors(weight, labels), reduction)


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`-input[target]`, for logarithms of probabilities; arguments as in `cross_entropy`."""
    way = reduction_of("nll_loss", reduction, size_average, reduce)
    _check_classes("nll_loss", input, target, weight)
    return _nll_loss(input, target, weight, ignore_index=ignore_index, reduction=way)


def _check_like(name: str, input: Any, target: Any) -> None:
    expected, got = dims_of(input), dims_of(target)
    if expected != got:
        raise ShapeError(
            f"{name}: expected a target of shape {show(expected)} like the input, got {show(got)}"
            f"{at_user_line()}"
        )


def _check_classes(name: str, input: Any, target: Any, weight: Any) -> None:
    x, t = dims_of(input), dims_of(target)
    if not x:
        raise ShapeError(f"{name}: expected an input (N, C), got a scalar{at_user_line()}")
    expected = () if len(x) == 1 else (x[0], *x[2:])
    if t != expected:
        raise ShapeError(
            f"{name}: expected a target of shape {show(expected)} for an input {show(x)}, got "
            f"{show(t)}{at_user_line()}"
        )
    classes = x[0] if len(x) == 1 else x[1]
    if weight is not None and dims_of(weight) != (classes,):
        raise ShapeError(
            f"{name}: expected a weight a class, {show((classes,))}, got {show(dims_of(weight))}"
            f"{at_user_line()}"
        )


def _log_or_least(x: Value) -> Value:
    """The logarithm, but -100 where it would be less, which has no slope."""
    some = catalogue.greater(x, constant_of(0, x.dtype))
    safe = catalogue.log(catalogue.select(some, x, constant_of(1, x.dtype)))
    least = constant_of(-100, x.dtype)
    return catalogue.maximum(catalogue.select(some, safe, least), least)


@recorded(autocast=Autocast.FLOAT32)
def _binary_cross_entropy(
    x: Value, target: Value, weight: Value | None, *, reduction: str
) -> Value:
    losses = -(target * _log_or_least(x) + (1 - target) * _log_or_least(1 - x))
    found = reduced(losses if weight is None else losses * weight, reduction)
    for what, given in (("an input", x), ("a target", target)):
        text = f"binary_cross_entropy: expected {what} of numbers from 0 to 1"
        found = catalogue.check(found, ops.count_outside(given, 0, 1), text=text)
    return found


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`-target * log(x) - (1 - target) * log(1 - x)`; logarithms count as -100 at least.

    Raises:
        OutOfRangeError: when it is computed, an input or a target is not from 0 to 1;
            `binary_cross_entropy_with_logits` takes any input.
    """
    way = reduction_of("binary_cross_entropy", reduction, size_average, reduce)
    _check_like("binary_cross_entropy", input, target)
    return _binary_cross_entropy(*promoted(input, target, weight), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _binary_cross_entropy_with_logits(
    x: Value, target: Value, weight: Value | None, pos_weight: Value | None, *, reduction: str
) -> Value:
    if pos_weight is None:
        losses = catalogue.sigmoid_cross_entropy(x, target)
    else:
        losses = (1 - target) * x + ((pos_weight - 1) * target + 1) * catalogue.softplus(-x)
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """`binary_cross_entropy` of `sigmoid(input)`, stable for any logits.

    Args:
        weight: factors that broadcast to the losses.
        pos_weight: factors of the positive part, which broadcast.
    """
    way = reduction_of("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _check_like("binary_cross_entropy_with_logits", input, target)
    xs = promoted(input, target, weight, pos_weight)
    return _binary_cross_entropy_with_logits(*xs, reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _multilabel_soft_margin_loss(
    x: Value, target: Value, weight: Value | None, *, reduction: str
) -> Value:
    losses = catalogue.sigmoid_cross_entropy(x, target)
    losses = losses if weight is None else losses * weight
    return reduced(catalogue.mean(losses, axes=(-1,)), reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The mean over classes of `binary_cross_entropy_with_logits`."""
    way = reduction_of("multilabel_soft_margin_loss", reduction, size_average, reduce)
    return _multilabel_soft_margin_loss(*promoted(input, target, weight), reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _multilabel_margin_loss(x: Value, target: Value, *, reduction: str) -> Value:
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


def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """`sum over j, i of max(0, 1 - x[y[j]] + x[i]) / classes`, for all i that no y[j] is.

    Args:
        input: (classes) or (N, classes).
        target: integers of the same shape; those before the first negative one are the classes.

    Raises:
        ShapeError: another shape.
        DTypeError: a target of no integers.

    Example:
        >>> import weft as wf
        >>> x, y = wf.tensor([0.1, 0.2, 0.4, 0.8]), wf.tensor([3, 0, -1, 1])
        >>> round(multilabel_margin_loss(x, y).item(), 4)
        0.85
    """
    way = reduction_of("multilabel_margin_loss", reduction, size_average, reduce)
    if dims_of(input) == dims_of(target) == ():
        input, target = input.reshape(1), target.reshape(1)
    shape = dims_of(input)
    if dims_of(target) != shape or len(shape) not in (1, 2) or not shape[-1]:
        raise ShapeError(
            "multilabel_margin_loss: expected an input (classes) or (N, classes) and a target of "
            f"its shape, got {show(shape)} and {show(dims_of(target))}{at_user_line()}"
        )
    check_indices("multilabel_margin_loss", target)
    return _multilabel_margin_loss(input, target, reduction=way)


@recorded(autocast=Autocast.FLOAT32)
def _multi_margin_loss(
    x: Value, target: Value, weight: Value | None, *, p: int, margin: float, reduction: str
) -> Value:
    classes = known(x.shape)[-1]
    rank = len(known(x.shape))
    chosen = catalogue.gather(x, target, axis=-1, batch_dims=rank - 1)
    room = catalogue.relu(x - catalogue.expand_dims(chosen, axis=-1) + margin)
    room = catalogue.square(room) if p == 2 else room
    if weight is not None:
        room = room * catalogue.expand_dims(catalogue.gather(weight, target), axis=-1)
    others = 1 - catalogue.one_hot(target, depth=classes, dtype=x.dtype)
    return reduced(catalogue.sum(room * others, axes=(-1,)) / float(classes), reduction)


def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`sum over i != t of max(0, margin - x[t] + x[i]) ** p / classes`."""
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: expected p 1 or 2, got {p}{at_user_line()}")
    input = input if dims_of(input) else input.reshape(1)
    shape = dims_of(input)
    if len(shape) not in (1, 2) or not shape[-1] or dims_of(target) not in (shape[:-1], (1,)):
        raise ShapeError(
            f"multi_margin_loss: expected an input (classes) and a target (), or (N, classes) and "
            f"(N), got {show(shape)} and {show(dims_of(target))}{at_user_line()}"
        )
    way = reduction_of("multi_margin_loss", reduction, size_average, reduce)
    return _multi_margin_loss(input, target, weight, p=int(p), margin=float(margin), reduction=way)
