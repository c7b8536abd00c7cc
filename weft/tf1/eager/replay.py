"""Computes the nodes of one operation at once: by NumPy, or by a call that Weft records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from weft.eager.record.call.plan import op_plan
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import wrap
from weft.ir.function import functions
from weft.ir.node import Node, Value
from weft.ops.boundary.state import (
    CONSTANT,
    assign,
    counter,
    group,
    host_call,
    read,
    variable,
)
from weft.ops.declaration import Op, op_of
from weft.ops.resource.host_value import host_value, text_array
from weft.tf1.eager.tensor import SMALL, Array, Held, array_in, held_array, lazy_in
from weft.transform.interpreter import evaluate_node, operand_attribute

_HOSTED: Final = (host_call, host_value)


class Store(Protocol):
    """Where variables and counters are."""

    def load(self, key: str) -> Held:
        """The value of a variable."""
        ...

    def save(self, key: str, value: Held) -> None:
        """Set a variable."""
        ...

    def count(self, key: str, start: int | None) -> int:
        """The next number of a counter."""
        ...


def replay(nodes: Sequence[Node], known: dict[Value, Held], store: Store) -> None:
    """Compute all values of nodes, in order, into `known`."""
    for node in nodes:
        if node.outputs and node.outputs[0] in known:
            continue
        found = _values(node, known, store)
        known.update(zip(node.outputs, found, strict=True))


def _values(node: Node, known: Mapping[Value, Held], store: Store) -> Sequence[Held]:
    op = op_of(node)
    if op is CONSTANT:
        return [held_array(node.attrs["value"].array)]
    if op is variable or op is group:
        return [np.zeros(())] * len(node.outputs)  # the handle itself is never computed with
    if op is read:
        return [store.load(node.inputs[0].node.attrs["key"])]
    if op is assign:
        value = known[node.inputs[1]]
        store.save(node.inputs[0].node.attrs["key"], value)
        return [store.load(node.inputs[0].node.attrs["key"])]
    if op is counter:
        return [np.array(store.count(node.attrs["key"], node.attrs.get("start", 0)), np.uint64)]
    inputs = [known[v] for v in node.inputs]
    if op in _HOSTED:
        return _called(node, op, inputs, store)
    return computed(node, op, inputs)


def computed(node: Node, op: Op, inputs: Sequence[Held]) -> Sequence[Held]:
    """The outputs of an operation without effects."""
    hosted = [v.dtype.is_hosted for v in (*node.inputs, *node.outputs)]
    if any(hosted) or (_is_small(inputs) and not functions(node) and not op.stateful):
        return [held_array(y) for y in evaluate_node(node, [array_in(x) for x in inputs])]
    count = len(node.inputs) - len(node.operands)
    attrs: Any = node.attrs
    if node.operands:
        told = [operand_attribute(array_in(x)) for x in inputs[count:]]
        attrs = {**attrs, **dict(zip(node.operands, told, strict=True))}
    lazies = tuple([lazy_in(x) for x in inputs[:count]])
    plan = op_plan(op, [x.type for x in lazies], attrs)
    return [wrap(y) for y in trace.now.record(plan, lazies)]


def _is_small(inputs: Sequence[Held]) -> bool:
    if not inputs:
        return False
    return all([isinstance(x, np.ndarray) and x.size <= SMALL for x in inputs])


def _called(node: Node, op: Op, inputs: Sequence[Held], store: Store) -> Sequence[Held]:
    """The results of a function of the user's, or of texts; with its gradient, if it has one."""
    attrs = {**op.attrs, **node.attrs}
    arrays = [array_in(x) for x in inputs]
    if op is host_call:
        found: Any = host_call.reference(*arrays, **attrs)
    else:
        found = attrs["function"](*([store] if attrs["with_state"] else []), *arrays)
    if len(node.outputs) == 1 and not isinstance(found, list | tuple):
        found = [found]
    pairs = zip(found if node.outputs else (), node.outputs, strict=True)
    results: list[Array] = [_array(y, v) for y, v in pairs]
    tracked = any([not isinstance(x, np.ndarray) and x.lazy.tracked for x in inputs])
    if attrs["gradient"] is None or not tracked:
        return [held_array(y) for y in results]
    lazies = tuple([lazy_in(x) for x in inputs])
    given = {
        "function": lambda *_: tuple(results), "dtypes": tuple(attrs["dtypes"]),
        "shapes": tuple([y.shape for y in results]), "gradient": attrs["gradient"],
        "title": attrs["title"],
    }  # fmt: skip
    plan = op_plan(host_call, [x.type for x in lazies], given)
    return [wrap(y) for y in trace.now.record(plan, lazies)]


def _array(result: Any, value: Value) -> Array:
    if value.dtype.is_hosted:
        return text_array(result)
    return np.asarray(result, value.dtype.numpy)
