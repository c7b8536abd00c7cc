"""Forward mode: tangents of values from the tangents of their inputs.

They are one recorded call, which adds the tangents to the graph when it is expanded. Custom
functions have their own `jvp`, so there it is cut into several calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.eager.record.call.plan import Plan, plan_of, recall, remember
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.backward import History, zeros
from weft.eager.tensor.autograd.custom_function import Custom
from weft.ir.node import TensorType, Value
from weft.ops.shape.creation import zeros_like
from weft.transform.forward import pushforward
from weft.transform.gradient import Cotangent


def push(
    ys: Sequence[Lazy], xs: Sequence[Lazy], tangents: Sequence[Lazy], past: History, tracked: bool
) -> tuple[Lazy, ...]:
    """Record the tangents of `ys` from those of `xs`.

    Args:
        past: the history of `ys`.
        tracked: whether gradients may flow back through the tangents.
    """
    moves = dict(zip(xs, tangents, strict=True))
    with Setting("grad_mode", tracked):
        for group in _calls(past, xs):
            call = group[0].call
            sources = [x for x in call.inputs if x is not None]
            given = dict(zip(sources, _record(sources, moves), strict=True))
            found = call.push([None if x is None else given[x] for x in call.inputs])
            moves.update({y: found[y.index] for y in group if y.index in found})
        moving = [y for y in ys if y.tracked]
        moved = iter(_record(moving, moves) if moving else ())
        return tuple([next(moved) if y.tracked else zeros(y) for y in ys])


def _calls(past: History, xs: Sequence[Lazy]) -> list[list[Custom]]:
    """Results of custom functions on the way, grouped by call, earliest first."""
    if not any([type(y) is Custom for y in past.values]):
        return []
    groups: dict[int, list[Custom]] = {}
    for y in past.towards(xs).values:
        if isinstance(y, Custom) and y in past.values and y not in xs and y.record is not None:
            groups.setdefault(y.record.serial, []).append(y)
    return [groups[serial] for serial in sorted(groups)]


def _record(ys: Sequence[Lazy], moves: Mapping[Lazy, Lazy]) -> tuple[Lazy, ...]:
    plan = _plan([y.type for y in ys], [x.type for x in moves])
    return trace.now.record(plan, (*ys, *moves, *moves.values()))


def _plan(ys: Sequence[TensorType], xs: Sequence[TensorType]) -> Plan:
    key = ("pushforward", tuple(map(id, ys)), tuple(map(id, xs)))
    found = recall(key)
    if found is not None:
        return found
    n, m = len(ys), len(xs)

    def expand(*values: Value) -> Sequence[Cotangent]:
        outputs = values[:n]
        moved = pushforward(outputs, values[n : n + m], values[n + m :])
        return [zeros_like(y) if t is None else t for t, y in zip(moved, outputs, strict=True)]

    found = plan_of("pushforward", (*ys, *xs), ys, expand)
    found.pattern.follows = found.follows = n
    return remember(key, found)
