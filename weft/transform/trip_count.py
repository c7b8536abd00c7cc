"""The number of iterations of a loop, where it follows from constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from weft.ir.node import Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph
from weft.ops.control.function_reference import prepared
from weft.ops.declaration import op_of
from weft.ops.declaration.attribute import is_complete, known_value

MOST: Final = 100_000
"""Iterations that are counted; a longer loop is treated as of unknown length."""


def trip_count(
    condition: Subgraph, body: Subgraph, carried: int, xs: Sequence[Value]
) -> int | None:
    """How many iterations a `while_loop` of these inputs takes; `None` if unknown.

    Runs only what the condition depends on: for `i < 10`, the counter.
    """
    needed = _needed(condition.outputs, condition)
    while True:
        carries = sorted(i for i in needed if i < carried)
        more = needed | _needed([body.outputs[i] for i in carries], body)
        if more == needed:
            break
        needed = more
    known = {i: _known(xs[i]) for i in needed}
    if any(array is None for array in known.values()):
        return None
    holds = prepared(_part(condition, condition.outputs))
    iteration = prepared(_part(body, [body.outputs[i] for i in carries]))
    held: list[Any] = [known.get(i) for i in range(len(xs))]
    for count in range(MOST):
        if not holds(held)[0]:
            return count
        for i, array in zip(carries, iteration(held), strict=True):
            held[i] = array
    return None


def _needed(outputs: Sequence[Value], function: Subgraph) -> set[int]:
    """Which inputs some outputs depend on."""
    used = {*outputs, *[v for n in _part(function, outputs).nodes for v in n.inputs]}
    return {i for i, v in enumerate(function.inputs) if v in used}


def _part(function: Subgraph, outputs: Sequence[Value]) -> Subgraph:
    """The nodes that some outputs depend on."""
    nodes, used = list[Any](), set(outputs)
    for node in reversed(function.nodes):
        if any([v in used for v in node.outputs]):
            nodes.append(node)
            used.update(node.inputs)
    return replace(function, outputs=tuple(outputs), nodes=tuple(reversed(nodes)))


def _known(value: Value) -> Any:
    """The array of a constant, or of a small value known at compile time."""
    if op_of(value.node) is CONSTANT:
        return value.node.attrs["value"].array
    found = known_value(value) if value.dtype.is_integer else None
    if found is None or not is_complete(found):
        return None
    return np.asarray(found, value.dtype.numpy)
