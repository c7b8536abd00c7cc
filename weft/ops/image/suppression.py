"""Suppression of boxes that overlap better ones: on arrays, as the result's size depends on them.

Source: Girshick et al., "Rich feature hierarchies for accurate object detection", 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def kept(boxes: Array, scores: Array, threshold: float) -> Array:
    """The indices of boxes that overlap no better box that is kept, the best first.

    Args:
        boxes: (n, 4): left, top, right and bottom.
        scores: (n).
        threshold: of intersection over union, above which a box overlaps another.

    >>> kept(np.array([[0, 0, 4, 4.0], [0, 0, 4, 3], [5, 5, 6, 6]]), np.array([0.5, 0.9, 0.1]), 0.5)
    array([1, 2])
    """
    order = np.argsort(-scores, kind="stable")
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    found: list[int] = []
    while order.size:
        best, order = order[0], order[1:]
        found.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        common = np.clip(high - low, 0, None).prod(axis=1)
        order = order[common <= threshold * (areas[best] + areas[order] - common)]
    return np.array(found, np.int64)
