"""What one rank has, on all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.base import HOSTED, Array, Opaque, catalogue, defop
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import ORDERED, group_of
from weft.transport import collective


def _broadcast(x: Array, root: int, group: int) -> tuple[Array, ...]:
    found = np.array(x, order="C")
    what = f"broadcast from member {root} of {found.dtype}{list(found.shape)}"
    collective.broadcast(group_of(group), found, root, what)
    return (found,)


def _dtypes(dtype: DType, **_: Any) -> tuple[DType, ...]:
    return (dtype,)


def _shapes(shape: Shape, **_: Any) -> tuple[Shape, ...]:
    return (shape,)


def _vjp(gs: Any, ys: Any, x: Value, root: int, group: int) -> tuple[Value, ...]:
    """All ranks' results depend on the root's input; the others' inputs have no influence."""
    total = catalogue.all_reduce.all(gs[0], reduction="sum", group=group)[0]
    return (catalogue.where_member.all(total, member=root, group=group)[0],)


broadcast_from = defop(
    "broadcast_from",
    inputs="x",
    attrs={"root": 0, "group": 0},
    dtype=_dtypes,
    shape=_shapes,
    reference=_broadcast,
    vjp=_vjp,
    lower=Opaque(HOSTED),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=ORDERED,
)


def _where_member(x: Array, member: int, group: int) -> tuple[Array, ...]:
    return (
        np.array(x, order="C") if group_of(group).index == member else np.zeros(x.shape, x.dtype),
    )


def _where_vjp(gs: Any, ys: Any, x: Value, member: int, group: int) -> tuple[Value, ...]:
    return (where_member.all(gs[0], member=member, group=group)[0],)


where_member = defop(
    "where_member",
    inputs="x",
    attrs={"member": 0, "group": 0},
    dtype=_dtypes,
    shape=_shapes,
    reference=_where_member,
    vjp=_where_vjp,
    lower=Opaque(HOSTED),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=ORDERED,
)
"""The value on one member of a group, zeros on the others."""
