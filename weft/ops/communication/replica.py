"""Converts between a replicated value (outside) and a value of each member of a group (inside).

Gradients outside are those of one loss, gradients inside those of the sum of all members' losses.
So gradients of inputs are summed, and those of outputs start at the first member. Each is the
other's gradient, so gradients of any order exist:

    shared_by_members (in)  <->  sum_of_members (out)
    given_to_first (in)     <->  from_first (out)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DistributedError
from weft.ir.node import Value
from weft.ops.boundary.state import no_cases
from weft.ops.communication.collective import alike, exchange, group_of, reduced
from weft.ops.declaration import Array, Composite, Op, catalogue, defop
from weft.ops.declaration.fact import AS_GIVEN
from weft.transport import collective
from weft.transport.group import Group, bytes_of

_LEAST_BITS: Final = 5
"""Other summation orders and kernels change the last bits, a missing reduction the first."""


def _by(name: str, **attrs: Any) -> Callable[..., tuple[Value, ...]]:
    """A gradient that is another operation."""

    def vjp(gs: Sequence[Value], ys: Any, *xs: Value, group: int, **_: Any) -> tuple[Value, ...]:
        return getattr(catalogue, name).all(*gs, group=group, **attrs)

    return vjp


def _plain(name: str, gradient: str) -> Op:
    """The identity with a custom gradient."""
    return defop(
        name, inputs="*xs", attrs={"group": 0}, dtype=alike, shape=alike, reference=alike,
        vjp=_by(gradient), lower=Composite(alike), cases=no_cases, outputs=-1, partial=True,
        facts=AS_GIVEN,
    )  # fmt: skip


def _sum(*xs: Array, group: int) -> tuple[Array, ...]:
    return reduced(group_of(group), xs, "sum")


def _to_first(*xs: Array, group: int) -> tuple[Array, ...]:
    first = group_of(group).index == 0
    return tuple([np.array(x) if first else np.zeros(x.shape, x.dtype) for x in xs])


shared_by_members = _plain("shared_by_members", "sum_of_members")
first_of_members = _plain("first_of_members", "given_to_first")
"""Like `from_first`, for values known to be equal."""
sum_of_members = exchange("sum_of_members", reference=_sum, vjp=_by("shared_by_members"), group=0)
given_to_first = exchange("given_to_first", reference=_to_first, vjp=_by("from_first"), group=0)


def _from_first(*xs: Array, group: int, check: bool) -> tuple[Array, ...]:
    members = group_of(group)
    own = [np.asarray(x, order="C") for x in xs]
    flat = np.concatenate([bytes_of(x) for x in own])
    what = f"the first rank's {len(xs)} arrays, {flat.size} bytes"
    collective.broadcast(members, flat, 0, what)
    found: list[Array] = []
    begin = 0
    for x in own:
        found.append(flat[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape))
        begin += x.nbytes
    if check:
        _refuse_others(members, [_differs(*pair) for pair in zip(found, own, strict=True)])
    return tuple(found)


def _differs(first: Array, own: Array) -> bool:
    """Whether values differ from those of the first member by more than rounding."""
    if first.tobytes() == own.tobytes():
        return False
    if first.dtype.kind in "biu":
        return True
    a, b = (x.astype(np.result_type(x.dtype, np.float32), copy=False) for x in (first, own))
    room = 2.0**-_LEAST_BITS * float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
    return not np.allclose(a, b, rtol=0.0, atol=room, equal_nan=True)


def _refuse_others(members: Group, differ: list[bool]) -> None:
    """Raise on all members if the results of any differ from the first one's."""
    rows = np.zeros((members.size, len(differ)), np.uint8)
    what = f"comparison of {len(differ)} arrays"
    collective.all_gather(members, np.array(differ, np.uint8), list(rows), what)
    wrong = np.argwhere(rows)
    if len(wrong):
        index, result = wrong[0]
        raise DistributedError(
            f"expected result {result} to be the same on all ranks, as it is not divided along "
            f"their axis, but rank {members.ranks[index]} has other values than rank "
            f"{members.ranks[0]}; reduce it (psum, pmean), or name the axis in out_specs"
        )


from_first = exchange(
    "from_first", reference=_from_first, vjp=_by("given_to_first"), group=0,
    check=False,
)  # fmt: skip
"""The first member's values, on all; with `check`, raise if others differ by more than rounding."""
