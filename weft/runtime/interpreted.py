"""Runs without a compiler: if only Python can tell a shape, or no compiler is available."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.boundary.state import counter, variable
from weft.ops.declaration import Op, inner_nodes, op_of
from weft.passes.step import Request, needed
from weft.runtime.memory.distant import set_values, values_of
from weft.runtime.memory.state import State
from weft.transform.interpreter import Memory, evaluate


class Interpreted:
    """Like the engine's `Function`, but slow: node by node on the NumPy references."""

    def __init__(
        self, graph: Graph, fetches: Sequence[Value], targets: Sequence[Node],
        feeds: Sequence[Value], done: Collection[Node] = frozenset(),
    ) -> None:  # fmt: skip
        self._graph = graph
        self._fetches = tuple(fetches)
        self._targets = tuple(targets)
        self._feeds = tuple(feeds)
        self._done = done

    def __call__(self, arrays: Sequence[Any], state: State) -> list[Any]:
        """Runs one step; the state changes only if all of it succeeds."""
        with state.lock:
            return self._run(arrays, state)

    def _run(self, arrays: Sequence[Any], state: State) -> list[Any]:
        variables, counters = self._keys
        held = values_of(state, (*variables, *counters))
        memory = Memory(
            {key: held[key] for key in variables if key in held},
            {key: int(held[key]) for key in counters if key in held},
        )
        before = dict(memory.variables)
        feeds = dict(zip(self._feeds, arrays, strict=True))
        found = evaluate(self._graph, self._fetches, feeds, memory, self._targets, self._done)
        changed = {k: x for k, x in memory.variables.items() if before.get(k) is not x}
        counts = {key: np.array(count, np.uint64) for key, count in memory.counters.items()}
        set_values(state, {**changed, **counts})
        return [np.array(y) if np.ndim(y) else np.asarray(y)[()] for y in found]

    @functools.cached_property
    def _keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The variables and counters that a run may use."""
        request = Request(
            self._graph, self._fetches, self._targets, self._feeds, frozenset(self._done)
        )
        nodes = list(_with_inner(needed(request)))
        return _keys(nodes, variable), _keys(nodes, counter)


def _with_inner(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _with_inner(inner_nodes(node))


def _keys(nodes: Sequence[Node], op: Op) -> tuple[str, ...]:
    return tuple(dict.fromkeys([str(n.attrs["key"]) for n in nodes if op_of(n) is op]))
