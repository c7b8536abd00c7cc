"""Losses of regression, of distances and of sequences as modules.

The formulas are in `weft.nn.functional`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar
from typing import Any

from weft.nn.functional import loss as F
from weft.nn.functional.sequence import ctc_loss
from weft.nn.layer.base import layer
from weft.nn.layer.loss_base import Loss, ReducedLoss

__all__ = [
    "CTCLoss", "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


@layer(F.mse_loss)
class MSELoss(Loss):
    """Squared differences."""


@layer(F.l1_loss)
class L1Loss(Loss):
    """Absolute differences."""


@layer(F.smooth_l1_loss)
class SmoothL1Loss(Loss):
    """Absolute differences; squared (and scaled) below `beta`."""

    beta: float = 1.0


@layer(F.huber_loss)
class HuberLoss(ReducedLoss):
    """Half the squared differences; linear beyond `delta`."""

    reduction: str = "mean"
    delta: float = 1.0


@layer(F.kl_div)
class KLDivLoss(Loss):
    """Kullback-Leibler divergence: `target * (log(target) - input)`."""

    log_target: bool = False


@layer(F.hinge_embedding_loss)
class HingeEmbeddingLoss(ReducedLoss):
    """`x` where the target is 1, `max(0, margin - x)` where it is -1."""

    margin: float = 1.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer(F.margin_ranking_loss)
class MarginRankingLoss(ReducedLoss):
    """`max(0, -target * (x1 - x2) + margin)`."""

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer(F.soft_margin_loss)
class SoftMarginLoss(Loss):
    """`log(1 + exp(-target * x))`, targets 1 and -1."""


@layer(F.cosine_embedding_loss)
class CosineEmbeddingLoss(ReducedLoss):
    """`1 - cos(x1, x2)` where the target is 1, `max(0, cos(x1, x2) - margin)` where it is -1."""

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer(F.poisson_nll_loss)
class PoissonNLLLoss(ReducedLoss):
    """Negative log likelihood of Poisson counts."""

    log_input: bool = True
    full: bool = False
    size_average: InitVar[bool | None] = None
    eps: float = 1e-8
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, log_input: Any, target: Any) -> Any:
        """The loss of counts `target` and rates or their logarithms.

        Args:
            log_input: the logarithms of the rates, or the rates.
            target: the counts.
        """
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, None, self.eps, None, self.reduction
        )


@layer(F.gaussian_nll_loss)
class GaussianNLLLoss(ReducedLoss):
    """Negative log likelihood of normal numbers with mean `input` and variance `var`."""

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@layer(F.triplet_margin_loss)
class TripletMarginLoss(ReducedLoss):
    """`max(0, margin + distance to the positive - distance to the negative)`."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer(F.triplet_margin_with_distance_loss, kw_only=True)
class TripletMarginWithDistanceLoss(ReducedLoss):
    """`TripletMarginLoss` with a custom distance, a function of two tensors."""

    distance_function: Callable[[Any, Any], Any] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"


@layer(ctc_loss)
class CTCLoss(ReducedLoss):
    """Connectionist temporal classification: unaligned label sequences (Graves et al., 2006)."""

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
