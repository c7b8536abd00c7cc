"""Histograms: counts of values in buckets.

    HistogramProto   min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6,
                     bucket = 7

A bucket is given by its right edge, and the first one begins at the smallest number of its type. So
an empty bucket precedes the others, to mark where these begin.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.formats import wire

SMALLEST: Final = 1e-12
LARGEST: Final = 1e20
GROWTH: Final = 1.1  # ratio of adjacent bucket edges, as in TensorFlow


def histogram(
    tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None
) -> bytes:
    """A summary value with a histogram of values.

    Args:
        tag: its name.
        values: an array.
        bins: `"tensorflow"` for edges that grow by a tenth, or as for `np.histogram`.
        max_bins: adjacent buckets are merged until there are at most this many.

    Raises:
        ArgumentError: there are no values, or some are NaN or infinite.
    """
    array = np.asarray(values)
    array = array.reshape(-1).astype(np.float64)
    if not array.size:
        raise ArgumentError(f"histogram: {tag!r}: expected values, got an empty array")
    wrong = array.size - int(np.isfinite(array).sum())
    if wrong:
        raise ArgumentError(
            f"histogram: {tag!r}: expected finite values, got {wrong} of {array.size} that are "
            "NaN or infinite"
        )
    edges = edges_of_tensorflow() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(array, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    found = np.flatnonzero(counts)
    first, last = (found[0], found[-1] + 1) if len(found) else (0, len(counts))
    return raw_histogram(
        tag, array.min(), array.max(), array.size, array.sum(), float(array @ array),
        limits[first : last + 1], np.concatenate([[0], counts[first:last]]),
    )  # fmt: skip


def raw_histogram(
    tag: str, low: float, high: float, count: float, total: float, squares: float,
    limits: Any, counts: Any,
) -> bytes:  # fmt: skip
    """A summary value with given histogram counts.

    Raises:
        ArgumentError: there are not as many counts as limits.
    """
    right, number = np.asarray(limits, np.float64), np.asarray(counts, np.float64)
    if right.shape != number.shape or right.ndim != 1:
        raise ArgumentError(
            f"histogram: {tag!r}: expected a count for each limit, got limits of shape "
            f"{right.shape} and counts of shape {number.shape}"
        )
    content = b"".join(
        [wire.float64(i + 1, float(v)) for i, v in enumerate([low, high, count, total, squares])]
    )
    content += wire.packed(6, right) + wire.packed(7, number)
    return wire.delimited(1, tag) + wire.delimited(5, content)


@functools.cache
def edges_of_tensorflow() -> np.ndarray:
    """TensorFlow's bucket edges."""
    count = int(np.ceil(np.log(LARGEST / SMALLEST) / np.log(GROWTH)))
    right = SMALLEST * GROWTH ** np.arange(count)
    largest = np.finfo(np.float64).max
    return np.concatenate([[-largest], -right[::-1], [0.0], right, [largest]])
