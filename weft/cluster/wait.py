"""Who waits for whom."""

from __future__ import annotations

from typing import NamedTuple


class Wait(NamedTuple):
    """Something that is under way.

    Attributes:
        what: a step, or a call of a queue.
        tasks: those that it waits for, by name.
        seconds: since it began.
    """

    what: str
    tasks: list[str]
    seconds: float
