"""`tf.estimator.export`: what a model would export; an `EstimatorSpec` accepts it."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ClassificationOutput", "PredictOutput", "RegressionOutput"]


class PredictOutput(NamedTuple):
    """Tensors by their names.

    Args:
        outputs: a tensor, or a dict of tensors.
    """

    outputs: Any


class ClassificationOutput(NamedTuple):
    """Classes and their scores.

    Args:
        scores: [batch, classes].
        classes: texts, [batch, classes].
    """

    scores: Any = None
    classes: Any = None


class RegressionOutput(NamedTuple):
    """Predicted numbers.

    Args:
        value: [batch].
    """

    value: Any
