"""Batching rules of branches and loops.

Bodies are batched. Where examples take different branches, or end at different times,
`weft.transform.batching.divergence` keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.dtype import bool_, int32
from weft.ir.node import Value
from weft.ir.shape import is_stack, size
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.scan import scan as scan_op
from weft.ops.control.switch import switch as switch_op
from weft.ops.control.while_loop import while_loop as while_op
from weft.ops.declaration import catalogue, constant_of
from weft.ops.shape.creation import full
from weft.transform.batching.divergence import (
    confined,
    exchanges,
    guarded,
    may_fail,
    select,
    taken,
    widened,
)
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
    """One branch, if all examples share the index; otherwise as many as examples take."""
    if job.mapped[0]:
        return _diverging(job, batch)
    index, *xs = job.xs
    flags = job.mapped[1:]
    branches = [batch(b, flags, job.size, job.fresh_bits) for b in job.attrs["branches"]]
    columns = zip(*[b.mapped for b in branches], strict=True)
    wanted = [any(column) for column in columns]
    spread = [_spread(b, wanted, job.size) for b in branches]
    return _told(switch_op.all(index, *xs, branches=tuple(spread)), wanted)


def _diverging(job: Job, batch: Batch) -> list[Value | Same]:
    """Runs each branch for the examples that take it, and selects rows of the results."""
    index, *given = job.xs
    flags = widened(given, job.mapped[1:])
    xs = _repeated(given, flags, job.mapped[1:], job.size)
    last = len(job.attrs["branches"]) - 1
    number = catalogue.clip(index, constant_of(0, int32), constant_of(last, int32))
    found: Sequence[Value] = ()
    for i in range(last, -1, -1):
        branch = batch(job.attrs["branches"][i], flags, job.size, job.fresh_bits)
        rows = _spread(branch, [True] * len(branch.mapped), job.size)
        active = catalogue.equal(number, constant_of(i, int32))
        ys = taken(rows, active, xs, flags)
        found = [select(active, y, z) for y, z in zip(ys, found, strict=True)] if found else ys
    return list(found)


def _repeated(
    xs: Sequence[Value], wanted: Sequence[bool], mapped: Sequence[bool], size: int
) -> list[Value]:
    """Values with the batch axis where it is wanted."""
    rows = zip(xs, wanted, mapped, strict=True)
    return [repeated(x, size) if w and not m else x for x, w, m in rows]


# scan


def scan(job: Job, batch: Batch) -> list[Value | Same]:
    """Scans all examples at once; stacks have the batch axis behind the steps."""
    carried, body = job.attrs["carried"], job.attrs["body"]

    def batched(function: Subgraph, flags: Sequence[bool]) -> Any:
        return batch(function, flags, job.size, job.fresh_bits)

    flags, inner = _converged(body, carried, job.mapped, batched)
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


def _converged(
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
    """Loops while the condition holds for any example.

    The first stack tells the gradient which iterations count (`weft.transform.region_gradient`):
    one flag per example, where examples end at different times.
    """
    carried, condition, body = (job.attrs[name] for name in ("carried", "condition", "body"))

    def batched(function: Subgraph, flags: Sequence[bool]) -> Any:
        return batch(function, flags, job.size, job.fresh_bits)

    flags, inner = _converged(body, carried, job.mapped, batched)
    holds = batched(condition, flags)
    if holds.mapped[0]:
        return _EndingApart(job, batched, flags).run()
    wanted = [*flags[:carried], *inner.mapped[carried:]]
    xs = _repeated(job.xs, flags, job.mapped, job.size)
    attrs: dict[str, Any] = {**job.attrs, "body": _spread(inner, wanted, job.size)}
    return _told(while_op.all(*xs, **{**attrs, "condition": holds}), wanted)


class _EndingApart:
    """A loop whose examples end at different times: finished ones keep their carry.

    Values without derivatives that are the same for all examples still going on, such as a counter,
    stay without the batch axis. So does what is computed from them alone: positions in arrays, and
    random numbers, which differ between examples. Beside each of them the loop carries the value
    that each example ended with, and last of all a flag for each example: whether it goes on.

    Args:
        flags: which inputs have the batch axis once the carry has converged.
    """

    def __init__(self, job: Job, batched: Callable[..., Any], flags: Sequence[bool]) -> None:
        self.job = job
        self.carried: int = job.attrs["carried"]
        carry = zip(job.xs[: self.carried], flags, strict=False)
        wide = [m or x.dtype.is_inexact for x, m in carry]
        wide += widened(job.xs[self.carried :], flags[self.carried :])
        self.flags, inner = _converged(job.attrs["body"], self.carried, wide, batched)
        self.holds = batched(job.attrs["condition"], self.flags)
        self.stacked: list[bool] = [*inner.mapped[self.carried :]]
        wanted = [*self.flags[: self.carried], *self.stacked]
        self.turn = _spread(inner, wanted, job.size)
        free = self._is_small() and not exchanges(self.turn)
        self.strict = free or confined(self.turn, self.flags)
        body: Subgraph = job.attrs["body"]
        same = [x is y for x, y in zip(body.inputs, body.outputs[: self.carried], strict=False)]
        self.fixed = [i for i, s in enumerate(same) if s]
        self.shared = [i for i, s in enumerate(same) if not s and not self.flags[i]]
        # A finished example keeps its own values, with which the condition has been computed, but
        # not those that are shared.
        self.apart = bool(self.shared) and may_fail(self.holds)

    def _is_small(self) -> bool:
        """Whether captured values of examples, but for numbers, are no more than the carry.

        Then replacing rows of both costs little in each turn. What a gradient saves is finite
        then, for derivatives of the gradient.
        """
        inputs = zip(self.turn.inputs, self.flags, strict=True)
        sizes = [size(x.shape) if m else 0 for x, m in inputs]
        captured = [n for n in sizes[self.carried :] if n > self.job.size]
        return sum(captured) <= sum(sizes[: self.carried])

    def run(self) -> list[Value | Same]:
        """The results of the loop."""
        job, count, extra = self.job, self.carried, len(self.shared) + 1
        xs = _repeated(job.xs, self.flags, job.mapped, job.size)
        ends = [repeated(xs[i], job.size) for i in self.shared]
        inits = [*xs[:count], *ends, full((job.size,), True, bool_)]
        types = [x.type for x in (*inits, *xs[count:])]
        attrs: dict[str, Any] = {
            **job.attrs,
            "carried": len(inits),
            "condition": trace(self._any, types),
            "body": trace(self._next, types),
        }
        found = while_op.all(*inits, *xs[count:], **attrs)
        carry = dict(enumerate(found[:count]))
        carry |= dict(zip(self.shared, found[count:], strict=False))
        stacks = found[count + extra :]
        carry |= {i: job.xs[i] for i in self.fixed}
        told = [True, *self.stacked[1:]] if self.stacked else []
        mapped = [i not in self.fixed or job.mapped[i] for i in range(count)]
        return _told([*carry.values(), *stacks], [*mapped, *told])

    def _parts(self, xs: Sequence[Value]) -> tuple[list[Value], Sequence[Value], Value]:
        """The inputs of the turn, the values that examples ended with, who goes on."""
        count, flag = self.carried, self.carried + len(self.shared)
        before, inputs = xs[flag], [*xs[:count], *xs[flag + 1 :]]
        seen = guarded(before, inputs, self.flags, strict=True) if self.apart else inputs
        (holds,) = inline(self.holds, seen)
        return inputs, xs[count:flag], catalogue.logical_and(before, holds)

    def _any(self, *xs: Value) -> Value:
        return catalogue.any(self._parts(xs)[2], axes=(0,))

    def _next(self, *xs: Value) -> list[Value]:
        inputs, ends, active = self._parts(xs)
        found = inline(self.turn, guarded(active, inputs, self.flags, self.strict))
        rows = zip(found[: self.carried], inputs, self.flags, strict=False)
        carry = [select(active, new, old) if m else new for new, old, m in rows]
        news = [repeated(found[i], self.job.size) for i in self.shared]
        ends = [select(active, new, old) for new, old in zip(news, ends, strict=True)]
        stacks = found[self.carried :]
        return [*carry, *ends, active, *[active for _ in stacks[:1]], *stacks[1:]]
