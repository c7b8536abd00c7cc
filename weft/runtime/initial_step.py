"""Steps that only give variables their first values, with operations that NumPy rounds alike.

They are run on NumPy: compiling one takes longer than many runs, for it draws random numbers of
ever new shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import Node
from weft.ir.shape import is_static, size
from weft.ops.boundary.state import CONSTANT, first_count, variable
from weft.ops.declaration import Alias, Elementwise, Pull, op_of
from weft.ops.declaration.fact import Cost
from weft.ops.declaration.numeric import HALVES
from weft.passes.step import Step
from weft.runtime.finish import on_state
from weft.runtime.memory.state import State
from weft.transform.interpretation import Interpretation

MOST: Final = 1 << 22
"""Elements of all values of such a step, which take about 10 ms; what is larger is compiled."""


class InitialStep:
    """The program of such a step.

    Args:
        threads: as many would run a compiled program.
    """

    def __init__(self, step: Step, threads: int) -> None:
        self.step: Final = step
        self._threads = threads
        self._counters = [n for n in step.graph.nodes if op_of(n) is variable]
        feeds = [n.outputs[0] for n in self._counters]
        self._values = Interpretation(step.graph, step.graph.outputs, feeds)

    def run(self, arrays: Sequence[Any], state: State) -> list[Any]:
        """Sets the variables."""
        del arrays
        with state.lock:
            for node in self._counters:
                if node.attrs["key"] not in state:
                    count = first_count(node.attrs["start"])
                    state[node.attrs["key"]] = np.array(count, np.uint64)
            values = self._values([state[n.attrs["key"]] for n in self._counters])
            for key, value in zip(self.step.updates, values, strict=True):
                state[key] = value
        return []

    def profile(self, arrays: Sequence[Any], state: State, runs: int = 5) -> str:
        """As a compiled program would be."""
        return self._compiled.profile(arrays, state, runs)

    @functools.cached_property
    def _compiled(self) -> Any:
        return on_state(self.step, self._threads, 0)


def is_initial(step: Step) -> bool:
    """Whether a step only sets variables, from counters and constants, to few exact values."""
    if step.feeds or len(step.graph.outputs) != len(step.updates):
        return False
    elements = 0
    for node in step.graph.nodes:
        if not _is_exact(node) or not all([is_static(t.shape) for t in node.types]):
            return False
        elements += sum([size(t.shape) for t in node.types])
    return elements <= MOST


def _is_exact(node: Node) -> bool:
    """Whether NumPy gives the bits of a kernel; or it is a counter.

    What takes a cycle or two is one instruction, which both round alike; sums are added in other
    orders, and functions are other polynomials.
    """
    op, types = op_of(node), [*[v.type for v in node.inputs], *node.types]
    if op is variable:
        return bool(node.attrs.get("counter"))
    if any([kind.dtype in HALVES for kind in types]):  # kernels round once, after all operations
        return False
    if isinstance(op.lower, Elementwise):
        return op.facts.cost is Cost.CHEAP or all([kind.dtype.is_integer for kind in types])
    return isinstance(op.lower, Alias | Pull) or op is CONSTANT
