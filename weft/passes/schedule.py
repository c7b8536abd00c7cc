"""Schedule: the order in which groups run.

Data comes first. Two further wishes are kept wherever they make no cycle: whoever reads a
variable's old value runs before the group that overwrites it, so that the update can be in place;
and whoever checks indices runs before every update, so that a bad index changes no variable.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from weft.ir.node import Value
from weft.passes.fuse import Fused
from weft.passes.group import Group


@dataclass(frozen=True)
class Schedule:
    """Groups in running order, and the updated values that may overwrite their variable."""

    groups: tuple[Group, ...]
    in_place: frozenset[Value]  # new values whose writer runs after all readers of the old value


def schedule(
    fused: Fused,
    updates: Sequence[tuple[Value | None, Value]],
    checks: AbstractSet[Group] = frozenset(),
) -> Schedule:
    """Order the groups.

    Args:
        fused: the groups.
        updates: per changed variable, its value before the step (`None` if nothing reads it)
            and the root of its value after the step.
        checks: groups that may report a bad index.
    """
    order = _Order(fused)
    in_place: set[Value] = set()
    for old, new in updates:
        writer = order.producer.get(new)
        if writer is None:
            continue
        readers = () if old is None else order.readers.get(old, ())
        wished = dict.fromkeys((*readers, *checks))
        wished.pop(writer, None)
        if order.wish(writer, wished):
            in_place.add(new)
    return Schedule(tuple(order.sorted()), frozenset(in_place))


class _Order:
    """A growing set of edges between groups that never forms a cycle."""

    def __init__(self, fused: Fused) -> None:
        self.groups = fused.groups
        self.producer = {value: group for group in fused.groups for value in group.outputs}
        self.readers: dict[Value, list[Group]] = {}
        self.after: dict[Group, dict[Group, None]] = {group: {} for group in fused.groups}
        for group in fused.groups:
            for value in dict.fromkeys(fused.root(v) for v in group.inputs):
                self.readers.setdefault(value, []).append(group)
                source = self.producer.get(value)
                if source is not None:
                    self.after[source][group] = None

    def wish(self, writer: Group, earlier: Iterable[Group]) -> bool:
        """Make `writer` wait for `earlier`; whether all of them could be honoured."""
        behind = self._behind(writer)
        kept = True
        for group in earlier:
            if group in behind:
                kept = False
            else:
                self.after[group][writer] = None
        return kept

    def _behind(self, group: Group) -> set[Group]:
        """Everything that must run after `group`."""
        found: set[Group] = set()
        stack = [group]
        while stack:
            for following in self.after[stack.pop()]:
                if following not in found:
                    found.add(following)
                    stack.append(following)
        return found

    def sorted(self) -> list[Group]:
        """A topological order that departs from the given one only where an edge demands it."""
        position = {group: i for i, group in enumerate(self.groups)}
        waiting = dict.fromkeys(self.groups, 0)
        for group in self.groups:
            for following in self.after[group]:
                waiting[following] += 1
        ready = [position[g] for g in self.groups if waiting[g] == 0]
        order: list[Group] = []
        while ready:
            group = self.groups[heapq.heappop(ready)]
            order.append(group)
            for following in self.after[group]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    heapq.heappush(ready, position[following])
        return order
