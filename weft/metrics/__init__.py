"""Metrics over batches: accumulated in the step's program, exact for batches of uneven sizes.

>>> import weft as wf
>>> accuracy = wf.metrics.Accuracy()
>>> for logits, labels in [([[2.0, 1.0]], [0]), ([[1.0, 3.0], [1.0, 0.0]], [1, 1])]:
...     accuracy.update(wf.tensor(logits), wf.tensor(labels))
>>> round(accuracy.compute(), 3)
0.667
"""

from __future__ import annotations

from weft.metrics.aggregate import Max, Mean, Min, Sum
from weft.metrics.classification import Accuracy, ConfusionMatrix, F1Score, Precision, Recall
from weft.metrics.metric import Metric
from weft.metrics.ranking import AUROC
from weft.metrics.regression import MeanAbsoluteError, MeanSquaredError
from weft.metrics.text import BLEU, Perplexity

__all__ = [
    "AUROC",
    "BLEU",
    "Accuracy",
    "ConfusionMatrix",
    "F1Score",
    "Max",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Min",
    "Perplexity",
    "Precision",
    "Recall",
    "Sum",
]
