"""The gradients of branches and loops in NumPy, turn by turn, for the interpreter.

Only what has run is differentiated, at the shapes that it had, so shapes may differ from turn to
turn, and branches that are not taken need not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.node import Node, Value
from weft.ops.call import Subgraph, call
from weft.ops.control.scan import STACKED, scan
from weft.ops.control.switch import switch
from weft.ops.declaration import BY_BODY, NO_GRADIENT, Array, Op, op_of
from weft.ops.declaration.attribute import operand_attribute
from weft.transform.interpreter import evaluate_node

Slopes = list[Array | None]
Rule = Callable[
    [Op, Sequence[Array | None], Sequence[Array], Sequence[Array], Mapping[str, Any]], Slopes
]
"""Cotangents of an operation's inputs, from those of its outputs, the outputs and the inputs."""


@dataclass(frozen=True)
class TurnByTurn:
    """Differentiates branches and loops of arrays.

    Attributes:
        rule: for all other operations.
    """

    rule: Rule

    def region(
        self, op: Op, gs: Sequence[Array | None], xs: Sequence[Array], attrs: Mapping[str, Any]
    ) -> Slopes:
        """Cotangents of the inputs of a branch or loop from those of its outputs."""
        if op is switch:
            branches = attrs["branches"]
            branch = branches[min(max(int(xs[0]), 0), len(branches) - 1)]
            return [None, *self._function(branch, gs, xs[1:])]
        turns = _scan_turns(xs, attrs) if op is scan else _while_turns(xs, attrs)
        return self._loop(gs, xs, attrs, turns)

    def _loop(
        self, gs: Sequence[Array | None], xs: Sequence[Array], attrs: Mapping[str, Any],
        turns: Sequence[tuple[int, Sequence[Array]]],
    ) -> Slopes:  # fmt: skip
        """Backwards through the turns: the row of each, and the inputs that its body had."""
        carried, mapped = attrs["carried"], attrs.get("mapped", 0)
        back: Slopes = list(gs[:carried])
        rows = [np.zeros_like(x) for x in xs[carried : carried + mapped]]
        fixed: Slopes = [None] * (len(xs) - carried - mapped)
        for t, inputs in reversed(turns):
            ends = [*back, *[None if g is None else g[t] for g in gs[carried:]]]
            found = self._function(attrs["body"], ends, inputs)
            back = found[:carried]
            for row, g in zip(rows, found[carried : carried + mapped], strict=True):
                row[t] = 0 if g is None else g
            fixed = [_plus(a, b) for a, b in zip(fixed, found[carried + mapped :], strict=True)]
        return [*back, *rows, *fixed]

    def _function(
        self, function: Subgraph, gs: Sequence[Array | None], xs: Sequence[Array]
    ) -> Slopes:
        """Cotangents of a function's inputs; it runs again for what its gradient reads."""
        now: dict[Value, Array] = dict(zip(function.inputs, xs, strict=True))
        for node in function.nodes:
            now.update(zip(node.outputs, evaluate_node(node, _at(now, node.inputs)), strict=True))
        if function.backward is not None:
            ys = _at(now, function.outputs)
            return self.rule(call, gs, ys, xs, {"function": function})
        slopes: dict[Value, Array] = {}
        _accumulate(slopes, function.outputs, gs)
        for node in reversed(function.nodes):
            ends = [slopes.get(y) for y in node.outputs]
            if any([g is not None for g in ends]):
                _accumulate(slopes, node.data_inputs, self._node(node, ends, now))
        return [slopes.get(x) for x in function.inputs]

    def _node(self, node: Node, gs: Sequence[Array | None], now: Mapping[Value, Array]) -> Slopes:
        op, xs = op_of(node), _at(now, node.data_inputs)
        if op.vjp is NO_GRADIENT:
            return [None] * len(xs)
        told = [operand_attribute(x) for x in _at(now, node.inputs[len(xs) :])]
        attrs = {**op.attrs, **node.attrs, **dict(zip(node.operands, told, strict=True))}
        if op.vjp is BY_BODY:
            return self.region(op, gs, xs, attrs)
        if op is call:
            return self._function(attrs["function"], gs, xs)
        return self.rule(op, gs, _at(now, node.outputs), xs, attrs)


def _at(now: Mapping[Value, Array], values: Sequence[Value]) -> list[Array]:
    return [now[v] for v in values]


def _plus(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return np.asarray(a + b)


def _accumulate(
    slopes: dict[Value, Array], values: Sequence[Value], gs: Sequence[Array | None]
) -> None:
    for value, g in zip(values, gs, strict=True):
        total = _plus(slopes.get(value), g)
        if total is not None and value.dtype.is_inexact:
            slopes[value] = total


def _turn(body: Subgraph, inputs: Sequence[Array]) -> list[Array]:
    now: dict[Value, Array] = dict(zip(body.inputs, inputs, strict=True))
    for node in body.nodes:
        now.update(zip(node.outputs, evaluate_node(node, _at(now, node.inputs)), strict=True))
    return _at(now, body.outputs)


def _while_turns(
    xs: Sequence[Array], attrs: Mapping[str, Any]
) -> list[tuple[int, Sequence[Array]]]:
    carried, most = attrs["carried"], attrs["maximum"]
    found: list[tuple[int, Sequence[Array]]] = []
    inputs = list(xs)
    while (most is None or len(found) < most) and _turn(attrs["condition"], inputs)[0]:
        found.append((len(found), inputs))
        inputs = [*_turn(attrs["body"], inputs)[:carried], *xs[carried:]]
    return found


def _scan_turns(xs: Sequence[Array], attrs: Mapping[str, Any]) -> list[tuple[int, Sequence[Array]]]:
    carried, mapped, length = attrs["carried"], attrs["mapped"], attrs["length"]
    arrays, rest = xs[carried : carried + mapped], xs[carried + mapped :]
    order = range(len(arrays[0]) if length == STACKED else length)
    found: list[tuple[int, Sequence[Array]]] = []
    carry = list(xs[:carried])
    for t in reversed(order) if attrs["reverse"] else order:
        inputs = [*carry, *[x[t] for x in arrays], *rest]
        found.append((t, inputs))
        carry = _turn(attrs["body"], inputs)[:carried]
    return found


__all__ = ["TurnByTurn"]
