"""Rates with a warmup."""

from __future__ import annotations

from weft.errors import OptimizerError
from weft.optim.lr_scheduler.decay import cosine
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer

__all__ = ["ConstantLR", "LinearLR", "WarmupCosineLR"]


def _check_factor(owner: str, name: str, factor: float, low: float = 0.0) -> None:
    """Require a factor above `low`, up to 1.

    Raises:
        OptimizerError: names the factor.
    """
    if factor > 1 or factor < low:
        raise OptimizerError.here(f"{owner}: expected {name} from {low:g} to 1, got {factor}")


class ConstantLR(LRScheduler):
    """base * factor for total_iters steps, then base.

    Args:
        factor: from 0 to 1.
        total_iters: the number of steps with it.
    """

    chains = True

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        _check_factor("ConstantLR", "factor", factor)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return base * self.factor if t < self.total_iters else base


class LinearLR(LRScheduler):
    """base times a factor that goes from start_factor to end_factor in total_iters steps.

    Args:
        start_factor, end_factor: from 0 to 1.
        total_iters: the steps from one to the other.
    """

    chains = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        _check_factor("LinearLR", "start_factor", start_factor, 1e-12)
        _check_factor("LinearLR", "end_factor", end_factor)
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        part = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


class WarmupCosineLR(LRScheduler):
    """Up from 0 to base in `warmup` steps, then down to `eta_min` along half a cosine.

    Args:
        warmup: steps of the rise.
        total: steps in all; afterwards the rate stays at `eta_min`.
        eta_min: the lowest rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup: int,
        total: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.warmup, self.total, self.eta_min = warmup, total, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps; the first step has a rate above 0."""
        if t < self.warmup:
            return base * (t + 1) / self.warmup
        rest = max(self.total - self.warmup, 1)
        return cosine(base, self.eta_min, min((t - self.warmup) / rest, 1.0))
