"""Phases: cuts a request with host nodes into programs and the host nodes between them.

Host nodes wait for queues, read files, call Python or handle texts; programs cannot. A run is a
graph of phases: programs, and single host nodes. What no host node comes before is one program, and
so is all that follows the same number of turns between programs and the host, so that most training
steps are a dequeue, one program, and a summary:

    level 0: host nodes that need feeds and constants only
    level 1: programs that need results of level 0 or feeds
    level 2: host nodes that need results of level 1, and so on

The rules:

- A value that another phase reads is fetched by its own and fed to the other. Constants, variables'
  handles and reads of variables are not: each phase has its own.
- A node without effects that needs only variables, constants and feeds is computed where it is
  first used: the old value in `assign_add` is read by the program that assigns.
- A read without a control dependency sees the value from before the run; if another phase may have
  assigned the variable before, a first program reads it. All other reads see what earlier phases
  have assigned.
- No host node that may wait waits for another one that it does not depend on: what comes before it
  is a program of its own where the program of its level would wait for more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.errors import GraphError
from weft.ir.node import Node, Value
from weft.ops.boundary import state
from weft.ops.declaration import inner_nodes, op_of
from weft.ops.effect import is_host, may_wait
from weft.passes.level import Apart, Levels
from weft.passes.step import Request, needed


@dataclass(frozen=True)
class ProgramPhase:
    """A part of a run that is compiled.

    Attributes:
        request: its feeds are those of the run and results of other phases.
        after: numbers of the phases that it waits for.
    """

    request: Request
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class HostPhase:
    """A host node, which runs once the phases `after` have run.

    Attributes:
        waits: whether it may wait for what other runs do.
    """

    node: Node
    after: tuple[int, ...] = ()
    waits: bool = False


Phase = ProgramPhase | HostPhase


def has_host_nodes(request: Request, apart: Apart = is_host) -> bool:
    """Whether a request has host nodes: those that are `apart`.

    Raises:
        GraphError: one is inside a loop or branch.
    """
    nodes = needed(request)
    for node in nodes:
        _refuse_inside(node, node)
    passed = any([v.dtype.is_hosted for v in (*request.feeds, *request.fetches)])
    return passed or any(map(apart, nodes))


def _refuse_inside(node: Node, outer: Node) -> None:
    for inner in inner_nodes(node):
        if is_host(inner):
            raise GraphError(
                f"{outer.op}: expected what a program computes, got {inner.op}, which runs on the"
                f" host between programs and cannot be inside a loop or branch (a queue, a reader,"
                f" Python, texts): move it out of it: {inner.describe()}"
            )
        _refuse_inside(inner, outer)


def phases(request: Request, apart: Apart = is_host) -> tuple[Phase, ...]:
    """The phases of a run, each after all that it waits for.

    Args:
        apart: which nodes are host nodes.

    Raises:
        FeedError: a placeholder of texts is not fed.
    """
    return _Plan(request, Levels(request, apart)).phases()


Unit = tuple[int, int, int]
"""A phase to be: its level, the number of waiting host nodes that need it, and which it is."""
_FIRST: Final[Unit] = (-1, 0, 0)
"""Reads the variables that some phase assigns before another one uses their old values."""


class _Plan:
    """Groups nodes into phases, and connects them."""

    def __init__(self, request: Request, levels: Levels) -> None:
        self.request = request
        self.levels = levels
        self.unit: dict[Node, Unit] = {}
        self.members: dict[Unit, dict[Node, None]] = defaultdict(dict)
        wanted = self._wanted()
        for number, node in enumerate(levels.nodes):
            level = levels.level.get(node)
            if level is not None:
                # larger sets of waiting nodes come first: they need nothing of smaller ones
                key = wanted.get(node, 0)
                unit = (level, number, 0) if level % 2 == 0 else (level, -key.bit_count(), key)
                self.unit[node] = unit
                self.members[unit][node] = None
        self.several = sum(map(may_wait, self.unit)) > 1
        self.assigning: dict[str, set[Unit]] = defaultdict(set)  # by key of the variable
        for node, unit in self.unit.items():
            if op_of(node) is state.assign:
                self.assigning[state.key_of(node)].add(unit)
        self._move_reads()
        self.numbers = {unit: i for i, unit in enumerate(sorted(self.members))}

    def _wanted(self) -> dict[Node, int]:
        """For nodes of programs, the waiting host nodes, as bits, that need their own programs."""
        levels = self.levels
        waiting = [n for n in levels.nodes if n in levels.level and may_wait(n)]
        if len(waiting) < 2:
            return {}
        bits = {node: 1 << i for i, node in enumerate(waiting)}
        needs: dict[Node, int] = {}  # the waiting nodes that each node follows
        for node in levels.nodes:
            found = 0
            for earlier in levels.before(node):
                found |= needs[earlier] | bits.get(earlier, 0)
            needs[node] = found
        split: dict[Node, int] = {}
        for node in waiting:
            waited = sum(bits[n] for n in waiting if levels.level[n] < levels.level[node] - 1)
            if waited & ~needs[node]:
                split[node] = bits[node]
        wanted: dict[Node, int] = {}
        for node in reversed(levels.nodes):
            key = wanted.get(node, 0) | split.get(node, 0)
            if key:
                for earlier in levels.before(node):
                    wanted[earlier] = wanted.get(earlier, 0) | key
        return wanted

    def _move_reads(self) -> None:
        """Puts reads of variables into each phase that uses them, or before all phases."""
        users: dict[Node, set[Unit]] = defaultdict(set)
        outside = {v.node for v in self.request.fetches} | set(self.request.targets)
        for node, unit in self.unit.items():
            for value in node.inputs:
                if unit[0] % 2 == 0:
                    outside.add(value.node)
                elif value not in self.levels.fed:
                    users[value.node].add(unit)
        for node in [n for n in self.unit if op_of(n) is state.read and n in self.levels.late]:
            home: Unit | None = self.unit[node]
            own = {unit for unit in users[node] if self._may_read(node, unit)}
            self._leave(node, home)
            crosses = own != users[node] or node in outside
            if crosses and not self._may_read(node, home):
                home = self._before_assignments(node)
            elif not crosses and own and home not in own:
                del self.unit[node]
                home = None
            if home is not None:
                self.unit[node] = home
                own.add(home)
            for unit in own:
                self.members[unit][node] = None

    def _before_assignments(self, node: Node) -> Unit:
        """The phase that reads the value from before the run."""
        first = min(self.assigning[state.key_of(node)])
        return _FIRST if self.several else first

    def _may_read(self, node: Node, unit: Unit) -> bool:
        """Whether a phase may itself read a variable: no other one can have assigned it before."""
        if node.attrs["latest"]:
            return True
        assigning = self.assigning[state.key_of(node)]
        if self.several:  # phases run as what they wait for comes
            return assigning <= {unit}
        return all(other >= unit for other in assigning)

    def _leave(self, node: Node, unit: Unit) -> None:
        del self.members[unit][node]
        if not self.members[unit]:
            del self.members[unit]

    def phases(self) -> tuple[Phase, ...]:
        """All phases, connected."""
        handles = [v for v in self.request.fetches if self._is_handle(v)]
        crossing = self._crossing()
        found: list[Phase] = []
        for unit in self.numbers:
            nodes = list(self.members[unit])
            after = self._after(nodes, unit)
            if unit[0] % 2 == 0:
                found.append(HostPhase(nodes[0], after, may_wait(nodes[0])))
                continue
            found.append(ProgramPhase(self._request(unit, nodes, crossing, handles), after))
            handles = []
        if handles:
            found.append(ProgramPhase(replace(self.request, fetches=tuple(handles), targets=())))
        return tuple(found)

    def _is_handle(self, value: Value) -> bool:
        return op_of(value.node) is state.variable and value not in self.levels.fed

    def _crossing(self) -> frozenset[Value]:
        """The values that leave their phase."""
        found = set(self.request.fetches)
        for nodes in self.members.values():
            for node in nodes:
                found.update([v for v in node.inputs if v.node not in nodes])
        return frozenset(found - self.levels.fed)

    def _after(self, nodes: Iterable[Node], unit: Unit) -> tuple[int, ...]:
        found: set[Unit] = set()
        for node in nodes:
            found |= self._units(self.levels.before(node))
        if unit[0] % 2 and _FIRST in self.members:
            found.add(_FIRST)
        found.discard(unit)
        return tuple(sorted([self.numbers[u] for u in found]))

    def _units(self, nodes: Sequence[Node]) -> set[Unit]:
        """The phases of nodes; of groups, those of what they group."""
        found: set[Unit] = set()
        waiting, seen = list(nodes), set(nodes)
        while waiting:
            node = waiting.pop()
            if node in self.unit:
                found.add(self.unit[node])
            elif op_of(node) is state.group:
                new = [n for n in self.levels.before(node) if n not in seen]
                seen.update(new)
                waiting += new
        return found

    def _request(
        self, unit: Unit, nodes: Sequence[Node], crossing: frozenset[Value], handles: list[Value]
    ) -> Request:
        """The request of a program phase."""
        own, levels = self.members[unit], self.levels
        inputs = dict.fromkeys([v for node in nodes for v in node.inputs])
        feeds = [v for v in inputs if v in levels.fed or self._is_fed(v, own)]
        fetches = [v for n in nodes if self.unit.get(n) == unit for v in n.outputs if v in crossing]
        followed = {n for node in nodes for n in levels.edges_to(node)}
        targets = [n for n in nodes if n not in followed and self.unit.get(n) == unit]
        given = {v.node for v in fetches}
        fed = [n for n in levels.free if op_of(n) is state.placeholder]
        done = frozenset([*fed, *[n for n in self.unit if n not in own]])
        return replace(
            self.request,
            fetches=(*fetches, *handles),
            targets=tuple([n for n in targets if n not in given]),
            feeds=tuple(feeds),
            done=self.request.done | done,
        )

    def _is_fed(self, value: Value, own: dict[Node, None]) -> bool:
        """Whether a value comes from another phase."""
        return value.node not in own and value.node not in self.levels.free
