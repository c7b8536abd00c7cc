"""`tf.contrib.metrics` and `slim.metrics`: predictions before labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import weft.tf1 as tf
from weft.tf1 import metrics
from weft.tf1.contrib.order import ordered

__all__ = [
    "accuracy", "aggregate_metric_map", "aggregate_metrics", "streaming_accuracy",
    "streaming_auc", "streaming_false_negatives", "streaming_false_positives", "streaming_mean",
    "streaming_mean_absolute_error", "streaming_mean_iou", "streaming_mean_relative_error",
    "streaming_mean_squared_error", "streaming_mean_tensor", "streaming_percentage_less",
    "streaming_precision", "streaming_recall", "streaming_root_mean_squared_error",
    "streaming_true_negatives", "streaming_true_positives",
]  # fmt: skip

_LAST = ("metrics_collections", "updates_collections", "name")


def _of_pairs(name: str, *more: str) -> Callable[..., Any]:
    """The metric of a name."""
    order = ("predictions", "labels", *more, *_LAST)
    return ordered(getattr(metrics, name), f"streaming_{name}", *order)


streaming_accuracy = _of_pairs("accuracy", "weights")
streaming_auc = ordered(
    metrics.auc, "streaming_auc", "predictions", "labels", "weights", "num_thresholds",
    "metrics_collections", "updates_collections", "curve", "name",
)  # fmt: skip
streaming_false_negatives = _of_pairs("false_negatives", "weights")
streaming_false_positives = _of_pairs("false_positives", "weights")
streaming_mean = metrics.mean
streaming_mean_absolute_error = _of_pairs("mean_absolute_error", "weights")
streaming_mean_iou = _of_pairs("mean_iou", "num_classes", "weights")
streaming_mean_relative_error = _of_pairs("mean_relative_error", "normalizer", "weights")
streaming_mean_squared_error = _of_pairs("mean_squared_error", "weights")
streaming_mean_tensor = metrics.mean_tensor
streaming_percentage_less = metrics.percentage_below
streaming_precision = _of_pairs("precision", "weights")
streaming_recall = _of_pairs("recall", "weights")
streaming_root_mean_squared_error = _of_pairs("root_mean_squared_error", "weights")
streaming_true_negatives = _of_pairs("true_negatives", "weights")
streaming_true_positives = _of_pairs("true_positives", "weights")


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions that equal their labels, of this batch alone.

    Args:
        predictions, labels: integers, booleans or texts of one shape.
        weights: of the examples; those of weight 0 do not count.
        name: of the scope.
    """
    with tf.name_scope(name, "accuracy", [predictions, labels]):
        right = tf.cast(tf.equal(predictions, labels), tf.float32)
        factors = 1.0 if weights is None else weights
        mean = tf.losses.Reduction.MEAN
        return tf.losses.compute_weighted_loss(right, factors, None, None, mean)


def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of metrics, and their updates."""
    return [v for v, _ in value_update_tuples], [u for _, u in value_update_tuples]


def aggregate_metric_map(
    names_to_tuples: Mapping[str, tuple[Any, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of metrics, and their updates, by their names."""
    pairs = names_to_tuples.items()
    return {k: v for k, (v, _) in pairs}, {k: u for k, (_, u) in pairs}
