"""Branches that a step takes for certain: their nodes are computed in place of the `switch`.

So does a step in which the other branch does not fit the shapes: `pad(x, 4 - n)` where `n` is 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import Attrs, Node, Value
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.known_input import small_array
from weft.ops.declaration import constant_of, op_of
from weft.transform.gradient import vjp


class TakenBranches:
    """The functions whose nodes a step computes in place of the nodes that hold them.

    Args:
        now: the value in the step of a value of the user's graph.
    """

    def __init__(self, now: Callable[[Value], Value]) -> None:
        self._now: Final = now
        self._inside: dict[Node, tuple[Subgraph, Sequence[Value]]] = {}
        self._functions: set[int] = set()
        self._gradients: dict[Node, Node] = {}  # deferred ones, and what stands for them
        self.outer: dict[Value, Value] = {}
        """For each input of such a function, the value that it is given."""

    def add(self, node: Node, function: Subgraph, inputs: Sequence[Value]) -> bool:
        """Notes that the function is computed in place of the node; false if it already was.

        Its values stand for those of one node only.
        """
        if id(function) in self._functions:
            return False
        self._functions.add(id(function))
        self._inside[node] = function, inputs
        self.outer |= zip(function.inputs, inputs, strict=True)
        return True

    def gradient(self, node: Node) -> Node:
        """A deferred gradient of such a node, as that of a call of the function; else the node.

        The same for the gradient of a gradient.
        """
        if op_of(node) is not vjp:
            return node
        count = sum(node.attrs["given"]) + node.attrs["outputs"]
        forward = node.inputs[count - 1].node
        if forward in self._inside:
            function = self._inside[forward][0]
            attrs: dict[str, Any] = {"function": self._specialized(function)}
            found = _of(node, "call", attrs, count, function.inputs)
        elif forward in self._gradients:
            inner = self._gradients[forward]
            found = _of(node, "vjp", inner.attrs, count, inner.inputs)
        else:
            return node
        self._gradients[node] = found
        return found

    def _specialized(self, function: Subgraph) -> Subgraph:
        """The function with known integers as constants, and the branches that it takes."""
        env: dict[Value, Value] = {}

        def run(*xs: Value) -> list[Value]:
            self._replay(function, xs, env)
            return [env[y] for y in function.outputs]

        return trace(run, [self._now(v).type for v in function.inputs])

    def _replay(self, function: Subgraph, xs: Sequence[Value], env: dict[Value, Value]) -> None:
        self._keep(function.inputs, xs, env)
        for node in function.nodes:
            if node in self._inside:
                inner, inputs = self._inside[node]
                self._replay(inner, [env[v] for v in inputs], env)
                found: Sequence[Value] = [env[y] for y in inner.outputs]
            else:
                used = tuple(dict.fromkeys(node.inputs))
                found = inline(Subgraph(used, node.outputs, (node,)), [env[v] for v in used])
            self._keep(node.outputs, found, env)

    def _keep(self, olds: Sequence[Value], news: Sequence[Value], env: dict[Value, Value]) -> None:
        for old, new in zip(olds, news, strict=True):
            known = small_array(self._now(old))
            env[old] = new if known is None else constant_of(np.asarray(known))


def _of(node: Node, op: str, attrs: Attrs, count: int, inputs: Sequence[Value]) -> Node:
    """A deferred gradient of another operation with other data inputs, after `count` inputs."""
    told = {
        **node.attrs,
        "op": op,
        "attrs": tuple(attrs.items()),
        "floating": tuple([v.dtype.is_inexact for v in inputs]),
    }
    given = (*node.inputs[:count], *inputs)
    return Node("vjp", given, told, node.types, node.name, source=node.source)


__all__ = ["TakenBranches"]
