"""Rates that rise and fall: warm restarts, cycles, and one cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from weft.errors import OptimizerError
from weft.optim.lr_scheduler.decay import cosine
from weft.optim.lr_scheduler.scheduler import LRScheduler, of_each_group
from weft.optim.optimizer import Group, Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from base to eta_min, of T_0 steps, then T_0 * T_mult, and so on.

    Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.

    Args:
        T_0: the steps of the first half cosine.
        T_mult: how many times longer each one is than the one before.
        eta_min: the lowest rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps."""
        length = self.T_0
        while t >= length:
            t -= length
            length *= self.T_mult
        return cosine(base, self.eta_min, t / length)


class CyclicLR(LRScheduler):
    """Cycles between two rates.

    Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.

    Args:
        base_lr, max_lr: the lowest and the highest rate, of all groups or one each.
        step_size_up, step_size_down: steps from `base_lr` to `max_lr`, and back.
        mode: the height of later cycles: "triangular" (the same), "triangular2" (half each time) or
            "exp_range" (gamma ** steps).
        gamma: the factor of a step with "exp_range".
        scale_fn: a custom height, of the cycle or of the step as `scale_mode` says.
        scale_mode: "cycle" or "iterations".
        cycle_momentum: whether the momentum (or Adam's first beta) cycles the opposite way.
        base_momentum, max_momentum: its lowest and highest value, of all groups or one each.

    Raises:
        OptimizerError: an unknown mode, not one rate a group, or no momentum to cycle.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise OptimizerError.here(
                f"CyclicLR: expected mode 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
            )
        self.max_lrs = of_each_group("CyclicLR", "max_lr", optimizer, max_lr)
        lows = of_each_group("CyclicLR", "base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                group["lr"] = group["initial_lr"] = low
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        self.base_momentums = of_each_group("CyclicLR", "base_momentum", optimizer, base_momentum)
        self.max_momentums = of_each_group("CyclicLR", "max_momentum", optimizer, max_momentum)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum("CyclicLR", optimizer)
        super().__init__(optimizer, last_epoch)

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups; also sets the momentum."""
        cycle = math.floor(1 + t / self.total_size)
        x = 1.0 + t / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self._scale(cycle, t)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, high - (high - low) * part * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * part * scale for low, high in pairs]

    def _scale(self, cycle: int, t: int) -> float:
        """The height of the cycle."""
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else t)
        if self.mode == "exp_range":
            return self.gamma**t
        return 1.0 if self.mode == "triangular" else 0.5 ** (cycle - 1)


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to the initial rate / final_div_factor.

    The momentum (or Adam's first beta) goes the opposite way. Smith and Topin, "Super-Convergence",
    2018.

    Args:
        max_lr: the highest rate, of all groups or one each.
        total_steps: steps in all, or `epochs` * `steps_per_epoch`.
        epochs, steps_per_epoch: in place of `total_steps`.
        pct_start: the part of the steps that go up.
        anneal_strategy: along half a cosine ("cos"), or linearly ("linear").
        cycle_momentum: whether the momentum changes.
        base_momentum, max_momentum: its lowest and highest value, of all groups or one each.
        div_factor: the initial rate is max_lr / div_factor.
        final_div_factor: the last rate is the initial one / final_div_factor.
        three_phase: up, back down to the initial rate, then further down.

    Raises:
        OptimizerError: neither `total_steps` nor both others are given, steps go beyond it, an
            option is out of its range, or there is no momentum to cycle.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1 or anneal_strategy not in ("cos", "linear"):
            raise OptimizerError.here(
                "OneCycleLR: expected pct_start from 0 to 1 and anneal_strategy 'cos' or 'linear', "
                f"got {pct_start} and {anneal_strategy!r}"
            )
        self.max_lrs = [
            float(top) for top in of_each_group("OneCycleLR", "max_lr", optimizer, max_lr)
        ]
        self.initial = [top / div_factor for top in self.max_lrs]
        self.final = [low / final_div_factor for low in self.initial]
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.base_momentums = of_each_group("OneCycleLR", "base_momentum", optimizer, base_momentum)
        self.max_momentums = of_each_group("OneCycleLR", "max_momentum", optimizer, max_momentum)
        if cycle_momentum:
            _check_momentum("OneCycleLR", optimizer)
        up, last = float(pct_start * self.total_steps) - 1, self.total_steps - 1.0
        self.ends = [up, 2 * up, last] if three_phase else [up, last]
        super().__init__(optimizer, last_epoch)

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups; also sets the momentum."""
        if t > self.total_steps:
            raise OptimizerError.here(
                f"OneCycleLR: expected {self.total_steps} steps at most, got {t}"
            )
        three = len(self.ends) == 3
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                way = [high, low, high, high] if three else [high, low, high]
                _set_momentum(group, self._along(way, t))
        triples = zip(self.initial, self.max_lrs, self.final, strict=True)
        return [
            self._along([low, top, low, end] if three else [low, top, end], t)
            for low, top, end in triples
        ]

    def _along(self, way: Sequence[float], t: int) -> float:
        """The value at step `t` between a phase's start and end."""
        start = 0.0
        for i, end in enumerate(self.ends):
            if t <= end or i == len(self.ends) - 1:
                part = (t - start) / (end - start)
                if self.anneal_strategy == "cos":
                    return cosine(way[i], way[i + 1], part)
                return way[i] + (way[i + 1] - way[i]) * part
            start = end
        raise AssertionError("the last phase has no end")


def _total(total: int | None, epochs: int | None, each: int | None) -> int:
    """The total number of steps.

    Raises:
        OptimizerError: they are not given, or a number is not above 0.
    """
    given = (epochs, each) if total is None else (total,)
    if any(not isinstance(n, int) or n <= 0 for n in given):
        raise OptimizerError.here(
            "OneCycleLR: expected total_steps, or epochs and steps_per_epoch, above 0; got "
            f"{total}, {epochs} and {each}"
        )
    return math.prod([n for n in given if n is not None])


def _check_momentum(owner: str, optimizer: Optimizer) -> None:
    """Require an optimizer with momentum.

    Raises:
        OptimizerError: it has none.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise OptimizerError.here(
            f"{owner}: expected an optimizer with momentum or betas, got "
            f"{type(optimizer).__name__}; pass cycle_momentum=False"
        )


def _set_momentum(group: Group, value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    elif "momentum" in group:
        group["momentum"] = value
