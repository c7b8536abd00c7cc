"""Counts of right and wrong decisions, and the shares and matrices that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.elementwise.combination import safe_quotient
from weft.ops.shape.creation import full, iota, ones_like
from weft.ops.shape.diagonal import diagonal
from weft.ops.shape.reshape import dimension

CELLS: Final = {
    "true_positives": (True, True), "false_negatives": (True, False),
    "true_negatives": (False, False), "false_positives": (False, True),
}  # fmt: skip
"""Of each count, what label and decision are."""
SMALL: Final = 1e-7  # in TensorFlow's denominators, and beyond its outermost thresholds


def in_cell(label: Value, decision: Value, *, cell: str) -> Value:
    """Where labels and decisions are those of a cell: booleans, or products of 0 and 1."""
    (y, wanted), (p, decided) = zip((label, decision), CELLS[cell], strict=True)
    if y.dtype.kind == "b":
        negated = catalogue.logical_not
        return catalogue.logical_and(y if wanted else negated(y), p if decided else negated(p))
    return (p if decided else 1.0 - p) * (y if wanted else 1.0 - y)


def counts_at(
    labels: Value, scores: Value, weights: Value | None = None,
    *, thresholds: Sequence[float], cells: Sequence[str],
) -> tuple[Value, ...]:  # fmt: skip
    """The weighted number of each cell, (thresholds,): a score above a threshold decides for 1.

    Labels, scores and weights have one shape. Labels are booleans or, to round as products of 0
    and 1 do, of the dtype of scores and weights.
    """
    y, p = (catalogue.reshape(x, shape=(1, -1)) for x in (labels, scores))
    levels = constant_of(np.asarray(thresholds, np.float32).reshape(-1, 1))
    above = catalogue.greater(p, catalogue.cast(levels, dtype=p.dtype))
    above = catalogue.cast(above, dtype=y.dtype)
    scale = None if weights is None else catalogue.reshape(weights, shape=(1, -1))
    hits = [catalogue.cast(in_cell(y, above, cell=c), dtype=p.dtype) for c in cells]
    return tuple([catalogue.sum(x if scale is None else x * scale, axes=(1,)) for x in hits])


def share(part: Value, rest: Value) -> Value:
    """`part / (part + rest)`, and 0 if there is nothing: precision, recall and their like."""
    return safe_quotient(part, part + rest)


def near_share(part: Value, rest: Value) -> Value:
    """`share` as TensorFlow has it at thresholds: with a small number in the denominator."""
    return part / (part + rest + SMALL)


def share_where(
    part: Value, rest: Value, other_part: Value, other_rest: Value, *, wanted: float, last: bool
) -> Value:
    """A share at the threshold where another one is nearest to `wanted`.

    Args:
        last: of equally near thresholds, take the last one.
    """
    away = catalogue.square(near_share(other_part, other_rest) - wanted)
    shares = near_share(part, rest)
    if last:
        away, shares = (catalogue.flip(x, axes=(0,)) for x in (away, shares))
    return catalogue.gather(shares, catalogue.argmin(away, axis=0))


def occurrences(numbers: Value, weights: Value, *, size: int) -> Value:
    """The weight of each number from 0 to `size - 1`; the last entry is that of all others."""
    inside = _inside(numbers, size)
    places = catalogue.select(inside, numbers, constant_of(size, numbers.dtype))
    return catalogue.scatter_add(full((size + 1,), 0, weights.dtype), places, weights)


def confusion(labels: Value, predictions: Value, weights: Value, *, classes: int) -> Value:
    """The confusion matrix row by row (labels), and the weight of pairs that are no classes."""
    both = catalogue.logical_and(_inside(labels, classes), _inside(predictions, classes))
    outside = constant_of(classes * classes, labels.dtype)
    pairs = catalogue.select(both, labels * classes + predictions, outside)
    return occurrences(pairs, weights, size=classes * classes)


def class_counts(
    predictions: Value, labels: Value, weights: Value, *, size: int
) -> tuple[Value, Value]:
    """Of each class, how often it was right, predicted and true, and of all: (4, size).

    And the weight of predictions and labels that are no classes.
    """
    right = weights * catalogue.cast(catalogue.equal(predictions, labels), dtype=weights.dtype)
    said, true = (occurrences(x, weights, size=size) for x in (predictions, labels))
    rows = [occurrences(labels, right, size=size)[:-1], said[:-1], true[:-1]]
    rows.append(ones_like(rows[0]) * catalogue.sum(weights))
    return stacked(rows), said[-1] + true[-1]


def label_counts(predictions: Value, labels: Value, weights: Value) -> tuple[Value, Value]:
    """Of each label (N, ...), how often it was right, predicted and true, and of all: (4, ...).

    And the weight of labels that are neither 0 nor 1.
    """
    said, true, false = (
        weights * catalogue.cast(catalogue.equal(x, y), dtype=weights.dtype)
        for x, y in ((predictions, 1), (labels, 1), (labels, 0))
    )
    rows = [catalogue.sum(x, axes=(0,)) for x in (said * true, said, true, weights)]
    return stacked(rows), catalogue.sum(weights) - catalogue.sum(true + false)


def stacked(rows: Sequence[Value]) -> Value:
    """Values of one shape as one, with a first dimension for them."""
    return catalogue.concatenate(*[catalogue.expand_dims(x, axis=0) for x in rows], axis=0)


def _inside(numbers: Value, size: Any) -> Value:
    """Where numbers are from 0 to `size - 1`; the size may be a value."""
    if isinstance(size, Value):
        size = catalogue.cast(size, dtype=numbers.dtype)
    return catalogue.logical_and(catalogue.greater_equal(numbers, 0), catalogue.less(numbers, size))


def class_recall(matrix: Value) -> Value:
    """Of a confusion matrix, the share of each class that is right."""
    return safe_quotient(diagonal(matrix), catalogue.sum(matrix, axes=(1,)))


def mean_iou(matrix: Value) -> Value:
    """Of a confusion matrix, the mean intersection over union of the classes that occur."""
    right = diagonal(matrix)
    union = catalogue.sum(matrix, axes=(0,)) + catalogue.sum(matrix, axes=(1,)) - right
    seen = catalogue.sum(catalogue.cast(catalogue.greater(union, 0), dtype=union.dtype))
    return safe_quotient(catalogue.sum(safe_quotient(right, union)), seen)


def same_largest(x: Value, y: Value) -> Value:
    """Where the largest elements of both along the last axis are in the same place."""
    return catalogue.equal(*[catalogue.argmax(v, axis=-1) for v in (x, y)])


def in_top_k(scores: Value, classes: Value, *, k: int, strict: bool = False) -> Value:
    """Whether fewer than `k` of the scores along the last axis rank above that of the class.

    A number that is no class never has one of the best scores.

    Args:
        strict: of equal scores, that of the smaller class ranks higher, and NaN above all. Without
            it equal scores share a rank, and that of the class must be finite, as in TensorFlow.
    """
    inside = _inside(classes, dimension(scores, -1))
    column = catalogue.select(inside, classes, constant_of(0, classes.dtype))
    chosen = catalogue.gather(scores, column, axis=-1, batch_dims=(scores.rank or 1) - 1)
    best = catalogue.expand_dims(chosen, axis=-1)
    if strict:
        order = iota(shape=(dimension(scores, -1),), dtype=classes.dtype)
        before = catalogue.less(order, catalogue.expand_dims(column, axis=-1))
        tied = catalogue.logical_and(catalogue.equal(scores, best), before)
        above = catalogue.logical_or(
            catalogue.logical_not(catalogue.less_equal(scores, best)), tied
        )
    else:
        above = catalogue.greater(scores, best)
        inside = catalogue.logical_and(inside, catalogue.isfinite(chosen))
    count = catalogue.sum(catalogue.cast(above, dtype=int32), axes=(-1,))
    return catalogue.logical_and(catalogue.less(count, k), inside)
