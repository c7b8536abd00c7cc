"""Constraints: what the user's graph says about devices.

Nodes that must be on one device form a group: variables of one key, what assigns or reads them,
nodes that are colocated, and a loop with its body. A group is where all of its nodes ask to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.errors import ArgumentError
from weft.ir.device import DeviceName
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ops.boundary.state import assign, counter, read, variable
from weft.ops.declaration import inner_nodes, op_of

ANYWHERE: Final = DeviceName()


class Asking(NamedTuple):
    """A node that asks for a device."""

    node: Node
    device: DeviceName

    def __str__(self) -> str:
        return f"{self.node.describe()} asks for {self.device}"


class Link(NamedTuple):
    """Two nodes that must be on one device."""

    node: Node
    other: Node
    why: str


@dataclass(eq=False)
class Group:
    """Nodes on one device.

    Attributes:
        device: what they ask for together.
        asking: those that ask.
        links: why the others are with them.
    """

    nodes: list[Node]
    device: DeviceName = ANYWHERE
    asking: list[Asking] = field(default_factory=list[Asking])
    links: list[Link] = field(default_factory=list[Link])

    def ask(self, asking: Asking, soft: bool, why: str = "") -> None:
        """Adds what a node asks for.

        Raises:
            ArgumentError: it contradicts the others.
        """
        device = asking.device
        if not self.device.agrees(device):
            if not (soft and self.device.of_task.agrees(device.of_task)):
                self._refuse(asking, why)
            device = device.of_task
        self.device = self.device.merged(device)
        self.asking.append(asking)

    def add(self, other: Group, link: Link, soft: bool) -> None:
        """Takes over the nodes of another group.

        Raises:
            ArgumentError: they ask for another device.
        """
        why = f"{link.node.describe()} {link.why} {link.other.describe()}"
        for asking in other.asking:
            self.ask(asking, soft, why)
        self.nodes += other.nodes
        self.links += [*other.links, link]

    def _refuse(self, asking: Asking, why: str) -> None:
        other = next(a for a in self.asking if not a.device.agrees(asking.device))
        raise ArgumentError(
            f"device: {other}, but {asking}; expected one device for both, because {why}"
        )


def groups_of(graph: Graph, soft: bool) -> list[Group]:
    """The groups of a graph, those that ask for nothing included.

    Args:
        soft: whether a device of another kind or number in the same process will do.

    Raises:
        ArgumentError: what is to be on one device asks for several, with both nodes; or a device's
            name is not understood.
    """
    found: dict[Node, Group] = {}
    for node in graph.nodes:
        group = found[node] = Group([node])
        for asking in _asking(node):
            group.ask(asking, soft, f"{node.describe()}, a loop or a branch, is on one device")
    for link in (*_references(graph), *[Link(a, b, COLOCATED) for a, b in graph.colocated()]):
        group, other = found[link.other], found[link.node]
        if group is not other:
            group.add(other, link, soft)
            found.update(dict.fromkeys(other.nodes, group))
    return list(dict.fromkeys(found.values()))


COLOCATED: Final = "is colocated with"


def _asking(node: Node) -> Iterator[Asking]:
    """What a node and the nodes inside it ask for."""
    for each in (node, *_within(node)):
        if each.device:
            yield Asking(each, _parsed(each))


def _within(node: Node) -> Iterator[Node]:
    for inner in inner_nodes(node):
        yield inner
        yield from _within(inner)


def _parsed(node: Node) -> DeviceName:
    try:
        return DeviceName.parse(node.device)
    except ArgumentError as error:
        raise ArgumentError(f"{error}: {node.describe()}") from None


def _references(graph: Graph) -> Iterator[Link]:
    """Variables of one key, and what assigns or reads them."""
    first: dict[str, Node] = {}
    for node in graph.nodes:
        if op_of(node) in (variable, counter):
            other = first.setdefault(node.attrs["key"], node)
            if other is not node:
                yield Link(node, other, "has the same value as")
            continue
        for value in node.inputs:
            if op_of(value.node) is variable and not (op_of(node) is read and node.device):
                yield Link(node, value.node, "assigns" if op_of(node) is assign else "reads")
