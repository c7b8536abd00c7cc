"""Substitutes known small integers that a body captures, as they may be shapes inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.function import Function, changed, functions
from weft.ir.graph import current_graph
from weft.ir.node import Attrs, Node, Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.scan import scan
from weft.ops.control.switch import switch
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import Op, constant_of, op_of
from weft.ops.declaration.attribute import is_complete, known_value
from weft.ops.shape.creation import rank_of, shape_of, size_of

MOST: Final = 64
"""Elements up to which a body gets a copy of an array."""

OF_SHAPES: Final = frozenset({shape_of, size_of, rank_of})
"""Operations that read their input's shape, but no values."""

Known = Mapping[int, np.ndarray[Any, Any]]


def with_known_inputs(node: Node, inputs: Sequence[Value]) -> Node:
    """A branch or loop with known integer inputs substituted in its bodies; other nodes unchanged.

    Args:
        inputs: the current inputs of the node.
    """
    if not _needs(node):
        return node
    attrs = known_attributes(op_of(node), node.attrs, inputs[: len(node.data_inputs)])
    return node if attrs is node.attrs else node.with_attrs(attrs)


def known_attributes(op: Op, attrs: Attrs, data: Sequence[Value]) -> Attrs:
    """Attributes of a branch or loop, with bodies as in `with_known_inputs`."""
    first = _first_fixed(op, attrs)
    if first is None:
        return attrs
    whole = op.normal(*[v.shape for v in data], **attrs)  # shapes inside may be such sizes, too
    shift = 1 if op is switch else 0
    small = {i - shift: small_array(v) for i, v in enumerate(data) if i >= first}
    known = {i: array for i, array in small.items() if array is not None}
    return {name: changed(whole[name], lambda f: _bound(f, known)) for name in attrs}


def small_array(value: Value) -> np.ndarray[Any, Any] | None:
    """A few integers, if they are known."""
    if not value.dtype.is_integer:
        return None
    if op_of(value.node) is CONSTANT:
        array = value.node.attrs["value"].array
        return array if array.size <= MOST else None
    known = known_value(value)
    return np.asarray(known, value.dtype.numpy) if is_complete(known) else None


def _first_fixed(op: Op, attrs: Mapping[str, Any]) -> int | None:
    """The index of the first loop-invariant input."""
    if op is switch:
        return 1
    if op is scan:
        return attrs["carried"] + attrs["mapped"]
    return attrs["carried"] if op is while_loop else None


def _bound(function: Subgraph, known: Known) -> Subgraph:
    """The function with constants in place of some inputs, which stay as unused parameters."""
    if function.backward is not None or not any(map(_needs, function.nodes)):
        return function

    def run(*xs: Value) -> list[Value]:
        env = dict(zip(function.inputs, xs, strict=True))
        env |= {function.inputs[i]: constant_of(array) for i, array in known.items()}
        for node in function.nodes:
            env.update(zip(node.outputs, _again(node, env), strict=True))
        return [env[y] for y in function.outputs]

    return trace(run, function.input_types)


def _again(node: Node, env: Mapping[Value, Value]) -> Sequence[Value]:
    """The outputs of the node on other inputs; operands that are known become attributes."""
    data = tuple([env[v] for v in node.data_inputs])
    told = [known_value(env[v]) for v in node.inputs[len(data) :]]
    if node.operands and all(map(is_complete, told)):
        with current_graph().on_behalf_of(node):
            attrs = {**node.attrs, **dict(zip(node.operands, told, strict=True))}
            return op_of(node).node(data, attrs).outputs
    used = list(dict.fromkeys(node.inputs))
    inner = with_known_inputs(node, [env[v] for v in node.inputs])
    return inline(Subgraph(tuple(used), inner.outputs, (inner,)), [env[v] for v in used])


def inputs_of_shapes(node: Node) -> list[int]:
    """The inputs of a branch or loop that are integers on which inner shapes depend."""
    first = _first_fixed(op_of(node), node.attrs)
    if first is None or not _needs(node):
        return []
    shift = 1 if op_of(node) is switch else 0
    found = {i + shift for f in functions(node) for i in _behind_shapes(f)}
    return sorted(i for i in found if i >= first)


def _behind_shapes(function: Function) -> set[int]:
    """The inputs of a body that are integers on which attributes of its nodes depend."""
    waiting: list[Value] = []
    for node in function.nodes:
        waiting += node.inputs[len(node.data_inputs) :]
        waiting += [node.inputs[i] for i in inputs_of_shapes(node)]
    seen: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value not in seen and value.dtype.is_integer:
            seen.add(value)
            waiting += value.node.inputs if op_of(value.node) not in OF_SHAPES else ()
    return {i for i, v in enumerate(function.inputs) if v in seen}


def _needs(node: Node) -> bool:
    """Whether an attribute of a node, or of one inside it, is an input."""
    return bool(node.operands) or any([any(map(_needs, f.nodes)) for f in functions(node)])
