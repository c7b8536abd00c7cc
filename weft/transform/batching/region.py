"""Batching rules of branches and loops: batched bodies, and masks where examples diverge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.node import TensorType, Value
from weft.ir.shape import is_stack, known
from weft.ops.base import catalogue
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.scan import scan as scan_op
from weft.ops.control.switch import switch as switch_op
from weft.ops.control.while_loop import while_loop as while_op
from weft.transform.batching.job import Job, Same, moved, repeated

Batch = Callable[[Subgraph, Sequence[bool], int, bool], Any]
"""`weft.transform.vmap.batch`; its result also tells which outputs have the batch axis."""


def _spread(function: Any, wanted: Sequence[bool], size: int) -> Subgraph:
    """A batched function whose wanted outputs have the batch axis, shared ones included."""

    def run(*xs: Value) -> list[Value]:
        rows = zip(inline(function, xs), function.mapped, wanted, strict=True)
        return [repeated(y, size) if w and not m else y for y, m, w in rows]

    return trace(run, function.input_types)


def _told(ys: Sequence[Value], mapped: Sequence[bool]) -> list[Value | Same]:
    return [y if m else Same(y) for y, m in zip(ys, mapped, strict=True)]


# switch


def switch(job: Job, batch: Batch) -> list[Value | Same]:
    """Branches on an index that all examples share; else runs all branches and selects rows."""
    index, *xs = job.xs
    flags = job.mapped[1:]
    branches = [batch(b, flags, job.size, job.fresh_bits) for b in job.attrs["branches"]]
    columns = zip(*[b.mapped for b in branches], strict=True)
    wanted = [job.mapped[0] or any(column) for column in columns]
    spread = [_spread(b, wanted, job.size) for b in branches]
    if not job.mapped[0]:
        return _told(switch_op.all(index, *xs, branches=tuple(spread)), wanted)
    rows = [inline(b, xs) for b in spread]
    last = len(rows) - 1
    found = rows[last]
    for i in range(last - 1, -1, -1):
        chosen = catalogue.less_equal(index, i)  # a negative index selects branch 0
        found = [_select(chosen, y, z) for y, z in zip(rows[i], found, strict=True)]
    return list(found)


def _select(chosen: Value, y: Value, z: Value) -> Value:
    """Selects rows of `y` for examples whose flag is set, else of `z`."""
    rank = len(known(y.shape))
    flags = catalogue.reshape(chosen, shape=(*known(chosen.shape), *[1] * (rank - 1)))
    return catalogue.select(flags, y, z)


# scan


def scan(job: Job, batch: Batch) -> list[Value | Same]:
    """Scans all examples at once; stacks have the batch axis behind the steps."""
    carried, body = job.attrs["carried"], job.attrs["body"]

    def batched(function: Subgraph, flags: Sequence[bool]) -> Any:
        return batch(function, flags, job.size, job.fresh_bits)

    flags, inner = _settled(body, carried, job.mapped, batched)
    wanted = [*flags[:carried], *inner.mapped[carried:]]
    first = carried + job.attrs["mapped"]
    xs = [
        repeated(x, job.size) if f and not m else x
        for x, f, m in zip(job.xs[:carried], flags, job.mapped, strict=False)
    ]
    arrays = zip(job.xs[carried:first], job.mapped[carried:first], strict=True)
    xs += [moved(x, 0, 1) if m and not is_stack(x.shape) else x for x, m in arrays]
    attrs: dict[str, Any] = {**job.attrs, "body": _spread(inner, wanted, job.size)}
    found = scan_op.all(*xs, *job.xs[first:], **attrs)
    behind = zip(found[carried:], wanted[carried:], strict=True)
    stacks = [moved(y, 1, 0) if w and not is_stack(y.shape) else y for y, w in behind]
    return _told([*found[:carried], *stacks], wanted)


def _settled(
    body: Subgraph, carried: int, mapped: Sequence[bool], batched: Callable[..., Any]
) -> tuple[list[bool], Any]:
    """Which inputs are batched once the carry has converged, and the batched body."""
    flags = list(mapped)
    while True:
        found = batched(body, flags)
        both = [a or b for a, b in zip(flags[:carried], found.mapped[:carried], strict=True)]
        if both == flags[:carried]:
            return flags, found
        flags[:carried] = both


# while_loop


def while_loop(job: Job, batch: Batch) -> list[Value | Same]:
    """Loops while the condition holds for any example; finished examples keep their carry.

    The first stack tells the gradient which iterations count (`weft.transform.region_gradient`):
    one flag per example, where examples end at different times.
    """
    carried, condition, body = (job.attrs[name] for name in ("carried", "condition", "body"))

    def batched(function: Subgraph, flags: Sequence[bool]) -> Any:
        return batch(function, flags, job.size, job.fresh_bits)

    flags, inner = _settled(body, carried, job.mapped, batched)
    holds = batched(condition, flags)
    several = holds.mapped[0]
    if several and not all(flags[:carried]):
        flags[:carried] = [True] * carried
        inner, holds = batched(body, flags), batched(condition, flags)
    wanted = [*flags[:carried], *inner.mapped[carried:]]
    iteration = _spread(inner, wanted, job.size)
    types: list[TensorType] = list(iteration.input_types)

    def masked(*xs: Value) -> list[Value]:
        (alive,) = inline(holds, xs)
        found = inline(iteration, xs)
        pairs = zip(found[:carried], xs, strict=False)
        kept = [_select(alive, new, old) for new, old in pairs]
        return [*kept, *[alive for _ in found[carried : carried + 1]], *found[carried + 1 :]]

    def any_holds(*xs: Value) -> Value:
        return catalogue.any(inline(holds, xs)[0], axes=(0,))

    if several:
        iteration, holds = trace(masked, types), trace(any_holds, types)
        wanted[carried : carried + 1] = [True for _ in wanted[carried : carried + 1]]
    inits = zip(job.xs, flags, job.mapped, strict=True)
    xs = [repeated(x, job.size) if f and not m else x for x, f, m in inits]
    attrs: dict[str, Any] = {**job.attrs, "body": iteration, "condition": holds}
    found = while_op.all(*xs, **attrs)
    return _told(found, wanted)
