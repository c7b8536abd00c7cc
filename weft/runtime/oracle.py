"""`WEFT_REFERENCE=1`: compares every value of a step with the NumPy reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.codegen.target import current
from weft.errors import MismatchError
from weft.host.deferred import Deferred
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.boundary.state import CONSTANT, first_count, placeholder, variable
from weft.ops.declaration import op_of
from weft.ops.effect import has_effect
from weft.passes.step import Step
from weft.runtime.finish import as_it_is
from weft.runtime.memory.state import State
from weft.transform.interpreter import evaluate_node

if TYPE_CHECKING:
    from weft.codegen.convolution import conv
else:
    conv = Deferred("weft.codegen.convolution.conv")

Array = np.ndarray[Any, Any]
SOURCES: Final = (placeholder, variable, CONSTANT)
# Sums are formed in another order than NumPy's, and fused half precision is rounded later.
TOLERANCE: Final = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-5, "float64": 1e-12}


class Oracle:
    """A step compiled once more with every value kept, and the references of its nodes."""

    def __init__(self, step: Step, threads: int) -> None:
        self._step = step
        self._values = [v for n in step.graph.nodes if _is_computed(n) for v in n.outputs]
        self._hosts = [v for n in step.graph.nodes if has_effect(n) for v in n.outputs]
        graph = Graph(step.graph.nodes, (*self._values, *self._hosts))
        watched = Step(graph, step.feeds, ())
        self._program = as_it_is(watched, threads)

    def compare(self, arrays: Sequence[Array], state: State) -> None:
        """Checks each node on its actual inputs; the state does not change.

        Raises:
            MismatchError: names the first node in order whose values differ, and the user's line.
        """
        found = self._sources(arrays, state)
        results = self._program.run(arrays, state)
        found.update(
            (v, np.asarray(a)) for v, a in zip((*self._values, *self._hosts), results, strict=True)
        )
        for node in self._step.graph.nodes:
            if _is_computed(node):
                inputs = [found[v] for v in node.inputs]
                wanted = evaluate_node(node, inputs)
                for value, want in zip(node.outputs, wanted, strict=True):
                    check(value, want, found[value], inputs)

    def _sources(self, arrays: Sequence[Array], state: State) -> dict[Value, Array]:
        graph = self._step.graph
        found: dict[Value, Array] = {
            graph.find(name).outputs[0]: array
            for name, array in zip(self._step.feeds, arrays, strict=True)
        }
        for node in graph.nodes:
            if op_of(node) is CONSTANT:
                found[node.outputs[0]] = node.attrs["value"].array
            elif op_of(node) is variable:  # one without a value is a counter, or the run raises
                kind, key = node.types[0], node.attrs["key"]
                if node.attrs.get("counter") and key not in state:
                    state[key] = np.array(first_count(node.attrs["start"]), np.uint64)
                zeros = np.zeros(known(kind.shape), kind.dtype.numpy)
                found[node.outputs[0]] = state.get(key, zeros)
        return found


def _is_computed(node: Node) -> bool:
    return op_of(node) not in SOURCES and not has_effect(node)


def check(value: Value, want: Array, got: Array, inputs: Sequence[Array]) -> None:
    """Compare one value; `inputs` are those of its node.

    Raises:
        MismatchError: they differ by more than rounding explains.
    """
    if value.dtype.is_floating:
        a, b = want.astype(np.float64), got.astype(np.float64)
        # If terms may cancel, errors are relative to the terms, not to their sum.
        scale = max(
            map(_largest, (want, *inputs)) if op_of(value.node).facts.cancels else [_largest(want)]
        )
        tolerance = max([_tolerance(value), *map(_blur, inputs)])
        smallest = float(np.finfo(np.float64 if value.dtype.size == 8 else np.float32).tiny)
        margin = tolerance * scale + smallest  # smaller numbers are flushed to zero in a step
        same = np.isclose(b, a, rtol=tolerance, atol=margin, equal_nan=True)
    else:
        same = want == got
    if not np.all(same):
        place = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
        raise MismatchError(
            f"{value.node.op}: compiled and reference differ first at {place}: "
            f"expected {want[place]}, got {got[place]}: {value.node.describe()}"
        )


def _tolerance(value: Value) -> float:
    """Relative to the largest value; by the type, or the transforms that computed it."""
    growth = conv.error_growth(value.node, current())
    transforms = 8 * float(np.finfo(np.float32).eps) * growth if growth else 0.0
    return max(TOLERANCE[value.dtype.name], transforms)


def _blur(array: Array) -> float:
    """How far an input may be from what a kernel used: one not yet rounded to half precision."""
    return TOLERANCE[array.dtype.name] if array.dtype.name in ("float16", "bfloat16") else 0.0


def _largest(array: Array) -> float:
    """The largest finite magnitude."""
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0.0))
