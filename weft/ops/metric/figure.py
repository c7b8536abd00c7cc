"""Figures of classification from counts of right and wrong decisions, in NumPy.

`tp`, `fp`, `tn`, `fn` are the counts of each class or label; a matrix has true classes as rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ops.metric.mean import average, quotient

Array = np.ndarray[Any, Any]


def share(part: Any, whole: Any, otherwise: float = 0.0) -> Array:
    """`part / whole`, and `otherwise` where nothing was counted."""
    return np.where(np.asarray(whole) == 0, otherwise, quotient(part, whole))


def all_right(tp: Array, fp: Array, tn: Array, fn: Array, **_: Any) -> Array:
    """The share of decisions that are right."""
    return quotient(tp + tn, tp + fp + tn + fn)


def recall(tp: Array, fp: Array, tn: Array, fn: Array, otherwise: float = 0.0) -> Array:
    """The share of positives that are found."""
    return share(tp, tp + fn, otherwise)


def precision(tp: Array, fp: Array, tn: Array, fn: Array, otherwise: float = 0.0) -> Array:
    """The share of positive decisions that are right."""
    return share(tp, tp + fp, otherwise)


def specificity(tp: Array, fp: Array, tn: Array, fn: Array, **_: Any) -> Array:
    """The share of negatives that are found."""
    return quotient(tn, tn + fp)


def negative_precision(tp: Array, fp: Array, tn: Array, fn: Array, **_: Any) -> Array:
    """The share of negative decisions that are right."""
    return quotient(tn, tn + fn)


def f_score(
    tp: Array, fp: Array, tn: Array, fn: Array, otherwise: float = 0.0, beta: float = 1.0
) -> Array:
    """The harmonic mean of precision and recall, which weighs `beta` squared times as much."""
    square = beta * beta
    return share((1 + square) * tp, (1 + square) * tp + square * fn + fp, otherwise)


def overlap(tp: Array, fp: Array, tn: Array, fn: Array, otherwise: float = 0.0) -> Array:
    """Intersection over union: the Jaccard index."""
    return share(tp, tp + fp + fn, otherwise)


def cells(counts: Array) -> tuple[Array, Array, Array, Array]:
    """`tp`, `fp`, `tn` and `fn`, from right positives, positive decisions, positives and all."""
    tp, said, true, whole = counts.astype(np.float64)
    return tp, said - tp, whole - said - true + tp, true - tp


def of_each(
    found: tuple[Array, Array, Array, Array], figure: Callable[..., Array], how: str | None,
    is_told_apart: bool, counts_misses: bool,
) -> Any:  # fmt: skip
    """A figure over classes or labels.

    Args:
        how: `"micro"`, of all together; else as in `averaged`.
        is_told_apart: whether each is a label, which counts also if it does not occur.
        counts_misses: whether a class that was only predicted occurs.
    """
    if how == "micro":
        return figure(*[x.sum() for x in found])
    tp, fp, _, fn = found
    occurs = tp + fn + fp * counts_misses > 0
    return averaged(figure(*found), how, tp + fn, np.ones_like(tp) if is_told_apart else occurs)


def scores(found: tuple[Array, Array, Array, Array], how: str | None) -> Array:
    """The counts of each class with its support as last dimension, or their sum or mean."""
    tp, fp, tn, fn = found
    table = np.stack([tp, fp, tn, fn, tp + fn], -1)
    if how in (None, "none") or table.ndim == 1:
        return table.astype(np.int64)
    if how == "micro":
        return table.sum(0).astype(np.int64)
    return table.mean(0) if how == "macro" else np.average(table, 0, tp + fn)


def matrices(found: tuple[Array, Array, Array, Array]) -> Array:
    """The confusion matrix of each label, (L, 2, 2)."""
    tp, fp, tn, fn = found
    return np.stack([tn, fp, fn, tp], -1).reshape(-1, 2, 2).astype(np.int64)


def averaged(figures: Array, how: str | None, support: Array, occurs: Array) -> Any:
    """Figures of classes as one number, or as they are.

    Args:
        how: `"macro"`, the mean over classes that occur; `"weighted"` by `support`; or `None`.
    """
    if how in (None, "none"):
        return figures
    return average(figures, support if how == "weighted" else occurs)


def kappa(matrix: Array, weights: str | None = None) -> float:
    """Cohen's kappa: agreement beyond chance.

    Args:
        weights: `"linear"` or `"quadratic"`: how much far classes count more; by default all alike.
    """
    counts = matrix.astype(np.float64)
    places = np.arange(len(counts))
    away = np.abs(places[:, None] - places)
    cost = {"linear": away, "quadratic": away**2}.get(weights or "", away > 0)
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    chance = (cost * expected).sum()
    return 1.0 - float((cost * counts).sum() / chance) if chance else math.nan


def correlation_of_classes(matrix: Array) -> float:
    """Matthews' correlation coefficient; where it is undefined, 0, or of two classes 1 if all is
    right and -1 if all is wrong.

    Source: Gorodkin, "Comparing two K-category assignments by a K-category correlation
    coefficient", 2004.
    """
    counts = matrix.astype(np.float64)
    whole, true, said = counts.sum(), counts.sum(1), counts.sum(0)
    both = (whole**2 - (said * said).sum()) * (whole**2 - (true * true).sum())
    right = np.trace(counts)
    if both:
        return float((right * whole - (true * said).sum()) / math.sqrt(both))
    if len(counts) != 2 or not whole:
        return 0.0
    return 1.0 if right == whole else -1.0 if right == 0 else 0.0


def calibration_error(confidence: Array, right: Array, bins: int, norm: str) -> float:
    """How far confidence is from the share of right decisions, in bins of equal width.

    Args:
        norm: `"l1"`, the mean; `"l2"`, the root of the mean square; or `"max"`.

    Source: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", 2015.
    """
    places = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    count = np.bincount(places, minlength=bins)
    gap = np.abs(quotient(np.bincount(places, right - confidence, bins), count))
    if norm == "max":
        return float(gap.max())
    weights = count / max(len(confidence), 1)
    if norm == "l1":
        return float((gap * weights).sum())
    return math.sqrt(float((gap**2 * weights).sum()))
