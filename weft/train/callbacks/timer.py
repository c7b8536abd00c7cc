"""`Timer`: measures a run and limits its time."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from weft.errors import ArgumentError
from weft.train.callbacks.callback import Callback
from weft.train.progress import seconds_of

STAGES: Final = ("train", "validate", "test")


class Timer(Callback):
    """Measures training, and stops it after the step in which its time is up.

    A resumed run adds to the saved run's time.

    Args:
        duration: `"DD:HH:MM:SS"`, a `timedelta`, its arguments as a dictionary, seconds, or `None`.
        interval: whether the time is checked after each `"step"` or each `"epoch"`.
        verbose: whether to print that the time is up.

    Raises:
        ArgumentError: the duration is none of these.

    >>> Timer("00:01:30:00").duration
    5400.0
    """

    def __init__(self, duration: Any = None, interval: str = "step", verbose: bool = True) -> None:
        if interval not in ("step", "epoch"):
            raise ArgumentError.here(
                f"Timer: expected interval 'step' or 'epoch', got {interval!r}"
            )
        self.duration = None if duration is None else seconds_of(duration)
        self.interval, self.verbose = interval, verbose
        self._before = 0.0
        self._starts: dict[str, float] = {}
        self._ends: dict[str, float] = {}

    def start_time(self, stage: str = "train") -> float | None:
        """When a stage began, on the monotonic clock; `None` if it did not."""
        return self._starts.get(stage)

    def end_time(self, stage: str = "train") -> float | None:
        """When a stage ended, on the monotonic clock; `None` if it did not."""
        return self._ends.get(stage)

    def time_elapsed(self, stage: str = "train") -> float:
        """Seconds of `"train"`, `"validate"` or `"test"`.

        Raises:
            ArgumentError: another stage.
        """
        if stage not in STAGES:
            raise ArgumentError.here(f"Timer: expected stage of {sorted(STAGES)}, got {stage!r}")
        begin, before = self._starts.get(stage), self._before if stage == "train" else 0.0
        return before if begin is None else before + self._ends.get(stage, time.monotonic()) - begin

    def time_remaining(self, stage: str = "train") -> float | None:
        """Remaining seconds; `None` without a limit."""
        elapsed = self.time_elapsed(stage)
        return None if self.duration is None else self.duration - elapsed

    def _begin(self, stage: str) -> None:
        self._ends.pop(stage, None)
        self._starts[stage] = time.monotonic()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock, behind the time of earlier runs."""
        self._before = self.time_elapsed()
        self._begin("train")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop the clock."""
        self._ends["train"] = time.monotonic()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock of validation."""
        self._begin("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop the clock of validation."""
        self._ends["validate"] = time.monotonic()

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock of the test."""
        self._begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop the clock of the test."""
        self._ends["test"] = time.monotonic()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop if the time is up."""
        if self.interval == "step":
            self._check(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop if the time is up."""
        if self.interval == "epoch":
            self._check(trainer)

    def _check(self, trainer: Any) -> None:
        if self.duration is None or self.time_elapsed() < self.duration:
            return
        trainer.should_stop = True
        if self.verbose and trainer.is_global_zero:
            print(f"Timer: {self.duration:g} s are over, training stops", file=sys.stderr)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Stop the clock, also behind an error."""
        if stage == "fit" and "train" in self._starts:
            self._ends.setdefault("train", time.monotonic())

    def state_dict(self) -> dict[str, Any]:
        """Seconds so far."""
        return {"time_elapsed": self.time_elapsed()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the time."""
        self._starts.pop("train", None)
        self._before = float(state_dict["time_elapsed"])
