"""Figures of regression from sums over pairs of true and predicted numbers, in NumPy.

`n` is the number of pairs; `x`, `y`, `xx`, `yy`, `xy` are sums of predictions, targets and
products. They are scalars, or arrays with an entry for each output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.metric.decision import stacked
from weft.ops.shape.creation import ones_like

Array = np.ndarray[Any, Any]


def pair_sums(x: Value, y: Value) -> Value:
    """The six sums over the first dimension, as the first dimension of the result."""
    rows = (ones_like(x), x, y, x * x, y * y, x * y)
    return stacked([catalogue.sum(v, axes=(0,)) for v in rows])


def squared_error(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """The sum of squared differences."""
    return np.maximum(xx - 2 * xy + yy, 0.0)


def spread(n: Any, a: Any, aa: Any) -> Any:
    """The sum of squared deviations from the mean."""
    return np.maximum(aa - a * a / n, 0.0)


def determination(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """R squared: the share of the targets' variance that predictions explain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - squared_error(n, x, y, xx, yy, xy) / spread(n, y, yy)


def explained(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """The share of the targets' variance that is explained, whatever the mean error."""
    rest, whole = spread(n, x - y, xx - 2 * xy + yy), spread(n, y, yy)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, 1 - rest / whole, np.where(rest > 0, 0.0, 1.0))


def pearson(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """Pearson's correlation coefficient."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (xy - x * y / n) / np.sqrt(spread(n, x, xx) * spread(n, y, yy))
    return np.clip(found, -1.0, 1.0)


def concordance(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """Lin's concordance correlation coefficient, of sample variances."""
    return (
        2 * (xy - x * y / n) / (n - 1)
        / (spread(n, x, xx) / (n - 1) + spread(n, y, yy) / (n - 1) + (x / n - y / n) ** 2)
    )  # fmt: skip


def ranks(x: Array) -> Array:
    """Ranks from 1 on; equal numbers share the mean of theirs."""
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[places.reshape(-1)]


def spearman(x: Array, y: Array) -> Any:
    """Spearman's correlation coefficient: that of ranks."""
    a, b = ranks(x), ranks(y)
    return pearson(len(a), a.sum(), b.sum(), (a * a).sum(), (b * b).sum(), (a * b).sum())


def kendall(x: Array, y: Array) -> float:
    """Kendall's tau-b: pairs in the same order less those in the other, over pairs without ties."""
    a, b = (np.sign(v[:, None] - v[None, :]) for v in (x, y))
    whole = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / whole) if whole else float("nan")
