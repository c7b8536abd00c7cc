"""Parts of routines that Python computes, on memory that kernels read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.ir.extent import Extent
from weft.ir.graph import Graph
from weft.ir.node import Node, Source, TensorType, Value
from weft.ir.shape import known
from weft.library.form import UnsizedError
from weft.ops.declaration import writes_into
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import evaluate_node, failed, place

Array = np.ndarray[Any, Any]
Call = Callable[[Source | None, Sequence[Array], Sequence[Array]], None]
"""Computes arrays into others, for a call at a line of the user's program.

Raises:
    WeftError: it fails; the message names the operation.
"""


@dataclass(frozen=True, eq=False)
class HostPart:
    """A call of Python on the buffers of a routine.

    Attributes:
        buffers: those of the inputs, then those of the results.
        given, types: of the inputs, of the results.
        node: what calls other ranks, if it does.

    Raises:
        UnsizedError: a size is an extent.
    """

    buffers: tuple[int, ...]
    given: tuple[TensorType, ...]
    types: tuple[TensorType, ...]
    call: Call
    node: Node | None = None

    def __post_init__(self) -> None:
        for kind in (*self.given, *self.types):
            if any([type(n) is Extent for n in known(kind.shape)]):
                raise UnsizedError


def of_node(node: Node, buffers: Sequence[int]) -> HostPart:
    """The part of a node that calls Python.

    Args:
        buffers: those of its inputs, then those of its results.
    """
    into = writes_into(node)

    def call(source: Source | None, xs: Sequence[Array], ys: Sequence[Array]) -> None:
        here = at_line(node, source)
        if into is None:
            for y, found in zip(ys, evaluate_node(here, xs), strict=True):
                y[...] = found
            return
        try:
            into(xs, ys, **node.attrs)
        except WeftError as error:
            raise failed(error, here) from error.__cause__

    given = tuple([x.type for x in node.inputs])
    return HostPart(tuple(buffers), given, node.types, call, node)


def of_graph(graph: Graph, outputs: Sequence[Value], feeds: Sequence[Value]) -> HostPart:
    """The part that computes a whole graph on NumPy, for dtypes without kernels."""
    run = Interpretation(graph, outputs, feeds)

    def call(source: Source | None, xs: Sequence[Array], ys: Sequence[Array]) -> None:
        try:
            results = run(xs)
        except WeftError as error:
            node = next((n for n in graph.nodes if n.name == error.node), None)
            if node is None:
                raise
            told = str(error).replace(place(node), place(at_line(node, source)))
            raise type(error)(told) from error.__cause__
        for y, found in zip(ys, results, strict=True):
            y[...] = found

    given, types = [tuple([x.type for x in values]) for values in (feeds, outputs)]
    return HostPart(tuple(range(len(given) + len(types))), given, types, call)


def at_line(node: Node, source: Source | None) -> Node:
    """The node of a call that was made at another line."""
    if source is None:
        return node
    return Node(node.op, node.inputs, node.attrs, node.types, node.name, node.operands,
                source=source)  # fmt: skip
