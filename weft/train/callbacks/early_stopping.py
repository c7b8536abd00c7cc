"""`EarlyStopping`: ends training when a metric stops improving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from weft.errors import ArgumentError, UnknownKeyError
from weft.ir.node import at_user_line
from weft.ops.warning import warn
from weft.train.callbacks.callback import Callback

__all__ = ["EarlyStopping", "EarlyStoppingReason"]


class EarlyStoppingReason(Enum):
    """Why training stopped."""

    NOT_STOPPED = 0
    STOPPING_THRESHOLD = 1
    DIVERGENCE_THRESHOLD = 2
    PATIENCE_EXHAUSTED = 3
    NON_FINITE_METRIC = 4


class EarlyStopping(Callback):
    """Stops after `patience` checks without improvement.

    It checks after each epoch; after each validation instead, if there are several per epoch or not
    one in each.

    Args:
        monitor: the metric's name.
        min_delta: the least change that counts as an improvement.
        patience: the number of checks without improvement.
        mode: whether the metric should fall, `"min"`, or rise, `"max"`.
        strict: whether a metric that was not logged is an error.
        check_finite: whether NaN or infinity stops at once.
        stopping_threshold: stop as soon as the metric is this good.
        divergence_threshold: stop as soon as it is this bad.
        check_on_train_epoch_end: check after training epochs (true) or validations (false).
        verbose: whether to print why training stops.
        log_rank_zero_only: taken for programs that give it: only rank 0 prints.

    Attributes:
        stopping_reason: why it stopped, as a member of `EarlyStoppingReason`.
        stopping_reason_message: the same in words; also `reason`, which is empty before.

    Raises:
        UnknownKeyError: the metric was not logged. It is a warning as long as no validation has
            run; the `ModelCheckpoint`s save the state before the run ends.
    """

    monitors: ClassVar[bool] = True

    def __init__(
        self, monitor: str, min_delta: float = 0.0, patience: int = 3, verbose: bool = False,
        mode: str = "min", strict: bool = True, check_finite: bool = True,
        stopping_threshold: float | None = None, divergence_threshold: float | None = None,
        check_on_train_epoch_end: bool | None = None, log_rank_zero_only: bool = False,
    ) -> None:  # fmt: skip
        if mode not in ("min", "max"):
            raise ArgumentError.here(f"EarlyStopping: expected mode 'min' or 'max', got {mode!r}")
        self.monitor, self.min_delta, self.patience = monitor, abs(min_delta), patience
        self.verbose, self.mode, self.strict = verbose, mode, strict
        self.check_finite = check_finite
        self.stopping_threshold = stopping_threshold
        self.divergence_threshold = divergence_threshold
        self.check_on_train_epoch_end = check_on_train_epoch_end
        self.wait_count = 0
        self.stopped_epoch = 0
        self.best_score = math.inf if mode == "min" else -math.inf
        self.reason = ""
        self.stopping_reason = EarlyStoppingReason.NOT_STOPPED

    @property
    def stopping_reason_message(self) -> str | None:
        """Why it stopped; `None` before."""
        return self.reason or None

    @property
    def state_key(self) -> str:
        """One state per metric."""
        return f"EarlyStopping {self.monitor} {self.mode}"

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Check, unless training epochs are checked."""
        if not (trainer.sanity_checking or trainer.stage != "fit" or self._by_epoch(trainer)):
            self._check(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Check, unless validations are checked."""
        if self._by_epoch(trainer):
            self._check(trainer)

    def _by_epoch(self, trainer: Any) -> bool:
        given = self.check_on_train_epoch_end
        return trainer.fit_loop.validates_each_epoch if given is None else given

    def _check(self, trainer: Any) -> None:
        figures = trainer.callback_metrics
        if trainer.fast_dev_run:
            return
        if self.monitor not in figures:
            text = (
                f"EarlyStopping: expected the metric {self.monitor!r} to be logged, got "
                f"{sorted(figures)}; check_on_train_epoch_end=True checks after epochs"
                f"{at_user_line()}"
            )
            if self.strict and not trainer.fit_loop.awaits_metrics:
                raise UnknownKeyError(text)
            if self.strict or self.verbose:
                warn(text)
            return
        self.reason = self._judge(float(figures[self.monitor].item()))
        if self.reason:
            trainer.should_stop = True
            self.stopped_epoch = trainer.current_epoch
            if self.verbose and trainer.strategy.is_global_zero:
                print(f"EarlyStopping: {self.reason}")

    def _judge(self, x: float) -> str:
        """Why to stop; empty to go on."""
        kind = EarlyStoppingReason
        if self.check_finite and not math.isfinite(x):
            return self._stop(kind.NON_FINITE_METRIC, f"{self.monitor} is {x}")
        sign = 1 if self.mode == "min" else -1
        told = f"{self.monitor} = {x:.6g} is"
        good, bad = self.stopping_threshold, self.divergence_threshold
        if good is not None and sign * x < sign * good:
            return self._stop(kind.STOPPING_THRESHOLD, f"{told} better than {good:.6g}")
        if bad is not None and sign * x > sign * bad:
            return self._stop(kind.DIVERGENCE_THRESHOLD, f"{told} worse than {bad:.6g}")
        if sign * x < sign * self.best_score - self.min_delta:
            self.best_score, self.wait_count = x, 0
            return ""
        self.wait_count += 1
        if self.wait_count < self.patience:
            return ""
        text = f"did not get better than {self.best_score:.6g} {self.patience} times"
        return self._stop(kind.PATIENCE_EXHAUSTED, f"{self.monitor} {text}")

    def _stop(self, reason: EarlyStoppingReason, text: str) -> str:
        self.stopping_reason = reason
        return text

    def state_dict(self) -> dict[str, Any]:
        """The best value, and the number of checks without improvement."""
        return {
            "best_score": self.best_score,
            "wait_count": self.wait_count,
            "stopped_epoch": self.stopped_epoch,
            "patience": self.patience,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.best_score = float(state_dict["best_score"])
        self.wait_count = int(state_dict["wait_count"])
        self.stopped_epoch = int(state_dict["stopped_epoch"])
