"""Metrics from counts of right and wrong decisions: precision, recall, areas, per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.creation import ones_like
from weft.tf1.elementwise.arithmetic import (
    cast,
    div_no_nan,
    greater,
    log,
    logical_and,
    logical_not,
    maximum,
)  # fmt: skip
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import bool_, float32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.order import confusion_matrix
from weft.tf1.indexing.slicing import where
from weft.tf1.linalg.diagonal import diag_part
from weft.tf1.metrics.running import (
    Metric,
    entered,
    matched,
    running_sum,
    running_variable,
    weights_for,
)  # fmt: skip
from weft.tf1.reduction import argmin, reduce_mean, reduce_sum
from weft.tf1.shape.arrangement import expand_dims, reshape
from weft.tf1.variable.variable import assign_add
from weft.tf1.variable.variable_scope import variable_scope

__all__ = [
    "auc", "false_negatives", "false_negatives_at_thresholds", "false_positives",
    "false_positives_at_thresholds", "mean_iou", "mean_per_class_accuracy", "precision",
    "precision_at_thresholds", "recall", "recall_at_thresholds", "sensitivity_at_specificity",
    "specificity_at_sensitivity", "true_negatives", "true_negatives_at_thresholds",
    "true_positives", "true_positives_at_thresholds",
]  # fmt: skip

CELLS: Final = {
    "true_positives": (True, True), "false_negatives": (True, False),
    "true_negatives": (False, False), "false_positives": (False, True),
}  # fmt: skip
"""Of each count, what label and prediction are."""
SMALL: Final = 1e-7


def _cell(name: str, y: Tensor, p: Tensor) -> Tensor:
    label, prediction = CELLS[name]
    return logical_and(y if label else logical_not(y), p if prediction else logical_not(p))


def _count(name: str) -> Callable[..., Metric]:
    title = name

    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, title, [labels, predictions]):
            y, p = matched(labels, predictions, bool_)
            found = running_sum(_cell(title, y, p), weights, "count")
            return entered(*found, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"The weighted number of {name.replace('_', ' ')}."
    return metric


true_positives = _count("true_positives")
false_positives = _count("false_positives")
true_negatives = _count("true_negatives")
false_negatives = _count("false_negatives")


def _ratio(title: str, other: str, text: str) -> Callable[..., Metric]:
    """True positives among them and the `other` count."""

    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, title, [labels, predictions]):
            y, p = matched(labels, predictions, bool_)
            right = running_sum(_cell("true_positives", y, p), weights, "true_positives/count")
            wrong = running_sum(_cell(other, y, p), weights, f"{other}/count")
            value = div_no_nan(right.value, right.value + wrong.value, name="value")
            update = div_no_nan(right.update, right.update + wrong.update, name="update_op")
            return entered(value, update, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = title
    metric.__doc__ = text
    return metric


precision = _ratio(
    "precision", "false_positives", "The share of positive predictions that are right."
)
recall = _ratio("recall", "false_negatives", "The share of positive labels that are found.")


# Thresholds
def _counts_at(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, names: Sequence[str]
) -> dict[str, Metric]:
    """For each threshold, how many fall in each cell: those above it count as positive."""
    y, p = matched(cast(convert_to_tensor(labels), bool_), cast(predictions, float32))
    above = greater(
        expand_dims(reshape(p, [-1]), 0),
        constant(np.asarray(thresholds, np.float32).reshape(-1, 1)),
    )
    positive = expand_dims(reshape(y, [-1]), 0)
    positive = logical_and(positive, ones_like(above))
    scale = None
    if weights is not None:
        spread = weights_for(weights, y) * ones_like(y, dtype=float32)
        scale = expand_dims(reshape(spread, [-1]), 0)
    found: dict[str, Metric] = {}
    for name in names:
        hits = cast(_cell(name, positive, above), float32)
        total = running_variable([len(thresholds)], name)
        added = reduce_sum(hits if scale is None else hits * scale, 1)
        found[name] = Metric(total.value(), assign_add(total, added))
    return found


def _count_at(name: str) -> Callable[..., Metric]:
    title = name

    def metric(
        labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, title, [labels, predictions]):
            counts = _counts_at(labels, predictions, thresholds, weights, [title])
            return entered(*counts[title], metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = f"{name}_at_thresholds"
    metric.__doc__ = f"The number of {name.replace('_', ' ')}, for each threshold."
    return metric


true_positives_at_thresholds = _count_at("true_positives")
false_positives_at_thresholds = _count_at("false_positives")
true_negatives_at_thresholds = _count_at("true_negatives")
false_negatives_at_thresholds = _count_at("false_negatives")


def _ratio_at(title: str, other: str) -> Callable[..., Metric]:
    def metric(
        labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, f"{title}_at_thresholds", [labels, predictions]):
            names = ("true_positives", other)
            counts = _counts_at(labels, predictions, thresholds, weights, names)
            right, wrong = (counts[n] for n in names)
            shares = [a / (a + b + SMALL) for a, b in zip(right, wrong, strict=True)]
            return entered(shares[0], shares[1], metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = f"{title}_at_thresholds"
    metric.__doc__ = f"`{title}` for each threshold."
    return metric


precision_at_thresholds = _ratio_at("precision", "false_positives")
recall_at_thresholds = _ratio_at("recall", "false_negatives")


def _even(count: int) -> list[float]:
    inner = [(i + 1) / (count - 1) for i in range(count - 2)]
    return [-SMALL, *inner, 1.0 + SMALL]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under the curve of decisions, approximated by `num_thresholds` points.

    Args:
        predictions: scores from 0 to 1.
        curve: `ROC` (true against false positive rate) or `PR` (precision against recall).
        summation_method: `trapezoidal`, `minoring`, `majoring`, and, of `PR`,
            `careful_interpolation`.
        thresholds: the points between 0 and 1, in place of even ones.

    Raises:
        ArgumentError: there is no such curve or method.
    """
    methods = ("trapezoidal", "minoring", "majoring", "careful_interpolation")
    if curve not in ("ROC", "PR"):
        raise fail(ArgumentError, f"auc: expected curve ROC or PR, got {curve!r}")
    if summation_method not in methods or (curve == "ROC" and summation_method == methods[3]):
        text = f"auc: expected a summation_method of {curve}, got {summation_method!r}"
        raise fail(ArgumentError, text)
    inner = None if thresholds is None else [-SMALL, *sorted(thresholds), 1.0 + SMALL]
    with variable_scope(name, "auc", [labels, predictions]):
        counts = _counts_at(labels, predictions, inner or _even(num_thresholds), weights, [*CELLS])
        areas = [
            _area({n: m[part] for n, m in counts.items()}, curve, summation_method)
            for part in (0, 1)
        ]
        return entered(areas[0], areas[1], metrics_collections, updates_collections)


def _area(counts: dict[str, Tensor], curve: str, method: str) -> Tensor:
    tp, fn, tn, fp = (counts[n] for n in CELLS)
    if method == "careful_interpolation":
        return _careful(tp, fp, fn)
    small = 1e-6
    found = (tp + small) / (tp + fn + small)
    if curve == "ROC":
        x, y = fp / (fp + tn + small), found
    else:
        x, y = found, (tp + small) / (tp + fp + small)
    if method == "minoring":
        height = -maximum(-y[:-1], -y[1:])
    elif method == "majoring":
        height = maximum(y[:-1], y[1:])
    else:
        height = (y[:-1] + y[1:]) / 2.0
    return reduce_sum((x[:-1] - x[1:]) * height)


def _careful(tp: Tensor, fp: Tensor, fn: Tensor) -> Tensor:
    """The area under precision and recall, with false positives interpolated between points.

    Source: Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", 2006.
    """
    p = tp + fp
    gained, before, after = tp[:-1] - tp[1:], p[:-1], p[1:]
    slope = div_no_nan(gained, maximum(before - after, 0.0))
    intercept = tp[1:] - slope * after
    both = logical_and(greater(before, 0.0), greater(after, 0.0))
    ratio = where(both, div_no_nan(before, maximum(after, 0.0)), ones_like(after))
    parts = slope * (gained + intercept * log(ratio))
    return reduce_sum(div_no_nan(parts, maximum(tp[1:] + fn[1:], 0.0)))


def _opposite(
    title: str, first: tuple[str, str], second: tuple[str, str], last: bool
) -> Callable[..., Metric]:
    """The rate of `first` where that of `second` is nearest to `wanted`."""

    def metric(
        labels: Any, predictions: Any, wanted: float, weights: Any = None,
        num_thresholds: int = 200, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        if not 0 <= wanted <= 1:
            raise fail(ArgumentError, f"{title}: expected a rate from 0 to 1, got {wanted}")
        with variable_scope(name, title, [labels, predictions]):
            names = [*CELLS]
            counts = _counts_at(labels, predictions, _even(num_thresholds), weights, names)
            rates: list[Tensor] = []
            for part in (0, 1):
                now = {n: m[part] for n, m in counts.items()}
                near, rate = (now[a] / (now[a] + now[b] + SMALL) for a, b in (second, first))
                away = (near - wanted) * (near - wanted)
                if last:
                    away, rate = away[::-1], rate[::-1]
                rates.append(rate[cast(argmin(away, 0), "int32")])
            return entered(rates[0], rates[1], metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = title
    metric.__doc__ = (
        f"The rate `{title.split('_')[0]}` at the threshold of the other rate asked for."
    )
    return metric


_SENSITIVITY: Final = ("true_positives", "false_negatives")
_SPECIFICITY: Final = ("true_negatives", "false_positives")
sensitivity_at_specificity = _opposite(
    "sensitivity_at_specificity", _SENSITIVITY, _SPECIFICITY, last=False
)
specificity_at_sensitivity = _opposite(
    "specificity_at_sensitivity", _SPECIFICITY, _SENSITIVITY, last=True
)


# Classes
def _classes(
    labels: Any, predictions: Any, num_classes: int, weights: Any
) -> tuple[Tensor, Tensor]:
    """The confusion matrix of all batches, and with this one: (num_classes, num_classes)."""
    y, p = (reshape(cast(convert_to_tensor(v), "int64"), [-1]) for v in (labels, predictions))
    scale = None if weights is None else reshape(cast(weights, float32), [-1])
    total = running_variable([num_classes, num_classes], "total_confusion_matrix")
    added = confusion_matrix(y, p, num_classes, dtype=float32, weights=scale)
    return total.value(), assign_add(total, added)


def mean_iou(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of intersection over union; update gives the confusion matrix."""
    with variable_scope(name, "mean_iou", [labels, predictions]):
        matrix, update = _classes(labels, predictions, num_classes, weights)
        right = diag_part(matrix)
        union = reduce_sum(matrix, 0) + reduce_sum(matrix, 1) - right
        seen = reduce_sum(cast(greater(union, 0.0), float32))
        value = div_no_nan(reduce_sum(div_no_nan(right, union)), seen)
        return entered(value, update, metrics_collections, updates_collections)


def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of accuracy; update gives that of each class."""
    with variable_scope(name, "mean_accuracy", [labels, predictions]):
        now, new = _classes(labels, predictions, num_classes, weights)
        each = [div_no_nan(diag_part(m), reduce_sum(m, 1)) for m in (now, new)]
        return entered(reduce_mean(each[0]), each[1], metrics_collections, updates_collections)
