"""Values of TensorBoard's plugins: text, PR curves, meshes and layouts of charts.

PrCurvePluginData   version = 1, num_thresholds = 2
MeshPluginData      version = 1, name = 2, content_type = 3, json_config = 5, shape = 6,
                    components = 7
Layout              version = 1, category = 2: title = 1, chart = 2, closed = 3
Chart               title = 1, multiline = 2 (tag = 1), margin = 3 (series = 1: value = 1,
                    lower = 2, upper = 3)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.formats import wire
from weft.formats.event import message

LAYOUT_TAG: Final = "custom_scalars__config__"
MOST_THRESHOLDS: Final = 127
VERTEX, FACE, COLOR = 1, 2, 3
Layout = Mapping[str, Mapping[str, Sequence[Any]]]


def text(tag: str, content: str) -> bytes:
    """Markdown text."""
    return message.tensor_value(
        f"{tag}/text_summary", message.text_tensor([content]), message.metadata("text")
    )


def scalar_tensor(tag: str, value: Any) -> bytes:
    """A scalar in its own type."""
    return message.tensor_value(tag, message.tensor_proto(value), message.metadata("scalars"))


def whole_tensor(tag: str, array: Any) -> bytes:
    """An array of numbers."""
    return message.tensor_value(tag, message.tensor_proto(array), message.metadata("tensor"))


def pr_curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> bytes:
    """Precision and recall of predictions between 0 and 1, counted at evenly spaced thresholds.

    Raises:
        ShapeError: there is not one label per prediction.
        ArgumentError: a prediction lies outside [0, 1].
    """
    truth, score = np.asarray(labels).reshape(-1) != 0, np.asarray(predictions).reshape(-1)
    if truth.shape != score.shape:
        raise ShapeError(
            f"pr_curve: {tag!r}: expected a label for each prediction, got {truth.size} labels and "
            f"{score.size} predictions"
        )
    if not np.all((score >= 0) & (score <= 1)):
        raise ArgumentError(f"pr_curve: {tag!r}: expected predictions between 0 and 1")
    weight = np.broadcast_to(
        1.0 if weights is None else np.asarray(weights).reshape(-1), score.shape
    )
    count = min(MOST_THRESHOLDS, thresholds)
    bucket = np.floor(score * (count - 1)).astype(np.int64)

    def above(chosen: np.ndarray) -> np.ndarray:
        counts = np.bincount(bucket[chosen], weight[chosen], count)
        return counts[::-1].cumsum()[::-1]

    hits, alarms = above(truth), above(~truth)
    return raw_pr_curve(tag, hits, alarms, alarms[0] - alarms, hits[0] - hits)


def raw_pr_curve(
    tag: str, hits: Any, alarms: Any, true_negatives: Any, misses: Any,
    precision: Any = None, recall: Any = None,
) -> bytes:  # fmt: skip
    """A precision-recall curve from its counts at each threshold."""
    tp, fp, tn, fn = (np.asarray(v, np.float64) for v in (hits, alarms, true_negatives, misses))
    if precision is None:
        precision = tp / np.maximum(tp + fp, 1e-7)
    if recall is None:
        recall = tp / np.maximum(tp + fn, 1e-7)
    table = np.stack([tp, fp, tn, fn, np.asarray(precision), np.asarray(recall)])
    content = wire.integer(2, table.shape[1])
    metadata = message.metadata("pr_curves", content)
    return message.tensor_value(tag, message.tensor_proto(table.astype(np.float32)), metadata)


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> list[bytes]:
    """Points in space, `[batch, points, 3]`, optionally with colors and triangles.

    Raises:
        ShapeError: wrong dimensions.
    """
    parts: list[tuple[int, str, Any, Any]] = [
        (VERTEX, "VERTEX", vertices, np.float32),
        (FACE, "FACE", faces, np.int32),
    ]
    parts.append((COLOR, "COLOR", colors, np.uint8))
    given = [(kind, name, np.asarray(a, t)) for kind, name, a, t in parts if a is not None]
    components = sum([1 << kind for kind, _, _ in given])
    found: list[bytes] = []
    for kind, name, array in given:
        if array.ndim != 3 or array.shape[2] != 3:
            raise ShapeError(f"mesh: {tag!r}: expected [batch, count, 3], got {array.shape}")
        content = wire.delimited(2, tag) + wire.integer(3, kind)
        content += wire.delimited(5, json.dumps(config or {}, sort_keys=True))
        content += wire.packed(6, np.array(array.shape)) + wire.integer(7, components)
        metadata = message.metadata("mesh", content, tag)
        found.append(message.tensor_value(f"{tag}_{name}", message.tensor_proto(array), metadata))
    return found


def layout(charts: Layout) -> bytes:
    """Groups charts: category, title, and `["Multiline" or "Margin", tags]`.

    Raises:
        ArgumentError: a chart of another kind, or a margin chart without three tags each.
    """
    content = b""
    for category, titles in charts.items():
        one = wire.delimited(1, category)
        for title, (kind, tags) in titles.items():
            one += wire.delimited(2, wire.delimited(1, title) + _chart(title, kind, tags))
        content += wire.delimited(2, one)
    return message.tensor_value(
        LAYOUT_TAG, message.text_tensor([content], []), message.metadata("custom_scalars")
    )


def _chart(title: str, kind: str, tags: Sequence[str]) -> bytes:
    if kind == "Multiline":
        return wire.delimited(2, b"".join([wire.delimited(1, tag) for tag in tags]))
    if kind != "Margin" or len(tags) != 3:
        raise ArgumentError(
            f"layout: chart {title!r}: expected ['Multiline', tags] or ['Margin', [value, lower, "
            f"upper]], got [{kind!r}, {list(tags)!r}]"
        )
    series = b"".join([wire.delimited(place + 1, tag) for place, tag in enumerate(tags)])
    return wire.delimited(3, wire.delimited(1, series))
