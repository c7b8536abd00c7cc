"""Base classes of losses."""

from __future__ import annotations

from typing import Any

from weft.nn.functional.common import reduction_of
from weft.nn.module.module import Module


class Loss(Module):
    """Base class of losses with a reduction."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        valid = ("none", "batchmean", "mean", "sum")
        self.reduction = reduction_of(type(self).__name__, reduction, size_average, reduce, valid)


class WeightedLoss(Loss):
    """Base class of losses with a weight tensor, a buffer."""

    weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
