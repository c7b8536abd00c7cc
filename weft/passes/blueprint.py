"""A blueprint: everything about a program except addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.node import TensorType
from weft.ops.declaration import is_hosted
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
    """Memory outside the arena: a feed, variable, constant or result of `size` bytes."""

    index: int
    size: int


Place = InArena | External
Argument = Place | Scratch | int
"""A place in memory, the error cell (`ERROR`), or an integer."""


@dataclass(frozen=True)
class Feed:
    """Memory that the caller provides in each run."""

    index: int


@dataclass(frozen=True)
class Variable:
    """Memory of a state, bound once per state."""

    key: str
    type: TensorType


@dataclass(frozen=True, eq=False)
class Constant:
    """Memory owned by the program."""

    array: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Kept:
    """Memory of the program, `size` bytes, written by its prelude and read by its steps."""

    size: int


@dataclass(frozen=True, eq=False)
class Stack:
    """Memory of the program that grows in a run: rows that a loop stacks.

    Attributes:
        tape: stacks with the same number have the same number of rows.
        row: bytes of a row.
        loop: the loop that writes it, for messages.
    """

    tape: int
    row: int
    loop: str


Source = Feed | Variable | Constant | Kept | Stack


@dataclass(frozen=True)
class Placed:
    """A launch with its arguments placed; a guarded one is skipped once an error is set."""

    launch: Launch
    args: tuple[Argument, ...]
    guard: bool
    group: Group | None  # for messages and profiles; `None` for copies
    steer: Steer | None = None  # of a record, at which control may jump


@dataclass(frozen=True)
class Blueprint:
    """Everything about a program except addresses.

    The calls of the prelude must run before the first step, and again whenever a feed named in
    `step.lasting` changes.
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
        """Memory for the results of the prelude."""
        return sum(x.size for x in self.externals if isinstance(x, Kept))


def is_host(placed: Placed) -> bool:
    """Whether the call runs Python code."""
    return placed.group is not None and is_hosted(placed.group.nodes[0])
