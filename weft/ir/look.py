"""Counts what a function finds out besides the types of its arguments.

That is a value, a layout in memory, a setting, or whom to warn. A function that was watched and did
not look does the same for all arguments of these types: see `weft.eager.functions.recall`.
"""

from __future__ import annotations

from typing import Final


class Looks:
    """How often that was, in any thread.

    Attributes:
        layouts: how often it was no more than how its arguments lie in memory, as views of others.
    """

    __slots__ = ("count", "layouts")

    def __init__(self) -> None:
        self.count = self.layouts = 0


looks: Final = Looks()
