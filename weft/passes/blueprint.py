"""A blueprint: everything about a program except addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.node import TensorType
from weft.ops.base import is_hosted
from weft.passes import memory
from weft.passes.control.record import Steer
from weft.passes.group import Fused, Group
from weft.passes.launch import Launch, Scratch
from weft.passes.step import Step


@dataclass(frozen=True, slots=True)
class InArena:
    """`size` bytes at `offset` of the arena."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class External:
    """Memory outside the arena: a feed, a variable, a constant or a result; `size` bytes."""

    index: int
    size: int


Place = InArena | External
Argument = Place | Scratch | int
"""A place, the error cell (`ERROR`), or an integer."""


@dataclass(frozen=True)
class Feed:
    """Memory that the caller provides at each run."""

    index: int


@dataclass(frozen=True)
class Variable:
    """Memory of a state, bound once per state."""

    key: str
    type: TensorType


@dataclass(frozen=True, eq=False)
class Constant:
    """Memory that belongs to the program."""

    array: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Kept:
    """Memory of the program, `size` bytes, that its prelude writes and its steps read."""

    size: int


@dataclass(frozen=True, eq=False)
class Stack:
    """Memory of the program that grows in a run: rows that a loop stacks.

    Attributes:
        tape: stacks of the same number have as many rows as each other.
        row: bytes of a row.
        loop: which loop makes it, for messages.
    """

    tape: int
    row: int
    loop: str


Source = Feed | Variable | Constant | Kept | Stack


@dataclass(frozen=True)
class Placed:
    """One launch with its arguments placed; a guarded one is left out once an error is set."""

    launch: Launch
    args: tuple[Argument, ...]
    guard: bool
    group: Group | None  # for messages and profiles; `None` for copies
    steer: Steer | None = None  # of a record, at which the program may go on elsewhere


@dataclass(frozen=True)
class Blueprint:
    """Everything about a program except addresses.

    The calls of the prelude have to run before the first step, and again once one of the feeds
    has changed that `step.lasting` names.
    """

    calls: tuple[Placed, ...]
    externals: tuple[Source, ...]
    arena: memory.Plan
    fetches: tuple[tuple[Place, TensorType], ...]
    names: dict[int, str]  # of the arena's buffers
    kept: tuple[str, ...]  # variables whose value before the step is used
    changed: tuple[str, ...]  # variables that the step changes
    step: Step
    fused: Fused
    prelude: tuple[Placed, ...]

    @property
    def kept_bytes(self) -> int:
        """Memory for what the prelude computes."""
        return sum(x.size for x in self.externals if isinstance(x, Kept))


def is_host(placed: Placed) -> bool:
    """Whether it is a call into Python."""
    return placed.group is not None and is_hosted(placed.group.nodes[0])
