"""Scores of documents that are ranked for one query.

Each function takes predicted scores and relevances (N,) and how many documents are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ops.metric.curve import exact_roc_area

Array = np.ndarray[Any, Any]
Score = Callable[[Array, Array, int], float]


def shown(preds: Array, target: Array, k: int) -> Array:
    """The relevances of the first `k` documents; equal scores keep their order."""
    return target[np.argsort(-preds, kind="stable")[:k]]


def _places(preds: Array, target: Array, k: int) -> Array:
    """The places, from 1, of relevant documents with positive scores."""
    return np.flatnonzero(shown(preds, np.where(preds > 0, target, 0), k)) + 1


def average_precision(preds: Array, target: Array, k: int) -> float:
    """The mean precision at the places of relevant documents."""
    places = _places(preds, target, k)
    return float((np.arange(1, len(places) + 1) / places).mean()) if len(places) else 0.0


def reciprocal_rank(preds: Array, target: Array, k: int) -> float:
    """One over the place of the first relevant document."""
    places = _places(preds, target, k)
    return float(1 / places[0]) if len(places) else 0.0


def precision(preds: Array, target: Array, k: int) -> float:
    """The part of shown documents that is relevant."""
    return len(_places(preds, target, k)) / k


def recall(preds: Array, target: Array, k: int) -> float:
    """The part of relevant documents that is shown."""
    return len(_places(preds, target, k)) / max(int(target.sum()), 1)


def hit_rate(preds: Array, target: Array, k: int) -> float:
    """Whether a relevant document is shown."""
    return float(shown(preds, target, k).any())


def fall_out(preds: Array, target: Array, k: int) -> float:
    """The part of other documents that is shown."""
    return float(shown(preds, 1 - target, k).sum() / max(int((1 - target).sum()), 1))


def r_precision(preds: Array, target: Array, k: int) -> float:
    """Precision where as many are shown as are relevant; `k` is not read."""
    count = int(target.sum())
    return float(shown(preds, target, count).sum() / max(count, 1))


def area(preds: Array, target: Array, k: int) -> float:
    """The area under the curve of true over false positives, among shown documents."""
    order = np.argsort(-preds, kind="stable")[:k]
    own = target[order]
    return exact_roc_area(preds[order], own > 0) if 0 < own.sum() < len(own) else 0.0


def normalized_gain(preds: Array, target: Array, k: int) -> float:
    """The discounted cumulative gain, relative to that of the best order.

    Relevances of equal scores are averaged.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002.
    """
    discounts = 1 / np.log2(np.arange(len(target)) + 2.0)
    discounts[k:] = 0
    _, group, counts = np.unique(-preds, return_inverse=True, return_counts=True)
    means = np.bincount(group, target) / counts
    sums = np.diff(np.cumsum(discounts)[np.cumsum(counts) - 1], prepend=0.0)
    best = float((np.sort(target)[::-1] * discounts).sum())
    return float((means * sums).sum()) / best if best else 0.0
