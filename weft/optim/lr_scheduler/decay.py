"""Rates that decay: by steps, powers, polynomials, half a cosine, or a function."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from weft.errors import OptimizerError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "StepLR",
]  # fmt: skip

Factor = Callable[[int], float]


def _one_each(
    name: str, optimizer: Optimizer, given: Factor | Sequence[Factor]
) -> tuple[Factor, ...]:
    """One function for each group.

    Raises:
        OptimizerError: the number of functions is wrong.
    """
    count = len(optimizer.param_groups)
    factors = (given,) * count if callable(given) else tuple(given)
    if len(factors) != count:
        raise OptimizerError.here(
            f"{name}: expected {count} functions, one a group, got {len(factors)}"
        )
    return factors


def _attributes(functions: Sequence[Factor]) -> list[dict[str, Any] | None]:
    """The state of functions: the attributes of those that are objects."""
    return [None if isinstance(f, FunctionType) else dict(vars(f)) for f in functions]


def _restore(functions: Sequence[Factor], attributes: Sequence[Mapping[str, Any] | None]) -> None:
    """Restore the attributes of functions that are objects."""
    for function, given in zip(functions, attributes, strict=False):
        if given is not None:
            vars(function).update(given)


class LambdaLR(LRScheduler):
    """base * lr_lambda(t), with one function for all groups or one each.

    Args:
        lr_lambda: from the number of steps to the factor; one function, or one for each group.
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas = _one_each(type(self).__name__, optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups."""
        return [b * f(t) for b, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """The state, with the attributes of functions that are objects."""
        return {**super().state_dict(), "lr_lambdas": _attributes(self.lr_lambdas)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned; the functions themselves stay."""
        _restore(self.lr_lambdas, state_dict.get("lr_lambdas", ()))
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class MultiplicativeLR(LambdaLR):
    """The previous rate times lr_lambda(t), with one function for all groups or one each."""

    chains = True

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups."""
        return [
            base * math.prod([f(i) for i in range(1, t + 1)])
            for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """base * gamma ** (t // step_size).

    Args:
        step_size: steps between two changes.
        gamma: the factor of a change.
    """

    chains = True

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return base * self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """base * gamma ** (number of milestones reached).

    Args:
        milestones: the steps at which the rate changes.
        gamma: the factor of a change.
    """

    chains = True

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return base * self.gamma ** bisect_right(self.milestones, t)


class ExponentialLR(LRScheduler):
    """base * gamma ** t.

    Args:
        gamma: the factor of a step.
    """

    chains = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return base * self.gamma**t


class PolynomialLR(LRScheduler):
    """base * (1 - t / total_iters) ** power, then 0.

    Args:
        total_iters: the steps of the way to 0.
        power: the exponent; 1 is a straight line.
    """

    chains = True

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return base * (1 - min(t, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """From base to eta_min along half a cosine of T_max steps (and back, if it goes on).

    Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017, without
    the restarts.

    Args:
        T_max: the steps of the half cosine.
        eta_min: the lowest rate.
    """

    chains = True

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        return cosine(base, self.eta_min, t / self.T_max)

    def get_lr(self) -> list[float]:
        """The rates at `last_epoch`; resumed, those of its own curve."""
        if self._step_count == 1 and self.last_epoch > 0:
            return self.rates(self.last_epoch)
        return super().get_lr()


def cosine(start: float, end: float, part: float) -> float:
    """From `start` (at 0) to `end` (at 1) along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2
