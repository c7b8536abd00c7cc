"""Partitioning: `PartitionSpec`, and conversion between whole tensors and shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.errors import ArgumentError, ShapeError
from weft.func.ranks.collective import gathered, own_part
from weft.transport.group import Group

Entry = str | tuple[str, ...] | None


class PartitionSpec:
    """The mesh axes along which each dimension of a tensor is sharded.

    Args:
        partitions: for each dimension an axis, several axes (the last varies fastest), or `None` if
            not sharded. Further dimensions are not sharded.

    Example:
        >>> from weft.func import PartitionSpec as P
        >>> P("x", None, ("y", "z"))
        PartitionSpec('x', None, ('y', 'z'))
    """

    def __init__(self, *partitions: Entry | Iterable[str]) -> None:
        found: list[tuple[str, ...]] = []
        for each in partitions:
            if not (each is None or isinstance(each, str | tuple | list)):
                raise ArgumentError.here(
                    "PartitionSpec: expected an axis, a tuple of axes or None for each dimension, "
                    f"got {each!r}"
                )
            found.append((each,) if isinstance(each, str) else tuple(each or ()))
        names = [n for each in found for n in each]
        if not all(isinstance(n, str) for n in names):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(f"PartitionSpec: expected names of axes, got {partitions}")
        if len(set(names)) != len(names):
            raise ArgumentError.here(f"PartitionSpec: expected each axis once, got {partitions}")
        self.axes = tuple(found)
        self.names = tuple(names)

    def __repr__(self) -> str:
        shown = [repr(e[0]) if len(e) == 1 else repr(e or None) for e in self.axes]
        return f"PartitionSpec({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def __len__(self) -> int:
        return len(self.axes)


def own_block(x: Any, spec: PartitionSpec, groups: Mapping[str, Group], what: str) -> Any:
    """This rank's shard of a replicated tensor.

    Raises:
        ShapeError: a dimension is not divisible, or the spec has too many entries.
    """
    _check(x, spec, groups, what)
    for axis, names in enumerate(spec.axes):
        for name in names:
            rows, count = int(x.shape[axis]), groups[name].size
            if rows % count:
                raise ShapeError.here(
                    f"{what}: expected a dimension that the {count} ranks along {name!r} divide, "
                    f"got {rows} in {tuple(x.shape)} for {spec}"
                )
            x = own_part(x, groups[name], axis, True, what, "own_part")
    return x


def whole_of(y: Any, spec: PartitionSpec, groups: Mapping[str, Group], what: str) -> Any:
    """The whole tensor, on all ranks, from each rank's shard."""
    _check(y, spec, groups, what)
    for axis, names in enumerate(spec.axes):
        for name in reversed(names):
            y = gathered(y, groups[name], axis, True, "join_parts")
    return y


def _check(x: Any, spec: PartitionSpec, groups: Mapping[str, Group], what: str) -> None:
    unknown = [n for n in spec.names if n not in groups]
    if unknown:
        raise ArgumentError.here(
            f"{what}: expected axes of the mesh ({', '.join(groups)}), got {unknown[0]!r} in {spec}"
        )
    if len(spec) > x.ndim:
        raise ShapeError.here(
            f"{what}: expected at most {x.ndim} entries for a tensor of shape {tuple(x.shape)}, "
            f"got {spec}"
        )
