"""Base classes of losses."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from weft.nn.functional.common import reduction_of
from weft.nn.layer.base import Layer, buffer, options


class ReducedLoss(Layer):
    """Base class of losses with a reduction, whose constructors have other arguments first."""

    reduction: str
    _shown = ""

    def __post_init__(self, size_average: bool | None = None, reduce: bool | None = None) -> None:
        valid = ("none", "batchmean", "mean", "sum")
        name = type(self).__name__
        self.reduction = reduction_of(name, self.reduction, size_average, reduce, valid)


@options
class Loss(ReducedLoss):
    """Base class of losses with a reduction."""

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@options
class WeightedLoss(ReducedLoss):
    """Base class of losses with a weight tensor, a buffer."""

    weight: Any = buffer(default=None)
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
