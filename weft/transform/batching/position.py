"""Batching rules of operations that read or write at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.shape.creation import iota
from weft.transform.batching.job import Job, Table, entering, moved

RULES: Final[Table] = {}
rule = entering(RULES)


@rule("gather")
def _gather(job: Job) -> Sequence[Value]:
    axis, dims = job.attrs["axis"], job.attrs["batch_dims"]
    x, indices = job.xs
    if dims == 0 and not job.mapped[0]:
        (y,) = job.again(x, indices)
        return (moved(y, axis, 0),)
    if dims == 0 and not job.mapped[1]:
        return job.again(x, indices, axis=axis + 1)
    return job.again(*job.spread(), axis=axis + 1, batch_dims=dims + 1)


@rule("scatter_add", "scatter_max", "scatter_min", "scatter_multiply", "scatter_set")
def _scatter(job: Job) -> Sequence[Value]:
    """Scatters into the rows of all examples in one array; out-of-bounds indices stay so."""
    x, indices, updates = job.spread()
    rows, *rest = job.shapes[0]
    found = catalogue.cast(indices, dtype=int64)
    inside = catalogue.logical_and(
        catalogue.greater_equal(found, constant_of(0, int64)),
        catalogue.less(found, constant_of(rows, int64)),
    )
    ones = (1,) * len(job.shapes[1])
    first = iota(shape=(job.size, *ones), axis=0, dtype=int64) * rows
    places = catalogue.select(inside, found + first, constant_of(-1, int64))
    (y,) = job.again(catalogue.reshape(x, shape=(job.size * rows, *rest)), places, updates)
    return (catalogue.reshape(y, shape=(job.size, rows, *rest)),)


@rule("check")
def _check(job: Job) -> Sequence[Value]:
    """Reports an error if any example has one."""
    wrong = catalogue.max(job.xs[1], axes=(0,)) if job.mapped[1] else job.xs[1]
    return job.again(job.spread_one(0), wrong)


# Slices whose start differs between examples: take_along_axis, axis by axis


def _starts(start: Value, room: Sequence[int]) -> Value:
    """Starts clamped into bounds, as int64."""
    low = constant_of(np.zeros((), np.int64))
    high = constant_of(np.array(room, np.int64))
    return catalogue.clip(catalogue.cast(start, dtype=int64), low, high)


def _along(start: Value, axis: int, count: int, rank: int, sign: int) -> Value:
    """`start[b, axis] + i` (or `i - start[b, axis]`) for `i < count`, along `axis` of examples."""
    size = concrete(start)[0]
    column = catalogue.slice(start, begin=(0, axis), end=(size, axis + 1))
    first = catalogue.reshape(column, shape=(size, *[1] * rank))
    shape = tuple(count if i == axis else 1 for i in range(rank))
    steps = iota(shape=(1, *shape), axis=axis + 1, dtype=int64)
    return steps + first if sign > 0 else steps - first


@rule("dynamic_slice")
def _dynamic_slice(job: Job) -> Sequence[Value]:
    x, start = job.xs
    dims, sizes = job.shapes[0], job.attrs["sizes"]
    if not job.mapped[1]:
        whole = catalogue.concatenate(_zero(start), start, axis=0)
        return job.again(x, whole, sizes=(job.size, *sizes))
    places = _starts(start, [d - n for d, n in zip(dims, sizes, strict=True)])
    y = job.spread_one(0)
    for axis, (d, n) in enumerate(zip(dims, sizes, strict=True)):
        if d != n:
            found = _along(places, axis, n, len(dims), 1)
            y = catalogue.take_along_axis(y, found, axis=axis + 1)
    return (y,)


def _zero(start: Value) -> Value:
    """The start along the batch axis: one zero."""
    return constant_of(np.zeros(1, start.dtype.numpy))


@rule("dynamic_update_slice")
def _dynamic_update_slice(job: Job) -> Sequence[Value]:
    start = job.xs[2]
    dims, sizes = job.shapes[0], job.shapes[1]
    if not job.mapped[2]:
        whole = catalogue.concatenate(_zero(start), start, axis=0)
        return job.again(job.spread_one(0), job.spread_one(1), whole)
    if 0 in sizes:
        return (job.spread_one(0),)
    places = _starts(start, [d - n for d, n in zip(dims, sizes, strict=True)])
    new, inside = job.spread_one(1), None
    for axis, (d, n) in enumerate(zip(dims, sizes, strict=True)):
        if d != n:
            distance = _along(places, axis, d, len(dims), -1)
            kept = catalogue.clip(distance, constant_of(0, int64), constant_of(n - 1, int64))
            new = catalogue.take_along_axis(new, kept, axis=axis + 1)
            hit = catalogue.equal(distance, kept)
            inside = hit if inside is None else catalogue.logical_and(inside, hit)
    return (new if inside is None else catalogue.select(inside, new, job.spread_one(0)),)
