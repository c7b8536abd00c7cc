"""Contexts in which nodes are built on behalf of another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from weft.ir.node import Node, Source

Context = tuple[str, str, Source | None]
"""Name scope, device and source line of the nodes under construction."""


class Building(Protocol):
    """What they need from a graph: `weft.ir.graph`."""

    nodes: list[Node]

    def exchange(self, context: Context) -> Context:
        """Set name scope, device and source line of nodes to be built; returns the old ones."""
        ...

    def colocate(self, nodes: Iterable[Node], others: Iterable[Node]) -> None:
        """Put nodes on the device of others."""
        ...


class OnBehalf:
    """`Graph.on_behalf_of`; entered for every node that is differentiated or rewritten."""

    __slots__ = ("_context", "_graph")

    def __init__(self, graph: Building, context: Context) -> None:
        self._graph = graph
        self._context = context

    def __enter__(self) -> None:
        self._context = self._graph.exchange(self._context)

    def __exit__(self, *_: object) -> None:
        self._context = self._graph.exchange(self._context)


class Colocated(OnBehalf):
    """The same, for nodes that must be on the device of others."""

    __slots__ = ("_others", "_start")

    def __init__(self, graph: Building, context: Context, others: tuple[Node, ...]) -> None:
        super().__init__(graph, context)
        self._others = others

    def __enter__(self) -> None:
        super().__enter__()
        self._start = len(self._graph.nodes)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._graph.colocate(self._graph.nodes[self._start :], self._others)
