"""The threads and the memory with which a device of the CPU kind runs programs."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.runtime.execution.team import TEAM, Team
from weft.runtime.memory.shared import POOL, ArenaPool


class Processor(NamedTuple):
    """Programs of two processors run at the same time; large ones of one take turns.

    Attributes:
        team: the threads that help whoever runs a program.
        pool: the memory of programs.
    """

    team: Team
    pool: ArenaPool


FIRST: Final = Processor(TEAM, POOL)
"""Of the first device, on which everything runs that asks for no other."""
