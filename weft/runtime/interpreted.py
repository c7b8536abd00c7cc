"""Runs without a compiler: if only Python can tell a shape, or no compiler is available."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.boundary.state import counter
from weft.ops.declaration import op_of
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
        counters = {str(n.attrs["key"]) for n in self._graph.nodes if op_of(n) is counter}
        memory = Memory(
            {key: state[key] for key in state if key not in counters},
            {key: int(state[key]) for key in state if key in counters},
        )
        before = dict(memory.variables)
        feeds = dict(zip(self._feeds, arrays, strict=True))
        found = evaluate(self._graph, self._fetches, feeds, memory, self._targets, self._done)
        for key, value in memory.variables.items():
            if before.get(key) is not value:
                state[key] = value
        for key, count in memory.counters.items():
            state[key] = np.array(count, np.uint64)
        return [np.array(y) if np.ndim(y) else np.asarray(y)[()] for y in found]
