"""Examples that differ in the branch they take, or in when their loop ends.

A branch, or a turn of a loop, is computed for all examples of a batch, and its results are kept for
the active ones, those that take it. What is computed for the others must not be seen:

- Their cotangents are cut off where operands enter, since a cotangent of 0 times an infinite
  derivative is NaN, which no selection of results undoes.
- If it may raise an error or not end, or if an array that all examples share would sum up such
  NaNs, the others compute on the operands of the first active example, and no branch is computed
  without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.boundary.state import host_call
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.switch import switch as switch_op
from weft.ops.control.while_loop import while_loop as while_op
from weft.ops.declaration import (
    HOSTED,
    REGION,
    Composite,
    Opaque,
    catalogue,
    constant_of,
    inner_nodes,
    op_of,
)
from weft.ops.shape.creation import full

__all__ = ["confined", "exchanges", "guarded", "may_fail", "select", "taken", "widened"]


def select(chosen: Value, y: Value, z: Value) -> Value:
    """Selects rows of `y` for examples whose flag is set, else of `z`."""
    return catalogue.select(_beside(chosen, y), y, z)


def _beside(chosen: Value, y: Value) -> Value:
    """Flags of examples, shaped so that they broadcast with `y`."""
    rank = len(known(y.shape))
    return catalogue.reshape(chosen, shape=(*known(chosen.shape), *[1] * (rank - 1)))


def confined(function: Subgraph, mapped: Sequence[bool]) -> bool:
    """Whether only operands of active examples may reach a batched function.

    Args:
        mapped: which operands have the batch axis.
    """
    if exchanges(function):
        return False
    shared = [x for x, m in zip(function.inputs, mapped, strict=True) if not m]
    large = any([x.dtype.is_inexact and size(x.shape) > 1 for x in shared])
    return large or may_fail(function)


def exchanges(function: Subgraph) -> bool:
    """Whether a function exchanges values with other ranks: all take part, whatever they take."""
    return any(map(_is_exchange, function.nodes))


def _is_exchange(node: Node) -> bool:
    op = op_of(node)
    return (op.facts.ordered and op is not host_call) or any(map(_is_exchange, inner_nodes(node)))


def may_fail(function: Subgraph) -> bool:
    """Whether a function may raise an error, or never end, for some operands."""
    return any(map(_may_fail, function.nodes))


def _may_fail(node: Node) -> bool:
    op = op_of(node)
    if op is while_op:
        return True
    inner = inner_nodes(node)
    match op.lower:
        case Composite(expand) if not inner:
            attrs = {**op.attrs, **node.attrs}
            types = [v.type for v in node.data_inputs]
            inner = list(trace(lambda *xs: expand(*xs, **attrs), types).nodes)
        case Opaque(family, fault=fault) if family != REGION:
            if family == HOSTED or fault is not None:
                return True
        case _:
            pass
    return any(map(_may_fail, inner))


def widened(xs: Sequence[Value], mapped: Sequence[bool]) -> list[bool]:
    """`mapped`, but also with the batch axis for shared numbers that have derivatives.

    So each example has its own cotangent of them, which can be cut off.
    """
    pairs = zip(xs, mapped, strict=True)
    return [m or (x.dtype.is_inexact and size(x.shape) == 1) for x, m in pairs]


def guarded(
    active: Value, xs: Sequence[Value], mapped: Sequence[bool], strict: bool
) -> list[Value]:
    """Operands of a batched function that has no effect on examples that are not active.

    Args:
        active: a flag for each example.
        mapped: which operands have the batch axis.
        strict: the others get the operands of the first active example; there must be one.
    """
    pairs = zip(xs, mapped, strict=True)
    if not strict:
        return [_cut_off(active, x) if m and x.dtype.is_inexact else x for x, m in pairs]
    flags = catalogue.cast(active, dtype=int32)
    first = catalogue.reshape(catalogue.argmax(flags, axis=0), shape=(1,))
    return [select(active, x, _row(x, first)) if m else x for x, m in pairs]


def _cut_off(active: Value, x: Value) -> Value:
    """The same value, without cotangents of examples that are not active."""
    return select(active, x, catalogue.stop_gradient(x))


def _row(x: Value, first: Value) -> Value:
    """One row, as a constant."""
    rest = known(x.shape)[1:]
    zeros = constant_of(np.zeros(len(rest), first.dtype.numpy))
    start = catalogue.concatenate(first, zeros, axis=0) if rest else first
    return catalogue.stop_gradient(catalogue.dynamic_slice(x, start, sizes=(1, *rest)))


def taken(
    branch: Subgraph, active: Value, xs: Sequence[Value], mapped: Sequence[bool]
) -> Sequence[Value]:
    """Results of a batched branch for the active examples, the only ones that count.

    Args:
        mapped: which operands have the batch axis.
    """
    if not confined(branch, mapped):
        return inline(branch, guarded(active, xs, mapped, strict=False))

    def run(active: Value, *xs: Value) -> Sequence[Value]:
        return inline(branch, guarded(active, xs, mapped, strict=True))

    def skip(*_: Value) -> Sequence[Value]:
        kinds = branch.output_types
        return [full(known(t.shape), 0, t.dtype) for t in kinds]

    types = [active.type, *[x.type for x in xs]]
    branches = (trace(skip, types), trace(run, types))
    index = catalogue.cast(catalogue.any(active, axes=(0,)), dtype=int32)
    return switch_op.all(index, active, *xs, branches=branches)
