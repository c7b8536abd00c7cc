"""Partial sums of ranks that compute one loss: two operations, each the other's gradient.

`sum_partial` reduces partial sums; its result is replicated, and so is the gradient.
`sum_gradients` passes a replicated value to sharded work: each rank's gradient is a partial sum.
(f and g of Shoeybi et al., "Megatron-LM", 2019.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import alike, exchange, group_of, reduced
from weft.ops.declaration import Array, Composite, defop
from weft.ops.declaration.fact import AS_GIVEN


def _sum(x: Array, group: int) -> tuple[Array, ...]:
    return reduced(group_of(group), (x,), "sum")


def _sum_vjp(gs: Any, ys: Any, x: Value, group: int) -> tuple[Value, ...]:
    return sum_gradients.all(gs[0], group=group)


sum_partial = exchange("sum_partial", inputs="x", reference=_sum, vjp=_sum_vjp, group=0)
"""The sum over ranks; the gradient of each partial sum is that of the sum."""


def _same(x: Any, group: int) -> tuple[Any, ...]:
    return (x,)


def _gradients_vjp(gs: Any, ys: Any, x: Value, group: int) -> tuple[Value, ...]:
    return sum_partial.all(gs[0], group=group)


sum_gradients = defop(
    "sum_gradients",
    inputs="x",
    attrs={"group": 0},
    dtype=alike,
    shape=alike,
    reference=lambda x, group: (np.array(x),),
    vjp=_gradients_vjp,
    lower=Composite(_same),
    cases=no_cases,
    outputs=-1,
    partial=True,
    facts=AS_GIVEN,
)
"""The identity; its gradient is the sum of the ranks' gradients."""
