"""Control-flow records between launches, and the arguments that they advance.

A loop is written out as

    BEGIN
        condition, if it has one
    TEST        leaves the loop, after LATCH
        body
    LATCH       jumps back to after BEGIN
        what is done once, in the state of the last iteration
    END

and a branch as

    CHOOSE      continues, or jumps to after one of the JUMPs
        first branch
    JUMP        jumps to after the last JUMP
        second branch
    JUMP

Stacks of a `while_loop` lie on a *tape*, memory that grows while the loop runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from weft.ir.node import Node, Value


class Kind(IntEnum):
    """The kinds of records; the numbers are the driver's."""

    BEGIN = 0
    TEST = 1
    HOLDS = 2  # a TEST with a condition, the first argument
    LATCH = 3
    END = 4
    CHOOSE = 5  # the branch index is the first argument
    JUMP = 6


@dataclass(frozen=True, eq=False)
class Tape:
    """What the stacks of one loop share: their height.

    Attributes:
        loop: the loop that writes them, for messages.
    """

    loop: Node


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop.

    Attributes:
        most: maximum number of iterations; `None` if only its condition decides.
        counted: a stack that it maps over: it has an iteration for each row.
        tape: the tape of the stacks that it writes.
    """

    most: int | None
    counted: Value | None = None
    tape: Tape | None = None


@dataclass(frozen=True, eq=False)
class Control:
    """A record: its kind, its loop, and the records that it may jump to."""

    kind: Kind
    loop: Loop | None = None
    behind: tuple[Control, ...] = ()


@dataclass(frozen=True)
class Cursor:
    """An argument of a call that advances with a loop.

    Attributes:
        start: bytes to add when the loop begins.
        stride: bytes to add in each iteration.
        height: bytes to add when the loop begins, for each row of the tape's stacks.
        tape: number of the tape whose address to add; -1 for none.
        swap: two arena offsets between which it alternates; equal numbers otherwise.
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
    """A placed record: everything as call numbers.

    Attributes:
        loop: number of its loop; -1 for none.
        most: maximum iterations of the loop; -1 for no maximum.
        counted: number of the tape whose height is the number of iterations; -1 for none.
        tape: number of the tape of the stacks that the loop writes; -1 for none.
        targets: calls to which it may jump.
        cursors: arguments that advance with the loop; set at its beginning.
    """

    kind: Kind
    loop: int = -1
    most: int = -1
    counted: int = -1
    tape: int = -1
    targets: tuple[int, ...] = ()
    cursors: tuple[Cursor, ...] = ()
