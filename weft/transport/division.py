"""Which tensors are shards, and which groups have the other shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from weft.transport.group import Group

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Division:
    """What a tensor is a shard of.

    Attributes:
        shape: the shape of the whole tensor.
        start: the shard's offset in each dimension.
        groups: successive sums over these groups are sums over all shards.
    """

    shape: Sizes
    start: Sizes
    groups: tuple[Group, ...]

    def place(self, sizes: Iterable[int]) -> tuple[slice, ...]:
        """The slices of the whole tensor that a shard of these sizes covers."""
        return tuple([slice(a, a + n) for a, n in zip(self.start, sizes, strict=True)])


_NAME: Final = "division"


def division_of(tensor: Any) -> Division | None:
    """What a tensor is a shard of; `None` if it is whole."""
    return getattr(tensor, _NAME, None)


def divide(tensor: Any, division: Division) -> None:
    """Mark a tensor as a shard."""
    setattr(tensor, _NAME, division)


def groups_of(tensor: Any) -> tuple[int, ...]:
    """The numbers of the groups that have a tensor's other shards."""
    division = division_of(tensor)
    return () if division is None else tuple([group.number for group in division.groups])
