"""The plan of a backward pass: one recorded call, whose nodes are added when it is expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.eager.record.call.pattern import Pattern, shared_pattern
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.call.plan import Plan, recall, remember
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.ops.declaration.memory_check import check_room
from weft.ops.shape.creation import zeros_like
from weft.transform.gradient import Cotangent, gradients


def gradient_plan(types: Sequence[TensorType], given: tuple[bool, ...], stop: int) -> Plan:
    """The plan of a backward pass.

    Its results are the gradients with respect to the `xs`, zeros for each that none reaches.

    Args:
        types: of its inputs: the `ys`, the given cotangents, the `xs`, and `stop` values to be
            treated as constants.
        given: for each of the `ys`, whether its cotangent is.
    """
    key = ("gradients", given, stop, *map(id, types))
    found = recall(key)
    if found is not None:
        return found
    count, first, last = len(given), len(given) + sum(given), len(types) - stop

    def expand(values: Sequence[Any], static: Mapping[str, Any]) -> Sequence[Cotangent]:
        del static
        starts = iter(values[count:first])
        grad_ys = [next(starts) if g else None for g in given]
        targets = values[first:last]
        found = gradients(values[:count], targets, grad_ys, stop=values[last:])
        return [zeros_like(x) if g is None else g for g, x in zip(found, targets, strict=True)]

    xs = tuple(types[first:last])
    for dtype, shape in xs:
        check_room("gradients", known(shape), dtype)
    if any(map(device_of, types)):
        pattern = Pattern("gradients", xs, expand)
    else:
        whole = ("gradients", given, stop, *[(t.dtype, len(known(t.shape))) for t in types])
        pattern = shared_pattern(whole, "gradients", xs, expand, called="gradients")
    pattern.follows = count
    return remember(key, Plan(pattern, types, xs, {"given": given, "stop": stop}))
