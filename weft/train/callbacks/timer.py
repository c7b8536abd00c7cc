"""`Timer`: measures a run and limits its time."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from weft.errors import ArgumentError
from weft.train.callbacks.callback import Callback


class Timer(Callback):
    """Measures training, and stops it after the step in which its time is up.

    A resumed run adds to the saved run's time.

    Args:
        duration: `"DD:HH:MM:SS"`, a `timedelta`, its arguments as a dictionary, seconds, or `None`.

    Raises:
        ArgumentError: the duration is none of these.

    >>> Timer("00:01:30:00").duration
    5400.0
    """

    def __init__(self, duration: Any = None) -> None:
        self.duration = None if duration is None else _seconds(duration)
        self._before = 0.0
        self._start: float | None = None

    def time_elapsed(self, stage: str = "train") -> float:
        """Seconds of training.

        Raises:
            ArgumentError: another stage than `"train"`, which alone is measured.
        """
        if stage != "train":
            raise ArgumentError.here(f"Timer: expected stage 'train', got {stage!r}")
        running = 0.0 if self._start is None else time.monotonic() - self._start
        return self._before + running

    def time_remaining(self, stage: str = "train") -> float | None:
        """Remaining seconds; `None` without a limit."""
        elapsed = self.time_elapsed(stage)
        return None if self.duration is None else self.duration - elapsed

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock."""
        self._start = time.monotonic()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop if the time is up."""
        if self.duration is not None and self.time_elapsed() >= self.duration:
            trainer.should_stop = True

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Stop the clock."""
        self._before, self._start = self.time_elapsed(), None

    def state_dict(self) -> dict[str, Any]:
        """Seconds so far."""
        return {"time_elapsed": self.time_elapsed()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the time."""
        self._before = float(state_dict["time_elapsed"])


def _seconds(given: Any) -> float:
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, Mapping):
        return timedelta(**given).total_seconds()
    if isinstance(given, str) and (found := re.fullmatch(r"(\d+):(\d+):(\d+):(\d+)", given)):
        days, hours, minutes, seconds = map(int, found.groups())
        return timedelta(days, seconds, 0, 0, minutes, hours).total_seconds()
    if isinstance(given, int | float):
        return float(given)
    raise ArgumentError.here(
        f"Timer: expected 'DD:HH:MM:SS', a timedelta, its arguments or seconds, got {given!r}"
    )
