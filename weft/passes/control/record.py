"""Records between launches, at which a program goes on elsewhere, and what they move.

A loop is written out as

    BEGIN
        condition, if it has one
    TEST        leaves the loop behind TURN
        body
    TURN        goes on behind BEGIN
        what is done once, in the state of the last turn
    END

and a choice as

    CHOOSE      goes on behind itself, or behind one of the JUMPs
        first branch
    JUMP        goes on behind the last JUMP
        second branch
    JUMP
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """What a record does; the numbers are the driver's."""

    BEGIN = 0
    TEST = 1
    HOLDS = 2  # a TEST with a condition, the first argument
    TURN = 3
    END = 4
    CHOOSE = 5  # the index is the first argument
    JUMP = 6


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of at most so many turns; `None`: as many as its condition wants."""

    most: int | None


@dataclass(frozen=True, eq=False)
class Control:
    """A record: what it does, for which loop, and behind which records it may go on."""

    kind: Kind
    loop: Loop | None = None
    behind: tuple[Control, ...] = ()


@dataclass(frozen=True)
class Cursor:
    """An argument of a call that moves with a loop.

    Attributes:
        start: bytes to add when the loop begins.
        stride: bytes to add at each turn.
        swap: two places in the arena, between which it changes at each turn; else equal numbers.
    """

    call: int
    slot: int
    start: int
    stride: int
    swap: tuple[int, int]


@dataclass(frozen=True)
class Steer:
    """A record in its place: all in numbers of calls.

    Attributes:
        loop: its number; -1 if it is of none.
        most: turns of the loop, -1 for as many as it takes.
        targets: calls at which it may go on, other than the next.
        cursors: what moves with the loop; told at its beginning.
    """

    kind: Kind
    loop: int = -1
    most: int = -1
    targets: tuple[int, ...] = ()
    cursors: tuple[Cursor, ...] = ()
