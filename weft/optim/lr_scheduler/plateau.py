"""A rate that falls when a metric stops improving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from weft.errors import OptimizerError
from weft.ops.refusal import GuardedMaking
from weft.optim.lr_scheduler.scheduler import figures, of_each_group
from weft.optim.optimizer import Optimizer


class ReduceLROnPlateau(GuardedMaking):
    """Multiplies the rates by `factor` when the metric has not improved for over `patience` steps.

    Args:
        optimizer: the one whose rates are set.
        mode: whether the metric should fall ("min") or rise ("max").
        factor: what the rates are multiplied by, below 1.
        patience: steps without an improvement that change nothing.
        threshold: how much counts as better.
        threshold_mode: whether it is relative ("rel") or absolute ("abs").
        cooldown: steps to wait after a reduction.
        min_lr: the lowest rate, for all groups or one each.
        eps: smaller changes of the rate are not made.

    Raises:
        OptimizerError: a factor that does not reduce, an unknown mode, or not one rate a group.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        _check(optimizer, mode, factor, threshold_mode)
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = of_each_group("ReduceLROnPlateau", "min_lr", optimizer, min_lr)
        self.best = float("inf") if mode == "min" else float("-inf")
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0

    def step(self, metrics: Any) -> None:
        """Report the metric: a number or a tensor of one element."""
        self.last_epoch += 1
        value = float(metrics)
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        """PyTorch's four cases: best * (1 -+ threshold), best -+ threshold."""
        margin = self.threshold if self.mode == "max" else -self.threshold
        relative = self.threshold_mode == "rel"
        bound = self.best * (1 + margin) if relative else self.best + margin
        return value > bound if self.mode == "max" else value < bound

    def _reduce(self) -> None:
        for group, lowest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, lowest)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The current rates."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        return figures(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        vars(self).update(state_dict)


def _check(optimizer: Optimizer, mode: str, factor: float, threshold_mode: str) -> None:
    name = "ReduceLROnPlateau"
    if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptimizerError.here(f"{name}: expected an optimizer, got {type(optimizer).__name__}")
    if factor >= 1:
        raise OptimizerError.here(f"{name}: expected factor below 1, got {factor}")
    if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
        raise OptimizerError.here(
            f"{name}: expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got "
            f"{mode!r} and {threshold_mode!r}"
        )
