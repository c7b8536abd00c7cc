"""The progress of a run: updates, epochs, batches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from weft.errors import ArgumentError


def seconds_of(given: Any) -> float:
    """A duration in seconds: `"DD:HH:MM:SS"`, a `timedelta`, its arguments, or seconds.

    Raises:
        ArgumentError: it is none of these.
    """
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


@dataclass
class Progress:
    """Counts that are saved with a run.

    Attributes:
        global_step: the number of updates.
        epoch: the index of the epoch.
        batch: finished batches of this epoch.
        total_batches: finished batches of all epochs.
        windows: updates of automatic optimization, including skipped ones.
        updated: finished batches of all epochs when the weights last changed.
    """

    global_step: int = 0
    epoch: int = 0
    batch: int = 0
    total_batches: int = 0
    windows: int = 0
    updated: int = 0

    def count(self, updates: int) -> None:
        """Count updates; -1 if one is undone."""
        self.global_step += updates

    def next_epoch(self) -> None:
        """Start the next epoch."""
        self.epoch += 1
        self.batch = 0

    def state_dict(self, is_over: bool) -> dict[str, Any]:
        """The counts; `is_over` says that the epoch is complete."""
        found = asdict(self)
        if is_over:
            found.update(epoch=self.epoch + 1, batch=0)
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counts."""
        known = {"updated": state["total_batches"], **state}  # earlier versions lack it
        for name in asdict(self):
            setattr(self, name, int(known[name]))
