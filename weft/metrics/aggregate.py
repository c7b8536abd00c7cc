"""Aggregates of numbers: mean, sum, minimum and maximum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.eager.tensor.dispatch import recorded
from weft.errors import ShapeError
from weft.ir.dtype import float64
from weft.ir.shape import broadcast
from weft.metrics.metric import Merge, Metric, Totals, given, number
from weft.ops.metric.mean import weighted_total

__all__ = ["Max", "Mean", "Min", "Sum"]

_weighted_total = recorded(weighted_total, differentiable=False)


class Mean(Metric):
    """The weighted mean of all numbers.

    >>> mean = Mean()
    >>> mean.update([1.0, 2.0, 3.0])
    >>> mean.update(8.0, weight=3)
    >>> mean.compute()
    5.0
    """

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "weight": "sum"}

    def part(self, value: Any, weight: Any = None) -> dict[str, Any]:
        """Numbers of any shape, and one weight for all or one for each."""
        x, w = given(value).to(float64), None if weight is None else given(weight).to(float64)
        if w is not None and broadcast(tuple(x.shape), tuple(w.shape)) != tuple(x.shape):
            raise ShapeError.here(
                f"Mean: expected one weight, or weights that broadcast to the values' shape "
                f"{tuple(x.shape)}, got {tuple(w.shape)}"
            )
        return dict(zip(self.merges, _weighted_total(x, w), strict=True))

    def value(self, totals: Totals) -> float:
        """The mean; NaN where all weights are 0."""
        weight = totals["weight"].item()
        return totals["total"].item() / weight if weight else float("nan")


class Sum(Metric):
    """The sum of all numbers, in float64."""

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum"}

    def part(self, value: Any) -> dict[str, Any]:
        """Numbers of any shape."""
        return {"total": given(value).to(float64).sum()}

    def value(self, totals: Totals) -> float:
        """The sum."""
        return totals["total"].item()


class Min(Metric):
    """The minimum of all numbers; NaN if any is NaN."""

    merges: ClassVar[Mapping[str, Merge]] = {"least": "min"}

    def part(self, value: Any) -> dict[str, Any]:
        """Numbers of any shape."""
        return {"least": given(value).min()}

    def value(self, totals: Totals) -> Any:
        """The minimum."""
        return number(totals["least"])


class Max(Metric):
    """The maximum of all numbers; NaN if any is NaN."""

    merges: ClassVar[Mapping[str, Merge]] = {"most": "max"}

    def part(self, value: Any) -> dict[str, Any]:
        """Numbers of any shape."""
        return {"most": given(value).max()}

    def value(self, totals: Totals) -> Any:
        """The maximum."""
        return number(totals["most"])
