"""Areas under curves of decisions: from counts at thresholds, and exactly, from the order."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.elementwise.combination import safe_quotient
from weft.ops.metric.decision import SMALL, share
from weft.ops.metric.mean import quotient
from weft.ops.shape.creation import ones_like

Array = np.ndarray[Any, Any]


def even_thresholds(count: int) -> list[float]:
    """Thresholds at equal distances; the outermost ones lie beyond 0 and 1."""
    return [-SMALL, *[(i + 1) / (count - 1) for i in range(count - 2)], 1.0 + SMALL]


def area_under(x: Value, y: Value, *, method: str = "trapezoidal") -> Value:
    """The area under a curve of points with falling `x`.

    Args:
        method: `trapezoidal`; `minoring` or `majoring`, of the lower or higher of two points; or
            `interpolation`, trapezoids whose products are halved instead of their heights.
    """
    width, left, right = x[:-1] - x[1:], y[:-1], y[1:]
    match method:
        case "minoring":
            return catalogue.sum(width * -catalogue.maximum(-left, -right))
        case "majoring":
            return catalogue.sum(width * catalogue.maximum(left, right))
        case "interpolation":
            return catalogue.sum(width * (left + right) / 2.0)
        case _:
            return catalogue.sum(width * ((left + right) / 2.0))


def roc_area(tp: Value, fn: Value, tn: Value, fp: Value) -> Value:
    """The area under true against false positive rates, from counts at rising thresholds."""
    return area_under(share(fp, tn), share(tp, fn), method="interpolation")


def padded_area(
    tp: Value, fn: Value, tn: Value, fp: Value, *, curve: str, method: str, small: float = 1e-6
) -> Value:
    """The area under the curve `ROC` or `PR`, its rates padded by a small number: TensorFlow's."""
    recall = (tp + small) / (tp + fn + small)
    if curve == "ROC":
        return area_under(fp / (fp + tn + small), recall, method=method)
    return area_under(recall, (tp + small) / (tp + fp + small), method=method)


def interpolated_area(tp: Value, fn: Value, tn: Value, fp: Value) -> Value:
    """The area under precision and recall, with false positives interpolated between points.

    Source: Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", 2006.
    """
    p = tp + fp
    gained, before, after = tp[:-1] - tp[1:], p[:-1], p[1:]
    slope = safe_quotient(gained, catalogue.maximum(before - after, 0.0))
    intercept = tp[1:] - slope * after
    both = catalogue.logical_and(catalogue.greater(before, 0.0), catalogue.greater(after, 0.0))
    ratio = safe_quotient(before, catalogue.maximum(after, 0.0))
    ratio = catalogue.select(both, ratio, ones_like(after))
    parts = slope * (gained + intercept * catalogue.log(ratio))
    return catalogue.sum(safe_quotient(parts, catalogue.maximum(tp[1:] + fn[1:], 0.0)))


def exact_roc_area(scores: Array, positive: Array) -> float:
    """The share of pairs of a positive and a negative in the right order; equal scores count half.

    The pairs are counted in integers, so the area is exact; NaN if there are none.

    Source: Hanley and McNeil, "The Meaning and Use of the Area under a ROC Curve", 1982.
    """
    _, places = np.unique(scores, return_inverse=True)
    places = places.reshape(-1)
    above = np.bincount(places, positive).astype(np.int64)
    below = np.bincount(places, ~positive).astype(np.int64)
    twice = int((above * (2 * (np.cumsum(below) - below) + below)).sum())
    pairs = int(above.sum()) * int(below.sum())
    return twice / (2 * pairs) if pairs else float("nan")


def counts_below(
    scores: Array, positive: Array, thresholds: Array | None = None
) -> tuple[Array, Array, Array]:
    """Positives and negatives whose score reaches each threshold, and the thresholds, falling.

    Args:
        thresholds: by default all different scores.
    """
    levels = np.unique(scores) if thresholds is None else np.sort(thresholds)
    places = np.searchsorted(levels, scores, side="right")
    sums = [np.bincount(places, kind, len(levels) + 1)[:0:-1] for kind in (positive, ~positive)]
    hits, misses = (np.cumsum(x) for x in sums)
    return hits, misses, levels[::-1]


def roc(
    scores: Array, positive: Array, thresholds: Array | None = None
) -> tuple[Array, Array, Array]:
    """False and true positive rates, and the falling thresholds; from (0, 0) if these are exact."""
    hits, misses, levels = counts_below(scores, positive, thresholds)
    if thresholds is None:
        hits, misses = (np.concatenate([[0.0], x]) for x in (hits, misses))
        levels = np.concatenate([np.ones(1, levels.dtype), levels])
    counts = (~positive).sum(), positive.sum()
    return quotient(misses, counts[0]), quotient(hits, counts[1]), levels


def precision_recall(
    scores: Array, positive: Array, thresholds: Array | None = None, otherwise: float = 1.0
) -> tuple[Array, Array, Array]:
    """Precision and recall at rising thresholds, and at the end 1 and 0; and the thresholds.

    Args:
        otherwise: the recall without positives, at the thresholds of all scores.
    """
    hits, misses, levels = counts_below(scores, positive, thresholds)
    with np.errstate(invalid="ignore"):
        precision, recall = hits / (hits + misses), hits / np.float64(positive.sum())
    if not positive.any() and thresholds is None:
        recall = np.full_like(hits, otherwise)
    ends = np.ones(1), np.zeros(1)
    precision, recall = (np.concatenate([x[::-1], e]) for x, e in zip((precision, recall), ends,
                         strict=True))  # fmt: skip
    return precision, recall, levels[::-1].copy()


def average_precision(
    scores: Array, positive: Array, thresholds: Array | None = None, otherwise: float = 1.0
) -> float:
    """The mean of precisions, weighted by the recall that each adds.

    Args:
        otherwise: the recall without positives, at the thresholds of all scores.
    """
    precision, recall, _ = precision_recall(scores, positive, thresholds, otherwise)
    if thresholds is not None:
        precision, recall = np.nan_to_num(precision), np.nan_to_num(recall)
    return float(-(np.diff(recall) * precision[:-1]).sum())


def area_to(scores: Array, positive: Array, most: float | None, thresholds: Array | None) -> float:
    """The area under the ROC curve; with `most`, of false positive rates up to it, from .5 to 1.

    Source of the scale: McClish, "Analyzing a portion of the ROC curve", 1989.
    """
    x, y, _ = roc(scores, positive, thresholds)
    if most is None or most == 1:
        return float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
    end = int(np.searchsorted(x, most, side="right"))
    y = np.concatenate([y[:end], [np.interp(most, x, y)]])
    x = np.concatenate([x[:end], [most]])
    least = most * most / 2
    area = float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
    return 0.5 * (1 + (area - least) / (most - least))
