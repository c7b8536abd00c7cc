"""Small integers that a body captures, once they are known: they may be shapes inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.function import functions, map_functions
from weft.ir.node import Node, Value
from weft.ops.base import Op, constant_of, op_of
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.scan import scan
from weft.ops.control.switch import switch
from weft.ops.control.while_loop import while_loop
from weft.ops.state import CONSTANT

MOST: Final = 64
"""Elements up to which a body gets a copy of an array."""

Known = Mapping[int, np.ndarray[Any, Any]]


def with_known_inputs(node: Node, inputs: Sequence[Value]) -> Node:
    """A branch or loop whose bodies hold the known integers among its inputs; others as they are.

    Args:
        inputs: what the node's inputs are now.
    """
    first = _first_fixed(op_of(node), node.attrs)
    if first is None:
        return node
    shift = 1 if op_of(node) is switch else 0
    data = enumerate(inputs[: len(node.data_inputs)])
    small = {i - shift: v.node for i, v in data if i >= first and _is_small(v)}
    known = {i: n.attrs["value"].array for i, n in small.items()}
    return map_functions(node, lambda f: _bound(f, known)) if known else node


def _is_small(value: Value) -> bool:
    constant = value.dtype.is_integer and op_of(value.node) is CONSTANT
    return constant and value.node.attrs["value"].array.size <= MOST


def _first_fixed(op: Op, attrs: Mapping[str, Any]) -> int | None:
    """The first input that is the same in all turns."""
    if op is switch:
        return 1
    if op is scan:
        return attrs["carried"] + attrs["mapped"]
    return attrs["carried"] if op is while_loop else None


def _bound(function: Subgraph, known: Known) -> Subgraph:
    """The function with constants in place of some inputs, which it takes and does not read."""
    if function.backward is not None or not any(map(_needs, function.nodes)):
        return function

    def run(*xs: Value) -> list[Value]:
        env = dict(zip(function.inputs, xs, strict=True))
        env |= {function.inputs[i]: constant_of(array) for i, array in known.items()}
        for node in function.nodes:
            used = list(dict.fromkeys(node.inputs))
            inner = with_known_inputs(node, [env[v] for v in node.inputs])
            single = Subgraph(tuple(used), inner.outputs, (inner,))
            env.update(zip(node.outputs, inline(single, [env[v] for v in used]), strict=True))
        return [env[y] for y in function.outputs]

    return trace(run, function.input_types)


def _needs(node: Node) -> bool:
    """Whether an attribute of a node, or of one inside it, is an input."""
    return bool(node.operands) or any([any(map(_needs, f.nodes)) for f in functions(node)])
