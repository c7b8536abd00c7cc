"""Schedule: the order in which groups run.

Data dependencies come first. Two further constraints are added wherever they make no cycle: readers
of a variable's old value run before the group that overwrites it, so that the update can be in
place; and groups that check indices run before every update, so that a bad index changes no
variable.

Collectives and calls of Python keep the order of the program, in loops and branches too: another
order on one rank, whose arrays have other sizes, would mix up what ranks exchange.

Among the groups that are ready, one that frees at least as much memory as it allocates goes first:
a weight's gradient with its update, right after the cotangent that it reads. One that only waits
for other ranks goes last. Otherwise the given order is kept.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from weft.ir.node import Value
from weft.ops.declaration import op_of
from weft.ops.effect import is_ordered
from weft.passes.group import Fused, Group, nbytes

LITTLE: Final = 1 << 16
"""Bytes that a group may allocate without being delayed."""
FEW: Final = 64
"""Bytes of a scalar or so, negligible beside an array."""


@dataclass(frozen=True)
class Schedule:
    """Groups in execution order, and the updated values that may overwrite their variable."""

    groups: tuple[Group, ...]
    in_place: frozenset[Value]  # new values whose writer runs after all readers of the old value


def schedule(
    fused: Fused,
    updates: Sequence[tuple[Value | None, Value]],
    checks: AbstractSet[Group] = frozenset(),
) -> Schedule:
    """Orders the groups.

    Args:
        fused: the groups.
        updates: per changed variable, its old value (`None` if nothing reads it) and the root of
            its new value.
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
    return Schedule(tuple(order.sorted(in_place)), frozenset(in_place))


class _Order:
    """A growing set of dependencies between groups that never has a cycle."""

    def __init__(self, fused: Fused) -> None:
        self.fused = fused
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
        ordered = [g for g in fused.groups if is_ordered(g.nodes[0])]
        for earlier, later in itertools.pairwise(ordered):
            self.wish(later, [earlier])

    def wish(self, writer: Group, earlier: Iterable[Group]) -> bool:
        """Makes `writer` wait for `earlier`; returns whether that was possible for all of them."""
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

    def sorted(self, in_place: AbstractSet[Value] = frozenset()) -> list[Group]:
        """A topological order that prefers groups that free memory, then the given order."""
        count = len(self.groups)
        position = {g: i + count * _is_late(g) for i, g in enumerate(self.groups)}
        waiting = dict.fromkeys(self.groups, 0)
        for group in self.groups:
            for following in self.after[group]:
                waiting[following] += 1
        ledger = _Ledger(self, in_place)
        ready = sorted([position[g] for g in self.groups if waiting[g] == 0])
        frugal = [i for i in ready if i < count and ledger.is_frugal(self.groups[i])]
        order: dict[Group, None] = {}
        while ready:
            group = self.groups[heapq.heappop(frugal or ready) % count]
            if group in order:
                continue
            order[group] = None
            able = ledger.run(group)
            for following in self.after[group]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    heapq.heappush(ready, position[following])
                    able.append(following)
            for other in able:
                if waiting[other] or other in order or position[other] >= count:
                    continue
                if ledger.is_frugal(other):
                    heapq.heappush(frugal, position[other])
        return list(order)


class _Ledger:
    """The remaining readers of each value, and so what running a group frees."""

    def __init__(self, order: _Order, in_place: AbstractSet[Value]) -> None:
        self.fused = order.fused
        self.produced = order.producer.keys() - in_place
        self.in_place = in_place
        self.left = {value: dict.fromkeys(groups) for value, groups in order.readers.items()}

    def is_frugal(self, group: Group) -> bool:
        """Whether a group frees as much as it allocates, or allocates next to nothing."""
        sizes = [_bytes(v) for v in group.outputs if v not in self.in_place]
        taken = sum([size for size in sizes if size > FEW])
        return taken <= LITTLE or taken <= sum(map(_bytes, self._last_read(group)))

    def _last_read(self, group: Group) -> list[Value]:
        roots = dict.fromkeys(self.fused.root(v) for v in group.inputs)
        return [v for v in roots if v in self.produced and len(self.left[v]) == 1]

    def run(self, group: Group) -> list[Group]:
        """Marks a group as run; returns groups that are now the only reader of a value."""
        alone: list[Group] = []
        for value in dict.fromkeys(self.fused.root(v) for v in group.inputs):
            left = self.left[value]
            del left[group]
            if len(left) == 1:
                alone.extend(left)
        return alone


def _is_late(group: Group) -> bool:
    return op_of(group.nodes[0]).facts.late


def _bytes(value: Value) -> int:
    return int(nbytes(value))
