"""Where a run is: updates, epochs, batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Progress:
    """Counts that are saved with a run.

    Attributes:
        global_step: updates that were made.
        epoch: the number of the epoch, from 0.
        batch: batches of this epoch that are done.
        total_batches: batches of all epochs that are done.
        windows: updates of automatic optimization, those left out included.
    """

    global_step: int = 0
    epoch: int = 0
    batch: int = 0
    total_batches: int = 0
    windows: int = 0

    def count(self, updates: int) -> None:
        """Count updates; -1 where one is taken back."""
        self.global_step += updates

    def next_epoch(self) -> None:
        """Begin another epoch."""
        self.epoch += 1
        self.batch = 0

    def state_dict(self, is_over: bool) -> dict[str, Any]:
        """The counts; `is_over` tells that nothing of the epoch is left to do."""
        found = asdict(self)
        if is_over:
            found.update(epoch=self.epoch + 1, batch=0)
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the counts."""
        for name in asdict(self):
            setattr(self, name, int(state[name]))
