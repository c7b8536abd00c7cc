"""Marks shared by all threads: a tensor or mode has changed, inference mode has been used."""

from __future__ import annotations

from typing import Final


class Changes:
    """`mark` is replaced by a new object whenever a tensor is changed.

    `modes` is replaced when a module switches between training and evaluation.
    """

    __slots__ = ("mark", "modes")

    def __init__(self) -> None:
        self.mark = object()
        self.modes = object()


changes: Final = Changes()


class Inferring:
    """Whether any thread ever entered inference mode; if not, checks for it are skipped."""

    __slots__ = ("open", "used")

    def __init__(self) -> None:
        self.open: list[None] = []  # one item for each mode: changes of a list are thread-safe
        self.used = False


inferring: Final = Inferring()
