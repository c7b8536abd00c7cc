"""Values replaced without the autograd graph noticing: under `no_grad()`, or through `.data`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.record.call.plan import function_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.ir.node import Value
from weft.ops.call import trace as traced
from weft.ops.declaration import catalogue


def with_history(value: Lazy, old: Lazy) -> Lazy:
    """`value`, with the autograd history of `old`."""
    before, trace.now.grad_mode = trace.now.grad_mode, True
    try:
        return trace.now.record(
            function_plan(_exchanged, (value.type, old.type), {}), (value, old)
        )[0]
    finally:
        trace.now.grad_mode = before


def _exchanged(value: Value, old: Value) -> Value:
    function = traced(_first, (value.type, old.type), _to_second)
    return catalogue.call(value, old, function=function)


def _first(value: Value, _: Value) -> Value:
    return catalogue.identity(value)


def _to_second(gs: Sequence[Any], _: Sequence[Value], __: Sequence[Value]) -> tuple[Any, Any]:
    return None, gs[0]
