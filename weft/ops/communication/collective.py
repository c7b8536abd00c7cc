"""Reductions over ranks.

A program runs them in the order of the calls on every rank; neither passes nor schedules change it.
The group is given by its number (`weft.transport.session`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import DistributedError
from weft.ir.dtype import DType
from weft.ir.node import Node, Value
from weft.ir.shape import is_static, known, size
from weft.ops.boundary.state import no_cases
from weft.ops.communication.exchange_log import logged, logged_into
from weft.ops.declaration import HOSTED, Array, Op, Opaque, catalogue, defop
from weft.ops.declaration.fact import Autocast, Facts
from weft.ops.shape.creation import zeros_like
from weft.transport import collective, session, shared
from weft.transport.group import Group
from weft.transport.reduction import check_reduction
from weft.transport.shared_call import SharedCall

ORDERED = Facts(autocast=Autocast.KEPT, ordered=True)


def group_of(number: int) -> Group:
    """The process group with this number.

    Raises:
        DistributedError: there is none, or the job has ended.
    """
    joined = session.current()
    found = None if joined is None else joined.groups.get(number)
    if found is None:
        raise DistributedError(f"there is no process group {number} (any more)")
    return found


def _dtypes(*dtypes: DType, reduction: str, **_: Any) -> tuple[DType, ...]:
    for dtype in dtypes:
        check_reduction(reduction, dtype.numpy)
    return dtypes


def _all_reduce(*xs: Array, reduction: str, group: int) -> tuple[Array, ...]:
    return reduced(group_of(group), xs, reduction)


def _all_reduce_into(
    xs: Sequence[Array], outs: Sequence[Array], reduction: str, group: int
) -> None:  # fmt: skip
    reduce_into(group_of(group), xs, outs, reduction)


def reduced(members: Group, xs: Sequence[Array], reduction: str) -> tuple[Array, ...]:
    """Reduce arrays over ranks; those of one dtype are sent as one vector."""
    found = [np.empty(x.shape, x.dtype) for x in xs]
    reduce_into(members, xs, found, reduction)
    return tuple(found)


def reduce_into(
    members: Group, xs: Sequence[Array], outs: Sequence[Array], reduction: str
) -> None:  # fmt: skip
    """Reduce arrays over ranks into `outs`, which may be the inputs; one vector for each dtype."""
    kinds = dict.fromkeys([x.dtype for x in xs])
    for dtype in kinds:
        pairs = [(x, y) for x, y in zip(xs, outs, strict=True) if x.dtype == dtype]
        own, found = zip(*pairs, strict=True)
        what = _what(reduction, len(own), sum([x.size for x in own]), dtype)
        collective.all_reduce_many(members, own, found, reduction, what)


def _native(node: Node) -> SharedCall | None:
    """The native call, if all arrays have one dtype and known sizes."""
    shapes, dtypes = [x.shape for x in node.inputs], {x.dtype for x in node.inputs}
    if len(dtypes) != 1 or not all(map(is_static, shapes)):
        return None
    (dtype,), reduction = dtypes, str(node.attrs["reduction"])
    sizes = [int(size(known(shape))) for shape in shapes]
    what = _what(reduction, len(sizes), sum(sizes), dtype.numpy)
    members = group_of(int(node.attrs["group"]))
    return shared.native_call(members, sizes, dtype.numpy, reduction, what)


@functools.cache
def _what(reduction: str, count: int, size: int, dtype: np.dtype[Any]) -> str:
    """The call's name in errors; cached, since making it takes as long as a small message."""
    arrays = "1 array" if count == 1 else f"{count} arrays"
    return f"all_reduce({reduction}) of {arrays}, {size} {dtype}"


def _all_reduce_vjp(gs: Any, ys: Any, *xs: Value, reduction: str, group: int) -> tuple[Value, ...]:
    """The gradient: every rank's result depends on every rank's input in the same way."""
    if reduction in ("sum", "mean"):
        return catalogue.all_reduce.all(*gs, reduction=reduction, group=group)
    totals = catalogue.all_reduce.all(*gs, reduction="sum", group=group)
    if reduction == "product":
        return tuple([g * y / x for g, y, x in zip(totals, ys, xs, strict=True)])
    found = zip(totals, ys, xs, strict=True)
    return tuple([catalogue.select(catalogue.equal(x, y), g, zeros_like(g)) for g, y, x in found])


def alike(*kinds: Any, **_: Any) -> tuple[Any, ...]:
    """Dtypes or shapes of results: those of the inputs."""
    return kinds


def exchange(
    name: str, *, reference: Callable[..., Any], vjp: Callable[..., Any],
    dtype: Callable[..., Any] = alike, shape: Callable[..., Any] = alike, inputs: str = "*xs",
    into: Callable[..., None] | None = None, native: Callable[[Node], Any] | None = None,
    partial: bool = True, compared: bool = True, facts: Facts = ORDERED, **attrs: Any,
) -> Op:  # fmt: skip
    """Declare a communication operation, which runs in program order in Python; see `defop`.

    Args:
        dtype, shape: of the results; those of the inputs by default.
        into, native: see `weft.ops.declaration.lowering.Opaque`.
        compared: see `weft.ops.communication.exchange_log`.
        facts: those of the operation; it is ordered unless they say that it is late.
        attrs: attribute names with their defaults.
    """
    noted = None if into is None else logged_into(into, reference, compared)
    return defop(
        name, inputs=inputs, attrs=attrs, dtype=dtype, shape=shape, vjp=vjp,
        reference=logged(reference, compared), lower=Opaque(HOSTED, into=noted, native=native),
        cases=no_cases, outputs=-1, stateful=True, partial=partial, facts=facts,
    )  # fmt: skip


all_reduce = exchange(
    "all_reduce", dtype=_dtypes, reference=_all_reduce, vjp=_all_reduce_vjp,
    into=_all_reduce_into, native=_native, reduction="sum", group=0,
)  # fmt: skip
