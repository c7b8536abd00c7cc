"""Groups of consecutive ranks, over which gathered parameters are resharded."""

from __future__ import annotations

import weakref
from typing import Final

from weft.errors import ArgumentError
from weft.transport import session
from weft.transport.group import Group

_made: Final[weakref.WeakKeyDictionary[Group, dict[int, Group]]] = weakref.WeakKeyDictionary()


def neighbors(group: Group, count: int) -> Group:
    """This rank's group of `count` consecutive ranks; all ranks call it.

    Raises:
        ArgumentError: `count` does not divide the size of the group.
    """
    if count < 1 or group.size % count:
        raise ArgumentError.here(
            f"fully_shard: expected reshard_after_forward to be a bool or a number that divides "
            f"{group.size}, the number of ranks, got {count}"
        )
    made = _made.setdefault(group, {})
    if count not in made:
        joined = session.current()
        assert joined is not None
        starts = range(0, group.size, count)
        groups = [joined.new_group(group.ranks[at : at + count]) for at in starts]
        made[count] = groups[group.index // count]
    return made[count]
