"""Metrics of ranking: the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.metrics.metric import Array, Merge, Metric, Totals, given, number
from weft.ops.metric.curve import exact_roc_area
from weft.ops.metric.mean import average


class AUROC(Metric):
    """The area under the ROC curve, exact: no bins.

    It is the probability that a random positive scores above a random negative; equal scores count
    half. Scores and targets of all batches are kept until `reset`.

    Predictions (N,) or (N, 1) are scores for targets 0 and 1; predictions (N, C) are scores of
    classes for targets (N,), each one against the rest, or of labels for targets (N, C). Scores of
    classes of which any is outside of 0 to 1 are logits, so softmax is applied first.

    Args:
        average: over classes: `"macro"`, `"weighted"` by how often they are true, or `None` for an
            array. Classes without positives or without negatives are NaN in the array, and are left
            out of averages.

    Source: Hanley and McNeil, "The Meaning and Use of the Area under a ROC Curve", 1982.

    >>> area = AUROC()
    >>> area.update([0.1, 0.4], [0, 0])
    >>> area.update([0.35, 0.8], [1, 1])
    >>> area.compute()
    0.75
    """

    merges: ClassVar[Mapping[str, Merge]] = {"scores": "concatenate", "targets": "concatenate"}

    def __init__(self, average: Literal["macro", "weighted"] | None = "macro") -> None:
        super().__init__()
        if average not in ("macro", "weighted", None):
            raise ArgumentError.here(
                f"AUROC: expected average 'macro', 'weighted' or None, got {average!r}"
            )
        self.average = average

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Scores (N,) or (N, C), and targets (N,) or (N, C)."""
        p, t = given(preds), given(target)
        if p.ndim not in (1, 2) or t.shape not in (p.shape[:1], p.shape):
            raise ShapeError.here(
                f"AUROC: expected scores (N,) or (N, C) and targets (N,), or (N, C) for labels, "
                f"got {tuple(p.shape)} and {tuple(t.shape)}"
            )
        if p.ndim == 2 and p.shape[1] == 1:
            p, t = p.squeeze(1), t.reshape(-1)
        return {"scores": p.clone(), "targets": t.to(int64).clone()}

    def check(self, totals: Totals) -> None:
        """Raise if a target is not a class or a score is NaN."""
        scores, targets = totals["scores"], totals["targets"]
        classes = scores.shape[1] if scores.ndim > targets.ndim else 2
        if targets.size and not (targets.min() >= 0 and targets.max() < classes):
            raise OutOfRangeError.here(
                f"AUROC: expected targets from 0 to {classes - 1}, got {targets.min()} to "
                f"{targets.max()}"
            )
        if np.isnan(scores.astype(np.float64, copy=False)).any():
            raise ArgumentError.here("AUROC: expected scores, got NaN")

    def value(self, totals: Totals) -> Any:
        """The area, or the areas of all classes; NaN where it is undefined."""
        scores, targets = totals["scores"], totals["targets"]
        if scores.ndim == 1:
            return exact_roc_area(scores, targets == 1)
        positive = targets == 1
        if targets.ndim == 1:
            scores, positive = _probabilities(scores), targets[:, None] == range(scores.shape[1])
        areas = np.array([exact_roc_area(x, y) for x, y in zip(scores.T, positive.T, strict=True)])
        if self.average is None:
            return areas
        known = ~np.isnan(areas)
        counts = positive.sum(0) if self.average == "weighted" else known
        weights = np.where(known, counts, 0)
        if not weights.sum():
            return float("nan")
        return number(average(np.where(known, areas, 0), weights))


def _probabilities(scores: Array) -> Array:
    """Scores of classes; logits after softmax."""
    if ((scores >= 0) & (scores <= 1)).all():
        return scores
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
