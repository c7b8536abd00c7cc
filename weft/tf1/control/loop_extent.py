"""Bounds of a loop before it runs: its number of iterations, and the sizes of growing arrays.

A reduced loop is extracted: its condition, the sizes of arrays, and whatever these depend on. If
    all of that is integers that follow from constants, shapes and feeds, shapes may depend on its
    results (`loop_counts`). Else it runs first, as a part of the step of its own, and tells the
    sizes of what comes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import ops
from weft.errors import GraphError
from weft.ir.node import Node, TensorType, Value
from weft.ops.boundary.state import assign, read
from weft.ops.call import Subgraph, inline, trace
from weft.ops.declaration import op_of
from weft.tf1.control.py_func import host_function
from weft.tf1.control.region import ITERATION_STRIDE, Join, Region
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import Graph, fail
from weft.tf1.framework.known_ahead import follows_from_feeds, is_integral
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping.arrangement import shape, unstack


class Extent(NamedTuple):
    """What is known of a loop before it runs.

    Attributes:
        sizes: for each growing array, its maximum number of elements.
        iterations: the maximum number.
        exact: whether both are exact, not only bounds.
    """

    sizes: list[Tensor]
    iterations: Tensor
    exact: bool


def extent(
    graph: Graph, body: Region, condition: Region, starts: Sequence[Tensor | None],
    sizes: Sequence[int], maximum: Tensor | None,
) -> Extent:  # fmt: skip
    """The final sizes of a loop's arrays.

    Args:
        starts: the initial values that the loop carries; `None` for those not created yet.
        sizes: which of them are sizes of arrays.
        maximum: the maximum number of iterations.

    Raises:
        GraphError: a size depends on values that the loop computes, there is no maximum, and it
            draws random numbers or assigns variables, or depends on the elements of arrays.
    """
    for test in (condition, None):
        if test is None and maximum is None:
            break
        shadow = _Shadow(graph, body, test, sizes)
        values = [starts[i] for i in shadow.places]
        tensors = [t for t in values if t is not None]
        limits = [] if maximum is None else [maximum]
        if len(tensors) == len(values) and shadow.is_known([*tensors, *limits]):
            counts = shadow.emit(tensors, maximum)
            found = [counts[i] for i in range(len(sizes) + 1)]
            return Extent(found[1:], found[0], test is not None)
        repeats = not Join(graph, [body, condition]).assigned and shadow.may_run_twice()
        if maximum is None and len(tensors) == len(values) and repeats:
            found = [_as_size(n) for n in unstack(shadow.emit(tensors, None, ahead=False))]
            return Extent(found[1:], found[0], True)
    raise fail(
        GraphError,
        "while_loop: a TensorArray grows (dynamic_size=True), and how often the loop runs depends"
        " on what it computes: give maximum_iterations=, or the array's size",
    )


def _as_size(count: Tensor) -> Tensor:
    """A number on which shapes depend: the run is cut before what reads it."""
    made = host_function(
        "Zeros", lambda n: np.zeros(n, np.int32), [count], [int32], [(None,)], "size", alike=False
    )
    return shape(made.outputs[0])[0]


class _Shadow:
    """The reduced loop.

    Args:
        test: its condition; `None` if only a maximum ends it.
    """

    def __init__(
        self, graph: Graph, body: Region, test: Region | None, sizes: Sequence[int]
    ) -> None:
        self.graph = graph
        needed = set(sizes) | (_uses(test) if test is not None else set[int]())
        while True:
            every = range(len(body.arguments))
            inner = body.part(every, [body.outputs[i] for i in sorted(needed)])
            if _uses(inner) <= needed:
                break
            needed |= _uses(inner)
        self.places = [*sizes, *sorted(needed - set(sizes))]
        self.count = len(sizes)
        self.body = body.part(self.places, [body.outputs[i] for i in self.places])
        self.test = None if test is None else test.part(self.places, test.outputs)
        self.join = Join(graph, [self.body, *([] if self.test is None else [self.test])])

    def is_known(self, starts: Sequence[Tensor]) -> bool:
        """Whether it follows from constants, shapes and integer feeds."""
        inner = [n for r in self.join.regions for n in r.nodes]
        counted = all([_counts(n) and op_of(n) not in (read, assign) for n in inner])
        return counted and follows_from_feeds([*[t.used for t in starts], *self.join.captured])

    def may_run_twice(self) -> bool:
        """Whether it computes the same in a loop before; random numbers are those of its turns."""
        inner = [op_of(n) for r in self.join.regions for n in r.nodes]
        return not any([op.stateful and op is not read for op in inner])

    def emit(self, starts: Sequence[Tensor], maximum: Tensor | None, ahead: bool = True) -> Tensor:
        """The number of iterations, then the sizes; `ahead` if they are known before the step."""
        count = len(starts)

        def build(*values: Value) -> Value:
            limits = values[count:]
            turn = [ops.constant(0, "uint64")] if self.join.draws else []
            inits = [ops.constant(0, "int32"), *values[:count], *turn]
            fixed = [*self.join.outer, *limits]
            types = [v.type for v in (*inits, *fixed)]
            loop: dict[str, Any] = {
                "condition": self._condition(types, bool(limits)),
                "body": self._body(types, len(limits)), "carried": len(inits),
            }  # fmt: skip
            if ahead:
                return ops.loop_counts(*inits, *fixed, counts=self.count + 1, **loop)
            return ops.stack(*ops.while_loop.all(*inits, *fixed, **loop)[: self.count + 1])

        inputs = [*starts, *([] if maximum is None else [maximum])]
        return self.graph.emit("LoopExtent", inputs, build, name="extent").outputs[0]

    def _condition(self, types: Sequence[TensorType], limited: bool) -> Subgraph:
        test = None if self.test is None else self.join.function(self.test, self.join.draws)

        def run(done: Value, *xs: Value) -> Value:
            flags = [] if test is None else [inline(test, xs[:-1] if limited else xs)[0]]
            flags += [ops.less(done, xs[-1])] if limited else []
            return flags[0] if len(flags) == 1 else ops.logical_and(*flags)

        return trace(run, types)

    def _body(self, types: Sequence[TensorType], limits: int) -> Subgraph:
        function = self.join.function(self.body, self.join.draws)
        places = len(self.places)

        def run(done: Value, *xs: Value) -> list[Value]:
            turn = [xs[places] + ITERATION_STRIDE] if self.join.draws else []
            return [done + 1, *inline(function, xs[: len(xs) - limits]), *turn]

        return trace(run, types)


def _uses(region: Region) -> set[int]:
    """The arguments that its results depend on."""
    used = {*region.outputs, *[v for n in region.nodes for v in n.inputs]}
    return {i for i, v in enumerate(region.arguments) if v in used}


def _counts(node: Node) -> bool:
    """Whether a node computes only integers."""
    integers = all([is_integral(v.dtype) for v in node.outputs])
    return integers and not op_of(node).stateful
