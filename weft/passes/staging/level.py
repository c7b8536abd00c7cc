"""Levels: how many crossings between devices come before a node.

Nodes of one device and one level need nothing from each other's successors on other devices, so
they form a stage, and the graph of stages has no cycle.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.ir.node import Node, Value
from weft.ops.boundary.state import CONSTANT, placeholder, variable
from weft.ops.declaration import Alias, Elementwise, Pull, fault_of, inner_nodes, op_of
from weft.ops.declaration.fact import Cost
from weft.ops.effect import is_ordered
from weft.passes.step import Step


@dataclass(frozen=True)
class Layout:
    """A step, and where its parts are.

    Attributes:
        step: an optimized step.
        device_of: the device of each node; of a feed and a constant it does not matter.
        homes: the device of each variable, by key.
    """

    step: Step
    device_of: Mapping[Node, str]
    homes: Mapping[str, str]
    copied: set[Node] = field(default_factory=set[Node])

    def __post_init__(self) -> None:
        for node in self.step.graph.nodes:
            if _is_copied(node, self.copied):
                self.copied.add(node)

    @functools.cached_property
    def _readers(self) -> dict[Node, list[Node]]:
        found: dict[Node, list[Node]] = {}
        for node in filter(self.is_computed, self.step.graph.nodes):
            for value in node.inputs:
                found.setdefault(value.node, []).append(node)
        return found

    def readers(self, node: Node) -> list[Node]:
        """The computed nodes that read what a node gives."""
        return self._readers.get(node, [])

    def is_computed(self, node: Node) -> bool:
        """Whether a node belongs to one stage; others are wherever they are read."""
        return op_of(node) not in (placeholder, variable) and node not in self.copied

    def home(self, key: str) -> str:
        """The device of a variable."""
        return self.homes[key]

    def key_of(self, value: Value) -> str | None:
        """The key of the variable that a value is, if it is one."""
        return value.node.attrs["key"] if op_of(value.node) is variable else None

    def giver(self, value: Value) -> str | None:
        """The device that gives a value; `None` if every device has it."""
        node = value.node
        if op_of(node) is variable:
            return self.home(node.attrs["key"])
        return self.device_of[node] if self.is_computed(node) else None


def _is_copied(node: Node, copied: set[Node]) -> bool:
    """Whether each device computes a node itself: a constant, or what is cheap to make of it."""
    op = op_of(node)
    if op is CONSTANT:
        return True
    cheap = op.facts.cost is not Cost.EXPENSIVE and isinstance(op.lower, Elementwise | Pull | Alias)
    return cheap and not op.stateful and all([v.node in copied for v in node.inputs])


def can_fault(node: Node) -> bool:
    """Whether a node, or one inside it, may find an index out of range."""
    return fault_of(node) is not None or any(map(can_fault, inner_nodes(node)))


@dataclass
class Levels:
    """The level of each computed node, and of the store of each updated variable.

    A store comes after all that its device does with the old value, and after all checks that can
    come before it, so that a fault leaves variables unchanged.

    Attributes:
        checks: nodes that stores come after, on whatever device.
        ordered: pairs of nodes that act in the order of the program.
    """

    layout: Layout
    of: dict[Node, int] = field(default_factory=dict[Node, int])
    stores: dict[str, int] = field(default_factory=dict[str, int])
    checks: list[Node] = field(default_factory=list[Node])
    ordered: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])

    def __post_init__(self) -> None:
        graph = self.layout.step.graph
        before: Node | None = None  # the last node that acts in the order of the program
        for node in filter(self.layout.is_computed, graph.nodes):
            device = self.layout.device_of[node]
            level = max([self._arrival(v, device) for v in node.inputs], default=0)
            if is_ordered(node):
                if before is not None:
                    level = max(level, self._after(before, device))
                    self.ordered.append((before, node))
                before = node
            self.of[node] = level
        self._place_stores()

    def _after(self, node: Node, device: str) -> int:
        """The first level of a device that may follow a node."""
        return self.of[node] + (self.layout.device_of[node] != device)

    def _arrival(self, value: Value, device: str) -> int:
        """The first level of a device that has a value."""
        giver = self.layout.giver(value)
        if giver is None:
            return 0
        return self.of.get(value.node, 0) + (giver != device)

    def _place_stores(self) -> None:
        layout, new = self.layout, self.layout.step.new_values
        readers = self._old_readers()
        late = _touching(layout)
        self.checks = [n for n in self.of if n not in late and can_fault(n)]
        for key, value in new.items():
            home = layout.home(key)
            first = [self._arrival(value, home), *[self._after(n, home) for n in self.checks]]
            self.stores[key] = max(first)
        while self._raised(readers) | self._pulled(late):
            pass

    def _old_readers(self) -> dict[str, list[Node]]:
        """The nodes that read an updated variable at its home."""
        layout = self.layout
        found: dict[str, list[Node]] = {key: [] for key in layout.step.new_values}
        for node in self.of:
            for value in node.inputs:
                key = layout.key_of(value)
                if key in found and layout.device_of[node] == layout.home(key):
                    found[key].append(node)
        return found

    def _raised(self, readers: Mapping[str, list[Node]]) -> bool:
        """Moves stores behind the readers of old values; returns whether any moved."""
        changed = False
        for key, nodes in readers.items():
            level = max([self.of[n] for n in nodes], default=0)
            if level > self.stores[key]:
                self.stores[key], changed = level, True
        return changed

    def _pulled(self, late: Mapping[Node, list[Node | str]]) -> bool:
        """Moves arithmetic of updates to the stores that it is for; returns whether any moved."""
        changed = False
        for node in reversed(list(late)):
            level = min([
                self.stores[x] if isinstance(x, str) else self.of[x] for x in late[node]
            ])  # fmt: skip
            if level > self.of[node]:
                self.of[node], changed = level, True
        return changed


def _touching(layout: Layout) -> dict[Node, list[Node | str]]:
    """Nodes only for stores of their device that read what is updated, with their consumers."""
    consumers = _consumers(layout)
    late: dict[Node, bool] = {}
    for node in filter(layout.is_computed, reversed(layout.step.graph.nodes)):
        device = layout.device_of[node]
        late[node] = _for_stores(layout, device, consumers.get(node), late)
    found: dict[Node, list[Node | str]] = {}
    for node in layout.step.graph.nodes:
        if late.get(node) and any([_touched(v, layout, found) for v in node.inputs]):
            found[node] = [x for x in consumers[node] if x is not None]
    return found


def _for_stores(
    layout: Layout, device: str, consumers: list[Node | str | None] | None, late: dict[Node, bool]
) -> bool:
    """Whether all consumers are stores of the device, or for such stores."""
    if not consumers:
        return False
    for consumer in consumers:
        if consumer is None:
            return False
        if isinstance(consumer, str):
            if layout.home(consumer) != device:
                return False
        elif not late.get(consumer) or layout.device_of[consumer] != device:
            return False
    return True


def _touched(value: Value, layout: Layout, found: Mapping[Node, object]) -> bool:
    if op_of(value.node) is variable:
        return value.node.attrs["key"] in layout.step.updates
    return value.node in found


def _consumers(layout: Layout) -> dict[Node, list[Node | str | None]]:
    """What uses each node: nodes, stores by key, `None` for the caller."""
    found: dict[Node, list[Node | str | None]] = {}
    for node in layout.step.graph.nodes:
        for value in node.inputs:
            found.setdefault(value.node, []).append(node)
    for key, value in layout.step.new_values.items():
        found.setdefault(value.node, []).append(key)
    for value in layout.step.fetches:
        found.setdefault(value.node, []).append(None)
    return found
