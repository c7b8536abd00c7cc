"""The level of each node of a run in phases: odd for programs, even for host nodes.

The rules are those of `weft.passes.phase`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from weft.errors import FeedError
from weft.ir.node import Node
from weft.ops.boundary import state
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.effect import has_effect, is_host
from weft.passes.step import Request, needed, predecessors

Apart = Callable[[Node], bool]
"""Whether a node is a host node; programs that run elsewhere cannot call Python functions here."""


def calls_python(node: Node) -> bool:
    """Whether a node is a host node, or calls a Python function in the middle of a program."""
    return is_host(node) or op_of(node) is state.host_call


_NEVER: Final = -1


class Levels:
    """The level of each node of a request: odd for programs, even for host nodes."""

    def __init__(self, request: Request, apart: Apart) -> None:
        self.request = request
        self.apart = apart
        self.nodes = needed(request)
        self.fed = frozenset(request.feeds)
        self.edges_to = predecessors(request)
        self._earlier: dict[Node, list[Node]] = {}  # assignments that a read of the latest follows
        self._assigns: dict[str, list[Node]] = defaultdict(list)  # so far
        self.level: dict[Node, int] = {}  # of all nodes but `free` ones and groups
        self.free: set[Node] = set()  # constants and handles, which any phase may have
        self.late: set[Node] = set()  # nodes that need no effect and no host node
        self._reach: dict[Node, tuple[int, int]] = {}  # last levels of programs and of the host
        for node in self.nodes:
            self._place(node)
        self._delay()

    def before(self, node: Node) -> list[Node]:
        """What must run before a node: where its edges come from, and what it must not overtake."""
        earlier = self._earlier.get(node)
        return [*self.edges_to(node), *earlier] if earlier else self.edges_to(node)

    def _place(self, node: Node) -> None:
        if op_of(node) is state.read and node.attrs["latest"]:
            self._earlier[node] = [*self._assigns[state.key_of(node)]]
        elif op_of(node) is state.assign:
            self._assigns[state.key_of(node)].append(node)
        found = [self._reach[n] for n in self.before(node)]
        program = max([p for p, _ in found], default=_NEVER)
        host = max([h for _, h in found], default=_NEVER)
        if op_of(node) is state.group:
            self._reach[node] = program, host
            return
        if not found and self._is_free(node):
            self.free.add(node)
            self._reach[node] = _NEVER, _NEVER
        elif self.apart(node):
            self._refuse_unfed(node)
            self.level[node] = max(0, host, program + 1)
            self._reach[node] = _NEVER, self.level[node]
        else:
            self.level[node] = max(1, program, host + 1)
            self._reach[node] = self.level[node], _NEVER
            if self._may_be_late(node):
                self.late.add(node)

    def _is_free(self, node: Node) -> bool:
        if op_of(node) is state.placeholder:
            return node.outputs[0] in self.fed
        return op_of(node) is CONSTANT or op_of(node) is state.variable

    def _refuse_unfed(self, node: Node) -> None:
        if op_of(node) is state.placeholder:
            raise FeedError(f"placeholder {node.name!r} must be fed: {node.describe()}")

    def _may_be_late(self, node: Node) -> bool:
        ordered = node.control or self.request.graph.edges.get(node) or self._earlier.get(node)
        if ordered or has_effect(node):
            return False
        if op_of(node).stateful and op_of(node) is not state.read:
            return False
        free, late = self.free, self.late
        return all([v in self.fed or v.node in free or v.node in late for v in node.inputs])

    def _delay(self) -> None:
        """Moves nodes of `late` to the first phase that uses them."""
        uses: dict[Node, int] = {}
        for node in reversed(self.nodes):
            if node in self.late:
                self.level[node] = uses.get(node, 1)
            # what a group waits for is needed when the group is
            level = self.level.get(node, uses.get(node) if op_of(node) is state.group else None)
            if level is not None:
                level = level if level % 2 else level - 1
                for earlier in self.before(node):
                    uses[earlier] = min(uses.get(earlier, level), level)
