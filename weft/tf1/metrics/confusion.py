"""Metrics from counts of right and wrong decisions: precision, recall, areas, per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.documentation import named
from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.metric import curve as curves
from weft.ops.metric import decision
from weft.ops.metric.decision import CELLS, SMALL
from weft.tf1.creation import ones_like
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, unary
from weft.tf1.framework.dtypes import bool_, float32, float64
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.order import confusion_matrix
from weft.tf1.metrics.running import (
    Metric,
    applied,
    described,
    entered,
    matched,
    running_sum,
    running_variable,
    weights_for,
)  # fmt: skip
from weft.tf1.reduction import reduce_mean
from weft.tf1.shaping.arrangement import reshape
from weft.tf1.variable.assignment import assign_add
from weft.tf1.variable.variable_scope import variable_scope

__all__ = [
    "auc", "false_negatives", "false_negatives_at_thresholds", "false_positives",
    "false_positives_at_thresholds", "mean_iou", "mean_per_class_accuracy", "precision",
    "precision_at_thresholds", "recall", "recall_at_thresholds", "sensitivity_at_specificity",
    "specificity_at_sensitivity", "true_negatives", "true_negatives_at_thresholds",
    "true_positives", "true_positives_at_thresholds",
]  # fmt: skip


def _running_count(cell: str, y: Tensor, p: Tensor, weights: Any, name: str) -> Metric:
    graph = get_default_graph()
    hits = graph.emit("LogicalAnd", [y, p], decision.in_cell, name="LogicalAnd", cell=cell)
    return running_sum(hits.outputs[0], weights, name)


def _figure(title: str, cells: Sequence[str], text: str) -> Callable[..., Metric]:
    """The number of decisions in a cell, or the share of the first of two cells."""

    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, title, [labels, predictions]):
            y, p = matched(labels, predictions, bool_)
            names = ["count"] if len(cells) == 1 else [f"{c}/count" for c in cells]
            pairs = zip(cells, names, strict=True)
            counts = [_running_count(cell, y, p, weights, n) for cell, n in pairs]
            return _share(decision.share, counts, metrics_collections, updates_collections)

    return described(named(title, text)(metric))


def _share(formula: Callable[..., Value], counts: Sequence[Metric], *collections: Any) -> Metric:
    """A formula of two counts; a count alone is the metric."""
    if len(counts) == 1:
        return entered(*counts[0], *collections)
    return applied(formula, counts, *collections)


_RIGHT: Final = ("true_positives", "false_positives")
_FOUND: Final = ("true_positives", "false_negatives")


def _count(cell: str) -> Callable[..., Metric]:
    return _figure(cell, [cell], f"The weighted number of {cell.replace('_', ' ')}.")


true_positives = _count("true_positives")
false_positives = _count("false_positives")
true_negatives = _count("true_negatives")
false_negatives = _count("false_negatives")
precision = _figure("precision", _RIGHT, "The share of positive predictions that are right.")
recall = _figure("recall", _FOUND, "The share of positive labels that are found.")


# Thresholds
def _counts_at(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, cells: Sequence[str]
) -> list[Metric]:
    """For each threshold, how many fall in each cell: those above it count as positive."""
    y, p = matched(cast(convert_to_tensor(labels), bool_), cast(predictions, float32))
    spread = [] if weights is None else [weights_for(weights, y) * ones_like(y, dtype=float32)]
    added = get_default_graph().emit(
        "Sum", [y, p, *spread], decision.counts_at, name="Sum", thresholds=thresholds, cells=cells
    )
    totals = [running_variable([len(thresholds)], cell) for cell in cells]
    pairs = zip(totals, added.outputs, strict=True)
    return [Metric(total.value(), assign_add(total, new)) for total, new in pairs]


def _figure_at(title: str, scope: str, cells: Sequence[str], text: str) -> Callable[..., Metric]:
    """`_figure` for each threshold."""

    def metric(
        labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
    ) -> Metric:  # fmt: skip
        with variable_scope(name, scope, [labels, predictions]):
            counts = _counts_at(labels, predictions, thresholds, weights, cells)
            return _share(decision.near_share, counts, metrics_collections, updates_collections)

    return described(named(title, text)(metric))


def _count_at(cell: str) -> Callable[..., Metric]:
    text = f"The number of {cell.replace('_', ' ')}, for each threshold."
    return _figure_at(f"{cell}_at_thresholds", cell, [cell], text)


def _share_at(title: str, cells: Sequence[str]) -> Callable[..., Metric]:
    name = f"{title}_at_thresholds"
    return _figure_at(name, name, cells, f"`{title}` for each threshold.")


true_positives_at_thresholds = _count_at("true_positives")
false_positives_at_thresholds = _count_at("false_positives")
true_negatives_at_thresholds = _count_at("true_negatives")
false_negatives_at_thresholds = _count_at("false_negatives")
precision_at_thresholds = _share_at("precision", _RIGHT)
recall_at_thresholds = _share_at("recall", _FOUND)


@described
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
        num_thresholds: the number of points, if `thresholds` does not give them.
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
    points = curves.even_thresholds(num_thresholds) if inner is None else inner
    with variable_scope(name, "auc", [labels, predictions]):
        counts = _counts_at(labels, predictions, points, weights, [*CELLS])
        kept = metrics_collections, updates_collections
        if summation_method == "careful_interpolation":
            return applied(curves.interpolated_area, counts, *kept)
        return applied(curves.padded_area, counts, *kept, curve=curve, method=summation_method)


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
            points = curves.even_thresholds(num_thresholds)
            counts = _counts_at(labels, predictions, points, weights, [*first, *second])
            return applied(
                decision.share_where, counts, metrics_collections, updates_collections,
                wanted=wanted, last=last,
            )  # fmt: skip

    text = f"The rate `{title.split('_')[0]}` at the threshold of the other rate asked for."
    return described(named(title, text)(metric))


_SENSITIVITY: Final = ("true_positives", "false_negatives")
_SPECIFICITY: Final = ("true_negatives", "false_positives")
sensitivity_at_specificity = _opposite(
    "sensitivity_at_specificity", _SENSITIVITY, _SPECIFICITY, last=False
)
specificity_at_sensitivity = _opposite(
    "specificity_at_sensitivity", _SPECIFICITY, _SENSITIVITY, last=True
)


# Classes
def streaming_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """The confusion matrix of all batches, and with this one: (num_classes, num_classes)."""
    y, p = (reshape(cast(convert_to_tensor(v), "int64"), [-1]) for v in (labels, predictions))
    scale = None if weights is None else reshape(cast(weights, float64), [-1])
    total = running_variable([num_classes, num_classes], "total_confusion_matrix", float64)
    added = confusion_matrix(y, p, num_classes, dtype=float64, weights=scale)
    return total.value(), assign_add(total, added)


@described
def mean_iou(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of intersection over union; update gives the confusion matrix."""
    with variable_scope(name, "mean_iou", [labels, predictions]):
        matrix, update = streaming_confusion_matrix(labels, predictions, num_classes, weights)
        value = unary("DivNoNan", decision.mean_iou, cast(matrix, float32), "value")
        return entered(value, update, metrics_collections, updates_collections)


@described
def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of accuracy; update gives that of each class."""
    with variable_scope(name, "mean_accuracy", [labels, predictions]):
        found = streaming_confusion_matrix(labels, predictions, num_classes, weights)
        now, new = (cast(m, float32) for m in found)
        each = [unary("DivNoNan", decision.class_recall, m, "DivNoNan") for m in (now, new)]
        return entered(reduce_mean(each[0]), each[1], metrics_collections, updates_collections)
