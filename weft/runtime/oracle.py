"""`WEFT_REFERENCE=1`: every value of a step compared with the NumPy reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.codegen.target import current
from weft.errors import MismatchError
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.step import Step
from weft.runtime.build import build
from weft.runtime.executable import Executable
from weft.runtime.state import State
from weft.transform.interpreter import evaluate

Array = np.ndarray[Any, Any]
# Sums are formed in another order than NumPy's: relative to the largest element.
TOLERANCE: Final = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4, "float64": 1e-10}


def compare(step: Step, threads: int, arrays: Sequence[Array], state: State) -> None:
    """Run a step both ways, keeping every value; the state does not change.

    Raises:
        MismatchError: names the first node in order whose values differ, and the user's line.
    """
    graph = step.graph
    sources = ("placeholder", "variable", "constant", "host_call")
    values = [v for n in graph.nodes if n.op not in sources for v in n.outputs]
    feeds: dict[Value, Array] = {
        graph.find(name).outputs[0]: array for name, array in zip(step.feeds, arrays, strict=True)
    }
    for node in graph.nodes:
        if node.op == "variable":  # one without a value is a counter, or the run below refuses
            key, kind = node.attrs["key"], node.types[0]
            zeros = np.zeros(known(kind.shape), kind.dtype.numpy)
            feeds[node.outputs[0]] = state.get(key, zeros)
    expected = evaluate(graph, values, feeds)
    watched = Step(Graph(graph.nodes, values), step.feeds, ())
    actual = Executable(build(watched, current(), threads), threads).run(arrays, state)
    for value, want, got in zip(values, expected, actual, strict=True):
        _check(value, want, np.asarray(got))


def _check(value: Value, want: Array, got: Array) -> None:
    if value.dtype.is_floating:
        a, b = want.astype(np.float64), got.astype(np.float64)
        finite = np.abs(a[np.isfinite(a)])
        scale = float(finite.max()) if finite.size else 1.0
        tolerance = TOLERANCE[value.dtype.name]
        same = np.isclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    else:
        same = want == got
    if not np.all(same):
        place = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
        raise MismatchError(
            f"{value.node.op}: compiled and reference differ first at {place}: "
            f"expected {want[place]}, got {got[place]}: {value.node.describe()}"
        )
