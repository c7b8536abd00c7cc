"""Records between launches, at which a program goes on elsewhere, and what they move.

A loop is written out as

    BEGIN
        condition, if it has one
    TEST        leaves the loop behind LATCH
        body
    LATCH       goes on behind BEGIN
        what is done once, in the state of the last iteration
    END

and a choice as

    CHOOSE      goes on behind itself, or behind one of the JUMPs
        first branch
    JUMP        goes on behind the last JUMP
        second branch
    JUMP

Stacks of a `while_loop` lie on a *tape*, memory of their own that grows while the loop runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from weft.ir.node import Node, Value


class Kind(IntEnum):
    """What a record does; the numbers are the driver's."""

    BEGIN = 0
    TEST = 1
    HOLDS = 2  # a TEST with a condition, the first argument
    LATCH = 3
    END = 4
    CHOOSE = 5  # the index is the first argument
    JUMP = 6


@dataclass(frozen=True, eq=False)
class Tape:
    """What the stacks of one loop have in common: their height.

    Attributes:
        loop: the loop that makes them, for messages.
    """

    loop: Node


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop.

    Attributes:
        most: how many iterations at most; `None` for as many as its condition wants.
        counted: a stack that it goes through: it has as many iterations as that has rows.
        tape: that of the stacks which it makes.
    """

    most: int | None
    counted: Value | None = None
    tape: Tape | None = None


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
        stride: bytes to add in each iteration.
        height: bytes to add when the loop begins for each row of a stack's,
        tape: which has the tape of that number; -1 for none.
        swap: two places in the arena, between which it alternates; else equal numbers.
    """

    call: int
    slot: int
    start: int
    stride: int
    height: int
    tape: int
    swap: tuple[int, int]


@dataclass(frozen=True)
class Steer:
    """A record in its place: all in numbers of calls.

    Attributes:
        loop: its number; -1 if it is of none.
        most: iterations of the loop, -1 for as many as it takes.
        counted: the number of the tape that tells how many iterations there are, -1 for none.
        tape: the number of the tape of the stacks that the loop makes, -1 for none.
        targets: calls at which it may go on, other than the next.
        cursors: what moves with the loop; told at its beginning.
    """

    kind: Kind
    loop: int = -1
    most: int = -1
    counted: int = -1
    tape: int = -1
    targets: tuple[int, ...] = ()
    cursors: tuple[Cursor, ...] = ()
