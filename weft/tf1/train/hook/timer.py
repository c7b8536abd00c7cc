"""`tf.train.SecondOrStepTimer`: triggers periodically."""

from __future__ import annotations

import time

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail


class SecondOrStepTimer:
    """Triggers at first, then every so many seconds or steps.

    Args:
        every_secs: seconds; exactly one of the two is given.
        every_steps: steps.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise fail(
                ArgumentError,
                "SecondOrStepTimer: expected either every_secs or every_steps, "
                f"got every_secs={every_secs} and every_steps={every_steps}",
            )
        self._secs, self._steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Forget the last trigger."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it triggers at this step; never twice at the same one."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._secs is not None:
            return time.time() >= self._last_time + self._secs
        return self._steps is not None and step >= self._last_step + self._steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Record a trigger; returns seconds and steps since the last one, `None` at first."""
        now, before = time.time(), self._last_step
        passed = (None, None) if before is None else (now - self._last_time, step - before)
        self._last_step, self._last_time = step, now
        return passed

    def last_triggered_step(self) -> int | None:
        """The step of the last trigger."""
        return self._last_step


class NeverTimer(SecondOrStepTimer):
    """Never triggers."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False
