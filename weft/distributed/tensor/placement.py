"""What a rank's tensor is of a whole one: all of it, a part, or a summand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


@dataclass(frozen=True)
class Placement:
    """How a tensor lies on the ranks along a dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a part, along this dimension if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether it is the sum of what ranks have."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along a dimension; `Shard(-1)` along the last.

    Of a size that the ranks do not divide, the last have less, or nothing.

    >>> Shard(1)
    Shard(dim=1)
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """It is the sum of what ranks have."""
