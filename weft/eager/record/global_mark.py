"""Marks that all threads share: a tensor or mode has changed, inference mode has been used."""

from __future__ import annotations

from typing import Final


class Changes:
    """`mark` is replaced by a new object whenever a tensor is changed.

    So is `modes` where a module went from training to evaluation, or back.
    """

    __slots__ = ("mark", "modes")

    def __init__(self) -> None:
        self.mark = object()
        self.modes = object()


changes: Final = Changes()


class Inferring:
    """Whether any thread is, or ever was, in inference mode: else nobody has to ask."""

    __slots__ = ("open", "used")

    def __init__(self) -> None:
        self.open: list[None] = []  # one for each mode: a list's changes are safe among threads
        self.used = False


inferring: Final = Inferring()
