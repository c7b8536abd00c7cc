"""Counts what a function finds out besides the types of its arguments.

That is a value, a layout in memory, a setting, or whom to warn. A function that was watched and did
not look does the same for all arguments of these types: see `weft.eager.functions.recall`.
"""

from __future__ import annotations

from typing import Final


class Looks:
    """How often that was, in any thread."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


looks: Final = Looks()
