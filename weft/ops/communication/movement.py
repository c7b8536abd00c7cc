"""Broadcast: a value of one rank on all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.communication.collective import exchange, group_of
from weft.ops.declaration import Array, catalogue
from weft.transport import collective


def _broadcast(x: Array, root: int, group: int, gradient: str) -> tuple[Array, ...]:
    del gradient
    found = np.array(x, order="C")
    what = f"broadcast from member {root} of {found.dtype}{list(found.shape)}"
    collective.broadcast(group_of(group), found, root, what)
    return (found,)


def _vjp(gs: Any, ys: Any, x: Value, root: int, group: int, gradient: str) -> tuple[Value, ...]:
    """The gradient: all results depend only on the root's input."""
    total = catalogue.all_reduce.all(gs[0], reduction=gradient, group=group)[0]
    return (catalogue.where_member.all(total, member=root, group=group)[0],)


broadcast_from = exchange(
    "broadcast_from", inputs="x", reference=_broadcast, vjp=_vjp, root=0, group=0, gradient="sum"
)
"""One member's value on all; its gradient is the `gradient`, sum or mean, of the members'."""


def _where_member(x: Array, member: int, group: int) -> tuple[Array, ...]:
    return (
        np.array(x, order="C") if group_of(group).index == member else np.zeros(x.shape, x.dtype),
    )


def _where_vjp(gs: Any, ys: Any, x: Value, member: int, group: int) -> tuple[Value, ...]:
    return (where_member.all(gs[0], member=member, group=group)[0],)


where_member = exchange(
    "where_member", inputs="x", reference=_where_member, vjp=_where_vjp, member=0,
    group=0,
)  # fmt: skip
"""The value on one member of a group, zeros on the others."""
