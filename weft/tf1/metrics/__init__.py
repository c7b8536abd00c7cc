"""`tf.metrics`: figures over many batches, each a value and the operation that adds a batch.

Absent: the metrics of rankings (`recall_at_k`, `precision_at_k`, `average_precision_at_k`).
"""

# ruff: noqa: I001 -- lists to read, not one name a line
from weft.tf1.metrics.confusion import (
    auc, false_negatives, false_negatives_at_thresholds, false_positives,
    false_positives_at_thresholds, mean_iou, mean_per_class_accuracy, precision,
    precision_at_thresholds, recall, recall_at_thresholds, sensitivity_at_specificity,
    specificity_at_sensitivity, true_negatives, true_negatives_at_thresholds, true_positives,
    true_positives_at_thresholds,
)  # fmt: skip
from weft.tf1.metrics.mean import (
    accuracy, mean, mean_absolute_error, mean_cosine_distance, mean_relative_error,
    mean_squared_error, mean_tensor, percentage_below, root_mean_squared_error,
)  # fmt: skip

__all__ = [
    "accuracy", "auc", "false_negatives", "false_negatives_at_thresholds", "false_positives",
    "false_positives_at_thresholds", "mean", "mean_absolute_error", "mean_cosine_distance",
    "mean_iou", "mean_per_class_accuracy", "mean_relative_error", "mean_squared_error",
    "mean_tensor", "percentage_below", "precision", "precision_at_thresholds", "recall",
    "recall_at_thresholds", "root_mean_squared_error", "sensitivity_at_specificity",
    "specificity_at_sensitivity", "true_negatives", "true_negatives_at_thresholds",
    "true_positives", "true_positives_at_thresholds",
]  # fmt: skip
