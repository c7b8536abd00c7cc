"""Placements: a rank's local tensor is a replica, a shard or a partial sum of the whole one."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


@dataclass(frozen=True)
class Placement:
    """The placement of a tensor along a dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a shard.

        Args:
            dim: along this dimension; by default any.
        """
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has a replica."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether each rank has a partial sum."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a shard.

    If the size is not divisible by the number of ranks, the last shards are smaller or empty.

    Args:
        dim: the sharded dimension; -1 for the last.

    >>> Shard(1)
    Shard(dim=1)
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has a replica, the whole tensor."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a partial sum: the tensor is the sum over ranks."""
