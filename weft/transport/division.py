"""Which tensors are a rank's part of something whole, and who has the other parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from weft.transport.group import Group

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Division:
    """What a tensor is a part of.

    Attributes:
        shape: of the whole.
        start: where the part begins in it, in each dimension.
        groups: sums over these groups, one after another, are sums over all parts.
    """

    shape: Sizes
    start: Sizes
    groups: tuple[Group, ...]

    def place(self, sizes: Iterable[int]) -> tuple[slice, ...]:
        """Where a part of these sizes lies, as an index of the whole."""
        return tuple([slice(a, a + n) for a, n in zip(self.start, sizes, strict=True)])


_NAME: Final = "division"


def division_of(tensor: Any) -> Division | None:
    """What a tensor is a part of; `None` where it is whole."""
    return getattr(tensor, _NAME, None)


def divide(tensor: Any, division: Division) -> None:
    """Note that a tensor is a part."""
    setattr(tensor, _NAME, division)


def groups_of(tensor: Any) -> tuple[int, ...]:
    """The numbers of the groups that have the other parts of a tensor."""
    division = division_of(tensor)
    return () if division is None else tuple([group.number for group in division.groups])
