"""Metrics that are means over all examples: accuracy, errors, distances."""

from __future__ import annotations

from typing import Any

from weft.ops.metric.mean import inner_product
from weft.tf1.elementwise.arithmetic import abs as absolute
from weft.tf1.elementwise.arithmetic import (
    cast,
    div_no_nan,
    equal,
    less,
    sqrt,
    squared_difference,
    subtract,
)  # fmt: skip
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import float32
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.metrics.running import Metric, described, entered, matched, running_mean
from weft.tf1.variable.variable_scope import variable_scope

__all__ = [
    "accuracy", "mean", "mean_absolute_error", "mean_cosine_distance", "mean_relative_error",
    "mean_squared_error", "mean_tensor", "percentage_below", "root_mean_squared_error",
]  # fmt: skip


@described
def mean(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of all values that were seen.

    Returns: (value, update): update adds a batch and gives the new value. Both are kept by local
    variables, which `tf.local_variables_initializer()` sets to zero.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [None])
    ...     value, update = tf.metrics.mean(x)
    ...     session.run(tf.local_variables_initializer())
    ...     for batch in ([1, 2], [6]):
    ...         _ = session.run(update, {x: batch})
    ...     print(session.run(value))
    3.0
    """
    with variable_scope(name, "mean", [values, weights]):
        metric = running_mean(convert_to_tensor(values), weights)
        return entered(*metric, metrics_collections, updates_collections)


@described
def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of each element over the batches that were seen."""
    with variable_scope(name, "mean", [values, weights]):
        metric = running_mean(convert_to_tensor(values), weights, parts=True)
        return entered(*metric, metrics_collections, updates_collections)


@described
def percentage_below(
    values: Any, threshold: float, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The share of values below a threshold.

    Args:
        threshold: what they are compared with.
    """
    below = cast(less(convert_to_tensor(values), threshold), float32)
    kept = metrics_collections, updates_collections
    return mean(below, weights, *kept, name or "percentage_below_threshold")


@described
def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """How often predictions equal labels."""
    y, p = matched(labels, predictions)
    p = p if p.dtype.base_dtype is y.dtype.base_dtype else cast(p, y.dtype.base_dtype)
    right = cast(equal(p, y), float32)
    kept = metrics_collections, updates_collections
    return mean(right, weights, *kept, name or "accuracy")


@described
def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |labels - predictions|."""
    y, p = matched(labels, predictions, float32)
    off = absolute(subtract(p, y))
    kept = metrics_collections, updates_collections
    return mean(off, weights, *kept, name or "mean_absolute_error")


@described
def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |labels - predictions| / normalizer; 0 where the normalizer is 0.

    Args:
        normalizer: of the labels' shape.
    """
    y, p = matched(labels, predictions, float32)
    by = matched(normalizer, p, float32)[0]
    off = div_no_nan(absolute(subtract(y, p)), by)
    kept = metrics_collections, updates_collections
    return mean(off, weights, *kept, name or "mean_relative_error")


@described
def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of (labels - predictions)^2."""
    y, p = matched(labels, predictions, float32)
    off = squared_difference(p, y)
    kept = metrics_collections, updates_collections
    return mean(off, weights, *kept, name or "mean_squared_error")


@described
def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The square root of the mean squared error."""
    value, update = mean_squared_error(
        labels, predictions, weights, name=name or "root_mean_squared_error"
    )
    return entered(sqrt(value), sqrt(update), metrics_collections, updates_collections)


@described
def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """1 - the mean cosine of labels and predictions, which are unit vectors along `dim`.

    Args:
        dim: the axis of the vectors.
    """
    y, p = matched(labels, predictions, float32)
    op = get_default_graph().emit("Sum", [p, y], inner_product, axis=dim, name="Sum")
    cosine = mean(op.outputs[0], weights, name=name or "mean_cosine_distance")
    away = [subtract(1.0, part) for part in cosine]
    return entered(away[0], away[1], metrics_collections, updates_collections)
