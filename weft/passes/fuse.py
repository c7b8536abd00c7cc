"""Fuse: gathers nodes into groups that become one kernel each.

One walk in order. A group stays *open* until a node outside it reads one of its values; until then
nothing outside depends on it, so later nodes may join and groups may merge without making a cycle.
Shape operations and small constants *float*: each group that reads them recomputes them, and they
are stored only if something needs them in memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from weft.ir.node import Node, Value
from weft.ir.shape import Shape, is_stack, known, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import (
    Alias,
    Boundary,
    Elementwise,
    Opaque,
    Pull,
    Reduce,
    family_of,
    op_of,
)
from weft.ops.declaration.fact import Ability, Cost
from weft.passes.group import MOST_INPUTS, MOST_NODES, Fused, Group
from weft.passes.step import Step

# Shape operations on shape operations are recomputed at most this deep ...
MOST_FLOATING = 4
# ... and from at most so many arrays: for each element, a concatenation tests all its parts.
MOST_SOURCES = 64


@dataclass(eq=False)
class _Open:
    """A group under construction."""

    domain: Shape
    nodes: dict[Node, int] = field(default_factory=dict[Node, int])  # -> position in the step
    axes: tuple[int, ...] = ()
    open: bool = True
    opaque: bool = False
    inputs: set[Value] = field(default_factory=set[Value])
    device: str = ""  # that its nodes ask for: kernels of several would add in other orders

    @property
    def suffix(self) -> bool:
        """Whether the reduced axes are the last ones."""
        rank = len(known(self.domain))
        return self.axes == tuple(range(rank - len(self.axes), rank))

    def kept_shapes(self) -> tuple[Shape, Shape]:
        """Shapes of a reduction's result: axes kept as 1, axes dropped."""
        domain = known(self.domain)
        kept = tuple(1 if a in self.axes else d for a, d in enumerate(domain))
        return kept, tuple(d for a, d in enumerate(domain) if a not in self.axes)


def fuse(step: Step, apart: Collection[Node] = ()) -> Fused:
    """Groups of a simplified step; nodes `apart` have one each."""
    fuser = _Fuser(step, apart)
    for position, node in enumerate(step.graph.nodes):
        fuser.visit(position, node)
    return fuser.finish()


class _Fuser:
    def __init__(self, step: Step, apart: Collection[Node]) -> None:
        self.step = step
        self.apart = apart
        self.group_of: dict[Node, _Open] = {}
        self.floating: dict[Node, int] = {}  # -> depth
        self.sources: dict[Node, int] = {}  # how many arrays a floating value reads
        self.position: dict[Node, int] = {}
        self.aliases: dict[Value, Value] = {}
        self.groups: list[_Open] = []
        self.reducing: dict[Value, list[_Open]] = {}  # arrays that reducing groups read in full

    def visit(self, position: int, node: Node) -> None:
        """Places one node."""
        self.position[node] = position
        op = op_of(node)
        for value in map(self._root, node.inputs):
            if value.node.device != node.device and op_of(value.node) is not CONSTANT:
                self._materialize(value)  # of another device: it is sent, not computed again
        match op.lower:
            case Boundary():
                if op is CONSTANT and size(node.types[0].shape) == 1:
                    self.floating[node] = 0
            case Alias():
                self._alias(node)
            case Pull() if self._floats(node):
                self._narrow(node)
                self.floating[node] = 1 + max(
                    (self.floating.get(v.node, 0) for v in node.inputs), default=0
                )
                self._close_behind(node, None)
            case Pull():  # reads its inputs at other positions, so they must be in memory
                self._join(node, [])
            case Elementwise():
                self._join(node, self._elementwise_hosts(node))
            case Reduce():
                self._join_reduce(node)
            case _:
                self._opaque(node)

    def _floats(self, node: Node) -> bool:
        if node in self.apart or op_of(node).facts.cost is Cost.EXPENSIVE:
            return False
        depth = max((self.floating.get(v.node, 0) for v in node.inputs), default=0)
        return depth < MOST_FLOATING

    def _narrow(self, node: Node) -> None:
        """Stores what `node` reads, if it would otherwise test too many arrays."""
        sources = [self.sources.get(v.node, 1) for v in node.inputs]
        if sum(sources) > MOST_SOURCES:
            for value in node.inputs:
                self._materialize(self._root(value))
            sources = [1] * len(sources)
        self.sources[node] = sum(sources)

    # -- producers

    def _materialize(self, value: Value) -> None:
        """Puts a floating value into memory: a constant already is, others get a group."""
        node = value.node
        if self.floating.pop(node, None) is not None and op_of(node) is not CONSTANT:
            self.sources.pop(node, None)
            # Closed at once: groups before a later joiner may already read the value.
            self._start(node, value.shape).open = False

    def _start(self, node: Node, domain: Shape, *, opaque: bool = False) -> _Open:
        group = _Open(domain, opaque=opaque, device=node.device)
        self.groups.append(group)
        self._add(group, node)
        group.open = node not in self.apart
        return group

    def _add(self, group: _Open, node: Node) -> None:
        self._close_behind(node, group)
        group.nodes[node] = self.position[node]
        self.group_of[node] = group
        for value in node.inputs:
            if self.group_of.get(value.node) is not group:
                group.inputs.add(value)

    def _close_behind(self, node: Node, group: _Open | None) -> None:
        """Closes every other group that `node` reads, also through floating values."""
        stack = list(node.inputs)
        while stack:
            value = stack.pop()
            value = self._root(value)
            if value.node in self.floating:
                continue  # its own producers were closed when it was placed
            producer = self.group_of.get(value.node)
            if producer is not None and producer is not group:
                producer.open = False

    def _root(self, value: Value) -> Value:
        while value in self.aliases:
            value = self.aliases[value]
        return value

    # -- placing nodes

    def _alias(self, node: Node) -> None:
        """A reshape between the two forms of a reduced value joins its group; others are views.

        A barrier is a set of views, one per input: it and its readers come after all inputs.
        """
        value, *more = node.inputs
        if more:
            self._views(node)
            return
        host = self.group_of.get(value.node)
        if host is not None and host.open and host.axes and self._fits(host):
            kept = host.kept_shapes()
            if value.shape in kept and node.types[0].shape in kept:
                self._add(host, node)
                return
        self._views(node)

    def _views(self, node: Node) -> None:
        for value in node.inputs:
            self._materialize(value)
        self._close_behind(node, None)
        self.aliases.update(zip(node.outputs, node.inputs, strict=True))

    def _elementwise_hosts(self, node: Node) -> list[_Open]:
        """Open groups that `node` reads and could join, each once."""
        if node in self.apart:
            return []
        shape = node.types[0].shape
        hosts: dict[_Open, None] = {}
        for value in node.inputs:
            host = self.group_of.get(value.node)
            if host is not None and host.open and self._accepts(host, node, shape):
                hosts[host] = None
        return list(hosts)

    def _fits(self, host: _Open) -> bool:
        return len(host.nodes) < MOST_NODES and len(host.inputs) < MOST_INPUTS

    def _accepts(self, host: _Open, node: Node, shape: Shape) -> bool:
        if not self._fits(host) or host.device != node.device:
            return False
        inside = [v for v in node.inputs if self.group_of.get(v.node) is host]
        if host.axes and shape in host.kept_shapes():
            return all(v.shape in host.kept_shapes() for v in inside) and self._aligned(node)
        if shape != host.domain:
            return False
        reads_kept = host.axes and any(v.shape != host.domain for v in inside)
        if reads_kept:
            kept = host.kept_shapes()[0]
            return host.suffix and all(v.shape in (host.domain, kept) for v in inside)
        return True

    @staticmethod
    def _aligned(node: Node) -> bool:
        """Whether a kept node's inputs broadcast to its shape without mixing the two kept forms."""
        shape = node.types[0].shape
        return all(v.shape == shape or size(v.shape) == 1 for v in node.inputs)

    def _join(self, node: Node, hosts: list[_Open]) -> None:
        if not hosts:
            self._start(node, node.types[0].shape)
            return
        host = hosts[0]
        for other in hosts[1:]:
            if self._mergeable(host, other):
                host = self._merge(host, other)
        self._add(host, node)

    def _mergeable(self, a: _Open, b: _Open) -> bool:
        if a.domain != b.domain or a.device != b.device or (a.opaque and b.opaque):
            return False
        if (a.opaque and b.axes) or (b.opaque and a.axes):
            return False
        if a.axes and b.axes and a.axes != b.axes:
            return False
        few_inputs = len(a.inputs | b.inputs) < MOST_INPUTS
        return few_inputs and len(a.nodes) + len(b.nodes) < MOST_NODES

    def _merge(self, a: _Open, b: _Open) -> _Open:
        if b.opaque:
            a, b = b, a
        a.nodes.update(b.nodes)
        a.axes = a.axes or b.axes
        a.inputs |= b.inputs
        for node in b.nodes:
            self.group_of[node] = a
        self.groups.remove(b)
        b.open = False
        return a

    def _join_reduce(self, node: Node) -> None:
        value = node.inputs[0]
        axes: tuple[int, ...] = node.attrs["axes"]
        host = self.group_of.get(value.node)
        if (
            host is not None
            and host.open
            and node not in self.apart
            and not host.opaque
            and host.device == node.device
            and axes
            and self._fits(host)
            and host.domain == value.shape
            and host.axes in ((), axes)
        ):
            host.axes = axes
            self._add(host, node)
        else:
            host = self._start(node, value.shape)
            host.axes = axes
        self._meet(host)

    def _meet(self, host: _Open) -> None:
        """Merges a reducing group into one that reduces the same way and reads the same array.

        Both are open, so neither depends on the other.
        """
        full = [v for v in host.inputs if v.shape == host.domain]
        for value in full:
            for other in self.reducing.get(value, ()):
                meets = other is not host and other.open and other.axes == host.axes
                if host.open and meets and self._mergeable(host, other):
                    host = self._merge(host, other)
        for value in full:
            self.reducing.setdefault(value, []).append(host)

    def _opaque(self, node: Node) -> None:
        for value in node.inputs:
            self._materialize(self._root(value))
        plain = node.types and not is_stack(node.types[0].shape)
        group = self._start(node, node.types[0].shape if plain else (), opaque=True)
        if Ability.EPILOGUE not in family_of(node).abilities or len(node.types) != 1:
            group.open = False

    # -- results

    def finish(self) -> Fused:
        for value in self.step.graph.outputs:
            self._materialize(self._root(value))
        used_outside = {self._root(v) for v in self.step.graph.outputs}
        members: list[tuple[int, list[Node]]] = []
        for group in self.groups:
            nodes = self._with_floating(group)
            members.append((max(map(self.position.__getitem__, nodes)), nodes))
            inside = set(nodes)
            used_outside.update(
                self._root(v) for n in nodes for v in n.inputs if v.node not in inside
            )
        ready = sorted(members, key=lambda pair: pair[0])
        groups = tuple([self._group(nodes, used_outside) for _, nodes in ready])
        return Fused(groups, dict(self.aliases), self.step.graph.outputs)

    def _with_floating(self, group: _Open) -> list[Node]:
        """The group's nodes and the floating ones that they read, in order."""
        found: set[Node] = set(group.nodes)
        stack = list(group.nodes)
        while stack:
            for value in stack.pop().inputs:
                if value.node in self.floating and value.node not in found:
                    found.add(value.node)
                    stack.append(value.node)
        product = [n for n in group.nodes if isinstance(op_of(n).lower, Opaque)][:1]
        rest = sorted(found - set(product), key=self.position.__getitem__)
        return product + rest

    def _group(self, nodes: list[Node], used_outside: set[Value]) -> Group:
        inside = set(nodes)
        inputs = dict.fromkeys(v for n in nodes for v in n.inputs if v.node not in inside)
        outputs = [
            v
            for n in nodes
            if n not in self.floating
            for v in n.outputs
            if v in used_outside or (isinstance(op_of(n).lower, Opaque) and len(n.outputs) > 1)
        ]
        return Group(tuple(nodes), tuple(inputs), tuple(outputs))
