"""Interprets functions of values by the NumPy references, prepared once for many iterations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.ir.dtype import as_dtype
from weft.ir.function import Function
from weft.ir.node import Node, TensorType, Value
from weft.ops.declaration import Array, Op, op_of
from weft.ops.declaration.attribute import operand_attribute
from weft.ops.declaration.numeric import HALVES, unwidened

Run = Callable[[Sequence[Array]], list[Array]]


def prepared(function: Function, fast: bool = False) -> Run:
    """The function as a function of arrays.

    Args:
        fast: use the `fast` form of operations that have one, as for eager programs; otherwise the
            references.

    An error inside names the node and the user's line.
    """
    slots: dict[Value, int] = {v: i for i, v in enumerate(function.inputs)}
    initial: list[Any] = [None] * len(slots)
    steps: list[tuple[Node, Callable[..., Any], list[int], int, bool]] = []
    for node in function.nodes:
        first = len(initial)
        for i, value in enumerate(node.outputs):
            slots[value] = first + i
            initial.append(None)
        op = op_of(node)
        call = _bound(op, node, fast)
        if not node.inputs and not op.stateful:  # the same in every run
            initial[first:] = _several(call(), op.outputs == 1)
        else:
            steps.append((node, call, [slots[v] for v in node.inputs], first, op.outputs == 1))
    outputs = [slots[v] for v in function.outputs]

    def run(arrays: Sequence[Array]) -> list[Array]:
        held = initial.copy()
        held[: len(arrays)] = arrays
        for node, call, inputs, first, single in steps:
            try:
                found = call(*[held[i] for i in inputs])
            except WeftError as error:
                raise type(error)(f"{node.op}: {error}: {node.describe()}") from error.__cause__
            except (ValueError, IndexError) as error:  # NumPy's, of arrays that do not fit
                _check(node, [held[i] for i in inputs], error)
                raise
            if single:
                held[first] = np.asarray(found)
            else:
                held[first : first + len(found)] = _several(found, False)
        return [held[i] for i in outputs]

    return run


def _check(node: Node, arrays: Sequence[Array], error: Exception) -> None:
    """Raises what the operation's own rules say of these arrays, if they refuse them."""
    count = len(node.data_inputs)
    told = map(operand_attribute, arrays[count:])
    attrs = {**op_of(node).attrs, **node.attrs, **dict(zip(node.operands, told, strict=True))}
    types = tuple([TensorType(as_dtype(x.dtype), x.shape) for x in arrays[:count]])
    try:
        op_of(node).derive(types, attrs)
    except WeftError as refusal:
        raise type(refusal)(f"{node.op}: {refusal}: {node.describe()}") from error


def _several(found: Any, single: bool) -> list[Array]:
    return [np.asarray(y) for y in ((found,) if single else found)]


def _bound(op: Op, node: Node, fast: bool) -> Callable[..., Any]:
    """The function that computes a node from arrays of its inputs."""
    function = op.reference
    if fast and not any([v.dtype in HALVES for v in node.inputs]):
        function = unwidened(op.reference) if op.fast is None else op.fast
    attrs = {**op.attrs, **node.attrs}
    if not node.operands:
        return functools.partial(function, **attrs) if attrs else function
    count = len(node.data_inputs)

    def call(*arrays: Array) -> Any:
        supplied = map(operand_attribute, arrays[count:])
        return function(
            *arrays[:count], **{**attrs, **dict(zip(node.operands, supplied, strict=True))}
        )

    return call
