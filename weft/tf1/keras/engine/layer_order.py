"""The layers of a network in Keras's order: by depth from the inputs, then by use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.graph_state import history_of
from weft.tf1.keras.engine.node import Node


class Order(NamedTuple):
    """Calls and layers, each after those that it needs."""

    nodes: list[Node]
    layers: list[Any]


def order_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> Order:
    """The calls between inputs and outputs.

    Raises:
        ArgumentError: an output depends on an input that is not among `inputs`.
    """
    walk = _Walk(inputs)
    for y in outputs:
        walk.visit(_node_of(y))
    walk.visit_all([_node_of(x) for x in inputs])
    depths = _depths(walk.finished)
    layers = _layer_depths(depths)
    number = {id(x): i for i, x in enumerate(walk.layers)}
    nodes = sorted(walk.finished, key=lambda n: -depths[n])  # stable: a call stays after its inputs
    ordered = sorted(walk.layers, key=lambda x: (-layers[id(x)], number[id(x)]))
    return Order(nodes, ordered)


class _Walk:
    """A traversal from outputs to inputs.

    Attributes:
        finished: calls, each after those that it needs.
        layers: in the order of their discovery.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._inputs = {id(_node_of(x)) for x in inputs}
        self._names = [_node_of(x).layer.name for x in inputs]
        self.finished: list[Node] = []
        self.layers: list[Any] = []
        self._done: set[int] = set()

    def visit_all(self, nodes: Sequence[Node]) -> None:
        """Visit the calls that no output needs."""
        for node in nodes:
            self.visit(node)

    def visit(self, last: Node) -> None:
        """Visit a call, after those that it needs."""
        waiting: list[tuple[Node, bool]] = [(last, False)]
        while waiting:
            node, ready = waiting.pop()
            if id(node) in self._done:
                continue
            if ready or id(node) in self._inputs:
                self._meet(node)
                self._done.add(id(node))
                self.finished.append(node)
                continue
            self._require_inputs(node)
            self._meet(node)
            waiting.append((node, True))
            waiting += [(n, False) for n in reversed(node.inbound_nodes)]

    def _meet(self, node: Node) -> None:
        if not any(x is node.layer for x in self.layers):
            self.layers.append(node.layer)

    def _require_inputs(self, node: Node) -> None:
        if not node.input_tensors:
            raise fail(
                ArgumentError,
                f"Model: expected outputs that follow from the inputs {self._names}, but they need "
                f"{node.layer.name!r}",
            )


def _depths(finished: Sequence[Node]) -> dict[Node, int]:
    """The longest path from each call to the outputs; one depth per layer."""
    depths: dict[Node, int] = {}
    layers: dict[int, int] = {}
    for node in reversed(finished):
        depth = max(depths.get(node, 0), layers.get(id(node.layer), 0))
        layers[id(node.layer)] = depths[node] = depth
        for inner in node.inbound_nodes:
            depths[inner] = max(depths.get(inner, 0), depth + 1)
    return {node: depths.get(node, 0) for node in finished}


def _layer_depths(depths: dict[Node, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for node, depth in depths.items():
        found[id(node.layer)] = max(found.get(id(node.layer), 0), depth)
    return found


def _node_of(x: Any) -> Node:
    found = history_of(x)
    assert found is not None
    return found[0].inbound_nodes[found[1]]
