"""Groups of neighboring ranks, which gather from each other what they have gathered before."""

from __future__ import annotations

import weakref
from typing import Final

from weft.errors import ArgumentError
from weft.ir.node import at_user_line
from weft.transport import session
from weft.transport.group import Group

_made: Final[weakref.WeakKeyDictionary[Group, dict[int, Group]]] = weakref.WeakKeyDictionary()


def neighbors(group: Group, count: int) -> Group:
    """The `count` ranks of a group, one behind another, that this one is among; all ranks call it.

    Raises:
        ArgumentError: a number that does not divide that of the group's ranks.
    """
    if count < 1 or group.size % count:
        raise ArgumentError(
            f"fully_shard: expected reshard_after_forward to be a bool or a number that divides "
            f"{group.size}, the number of ranks, got {count}{at_user_line()}"
        )
    made = _made.setdefault(group, {})
    if count not in made:
        joined = session.current()
        assert joined is not None
        starts = range(0, group.size, count)
        found = [joined.new_group(group.ranks[at : at + count]) for at in starts]
        made[count] = found[group.index // count]
    return made[count]
