"""Losses of classification as modules; the formulas are in `weft.nn.functional`."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from weft.nn.functional import classification as F
from weft.nn.layer.base import buffer, layer
from weft.nn.layer.loss_base import Loss, ReducedLoss, WeightedLoss

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
]  # fmt: skip


@layer(F.cross_entropy)
class CrossEntropyLoss(ReducedLoss):
    """`-log(softmax(input)[target])`; targets are classes or probabilities."""

    weight: Any = buffer(default=None)
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@layer(F.nll_loss)
class NLLLoss(ReducedLoss):
    """`-input[target]`, for logarithms of probabilities."""

    weight: Any = buffer(default=None)
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer(F.binary_cross_entropy)
class BCELoss(WeightedLoss):
    """`-target * log(x) - (1 - target) * log(1 - x)`."""


@layer(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(WeightedLoss):
    """`BCELoss` of `sigmoid(input)`, stable for any logits."""

    pos_weight: Any = buffer(default=None)


@layer(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of `BCEWithLogitsLoss`."""


@layer(F.multilabel_margin_loss)
class MultiLabelMarginLoss(Loss):
    """`sum over j, i of max(0, 1 - x[y[j]] + x[i]) / classes`, for all i that no y[j] is.

    The target lists the classes y[j] first, then -1.
    """


@layer(F.multi_margin_loss)
class MultiMarginLoss(ReducedLoss):
    """`sum over i != t of max(0, margin - x[t] + x[i]) ** p / classes`."""

    p: int = 1
    margin: float = 1.0
    weight: Any = buffer(default=None)
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
