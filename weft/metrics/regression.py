"""Metrics of regression: errors of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from weft.eager.functions.api import Tensor
from weft.errors import ShapeError
from weft.ir.dtype import float64
from weft.metrics.metric import Merge, Metric, Totals, given

__all__ = ["MeanAbsoluteError", "MeanSquaredError"]


def _difference(name: str, preds: Any, target: Any) -> Tensor:
    x, y = given(preds).to(float64), given(target).to(float64)
    if x.shape != y.shape:
        raise ShapeError.here(
            f"{name}: expected predictions and targets of one shape, got {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    return x - y


class MeanSquaredError(Metric):
    """The mean of squared differences, in float64.

    Args:
        squared: False takes the square root.

    >>> error = MeanSquaredError()
    >>> error.update([1.0, 2.0], [1.0, 4.0])
    >>> error.update([0.0], [1.0])
    >>> error.compute() == 5 / 3
    True
    """

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "count": "sum"}

    def __init__(self, squared: bool = True) -> None:
        super().__init__()
        self.squared = squared

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predicted and true numbers of one shape."""
        d = _difference("MeanSquaredError", preds, target)
        return {"total": (d * d).sum(), "count": d.numel()}

    def value(self, totals: Totals) -> float:
        """The mean, or its root; NaN if nothing was counted."""
        if not totals["count"]:
            return math.nan
        mean = totals["total"].item() / totals["count"].item()
        return mean if self.squared else math.sqrt(mean)


class MeanAbsoluteError(Metric):
    """The mean of absolute differences, in float64."""

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "count": "sum"}

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predicted and true numbers of one shape."""
        d = _difference("MeanAbsoluteError", preds, target)
        return {"total": d.abs().sum(), "count": d.numel()}

    def value(self, totals: Totals) -> float:
        """The mean; NaN if nothing was counted."""
        return totals["total"].item() / totals["count"].item() if totals["count"] else math.nan
