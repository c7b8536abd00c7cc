"""Metrics of regression: errors of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import recorded
from weft.errors import ShapeError
from weft.ir.dtype import float64
from weft.metrics.metric import Merge, Metric, Totals, given
from weft.ops.metric.mean import quotient
from weft.ops.metric.moment import pair_sums

__all__ = ["MeanAbsoluteError", "MeanSquaredError"]


_pair_sums = recorded(pair_sums, differentiable=False)


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


class Moments(Metric):
    """A figure of sums over pairs of predictions and targets, in float64.

    Args:
        figure: of the number of pairs and five sums; see `weft.ops.metric.moment`.
        outputs: the size of the last dimension, whose entries are counted apart; 1 counts all.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"sums": "sum"}

    def __init__(self, figure: Callable[..., Any], outputs: int = 1) -> None:
        super().__init__()
        self.figure, self.outputs = figure, outputs

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predicted and true numbers of one shape."""
        _difference(type(self).__name__, preds, target)
        shape = (-1,) if self.outputs == 1 else (-1, self.outputs)
        x, y = (given(v).to(float64).reshape(*shape) for v in (preds, target))
        return {"sums": _pair_sums(x, y)}

    def value(self, totals: Totals) -> Any:
        """The figure; of each output if there are several."""
        return self.figure(*totals["sums"])


class Summed(Metric):
    """A figure of totals that a function gives for each batch.

    Args:
        part: of predictions and targets: totals by `"total"` and `"count"`.
        figure: of these totals; their quotient by default.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "count": "sum"}

    def __init__(
        self, part: Callable[..., tuple[Any, Any]], figure: Callable[..., Any] | None = None
    ) -> None:
        super().__init__()
        self._part, self._figure = part, figure or quotient

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predictions and targets."""
        return dict(zip(self.merges, self._part(preds, target), strict=True))

    def value(self, totals: Totals) -> Any:
        """The figure."""
        return self._figure(totals["total"], totals["count"])


class Each(Summed):
    """A figure of totals of each part of the batches, which are kept until `reset`."""

    merges: ClassVar[Mapping[str, Merge]] = {"total": "concatenate", "count": "concatenate"}


class Pairs(Metric):
    """A figure of all pairs of predictions and targets, which are kept until `reset`.

    Args:
        figure: of arrays of predictions and targets.
        outputs: the size of the last dimension, whose entries are compared apart.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"preds": "concatenate", "target": "concatenate"}

    def __init__(self, figure: Callable[..., Any], outputs: int = 1) -> None:
        super().__init__()
        self.figure, self.outputs = figure, outputs

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predicted and true numbers of one shape."""
        _difference(type(self).__name__, preds, target)
        return {"preds": given(preds).clone(), "target": given(target).clone()}

    def value(self, totals: Totals) -> Any:
        """The figure; of each output if there are several."""
        x, y = totals["preds"], totals["target"]
        if self.outputs == 1:
            return self.figure(x.reshape(-1), y.reshape(-1))
        return np.array([self.figure(x[..., i], y[..., i]) for i in range(self.outputs)])
