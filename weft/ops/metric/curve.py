"""Areas under curves of decisions: from counts at thresholds, and exactly, from the order."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.elementwise.combination import safe_quotient
from weft.ops.metric.decision import SMALL, share
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
