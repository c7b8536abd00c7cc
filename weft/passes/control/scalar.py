"""Loops over a few numbers: one kernel runs all iterations, on one thread.

With launches, an iteration costs at least 30 ns. One kernel does many iterations and returns now
and then, so that a long loop can be interrupted.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.ir.dtype import int64
from weft.ir.function import Function
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import is_stack, known, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.control.scan import scan
from weft.ops.declaration import Alias, Elementwise, op_of
from weft.passes.launch import ScalarLoop, Scratch

MOST_NODES: Final = 200
"""Bodies with more nodes are better as several kernels."""


def scalar_loop(node: Node) -> ScalarLoop | None:
    """The loop, if it is over a few numbers."""
    attrs, is_scan = node.attrs, op_of(node) is scan
    condition: Function | None = None if is_scan else attrs["condition"]
    functions = [f for f in (attrs["body"], condition) if f is not None]
    values = (*node.inputs, *node.outputs)
    if any([is_stack(v.shape) for v in values]) or not all(map(_is_scalar, functions)):
        return None
    most = attrs["length"] if is_scan else attrs["maximum"]
    return ScalarLoop(
        node, attrs["body"], condition, attrs["carried"], attrs["mapped"] if is_scan else 0,
        -1 if most is None else most, is_scan and attrs["reverse"], Scratch(8), Scratch(1),
    )  # fmt: skip


def _is_scalar(function: Function) -> bool:
    values = [*function.inputs, *[v for n in function.nodes for v in n.outputs]]
    lowered = [op_of(n).lower for n in function.nodes if op_of(n) is not CONSTANT]
    return (
        len(function.nodes) <= MOST_NODES
        and all([isinstance(lower, Elementwise | Alias) for lower in lowered])
        and all([int(size(known(v.shape))) == 1 and _is_plain(v) for v in values])
    )


def _is_plain(value: Value) -> bool:
    """Whether registers hold the same as memory, which excludes numbers rounded when stored."""
    return not (value.dtype.is_floating and value.dtype.size == 2)


def nothing_done() -> Node:
    """The number of iterations per call, and whether there are more."""
    array = np.zeros((), int64.numpy)
    return Node(
        CONSTANT.name, (), {"value": Literal(array)}, (TensorType(int64, ()),), "iterations"
    )
