"""Batching rules of shape operations, reductions, sorts: every axis moves back by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Batching
from weft.ops.declaration.rule import same_shape
from weft.ops.indexing.subscript import LAST
from weft.transform.batching.job import Job, Same, Table, entering, leading

RULES: Final[Table] = {}
rule = entering(RULES)


def elementwise(job: Job) -> Sequence[Value]:
    """Any elementwise operation."""
    if job.op.shape is same_shape and len(job.xs) > 1:
        return job.again(*job.spread())
    return job.again(*job.aligned())


def reduction(job: Job) -> Sequence[Value]:
    """Any operation on one input that has `axes`."""
    return job.again(*job.xs, axes=tuple(a + 1 for a in job.attrs["axes"]))


def _along(job: Job) -> Sequence[Value]:
    return job.again(*job.spread(), axis=job.attrs["axis"] + 1)


def _trailing(job: Job) -> Sequence[Value]:
    """Rules of operations on trailing axes, with any number of leading axes."""
    return job.again(*job.spread())


DECLARED: Final[dict[Batching, Callable[[Job], Sequence[Value]]]] = {
    Batching.BROADCAST: elementwise,
    Batching.AXES: reduction,
    Batching.AXIS: _along,
    Batching.LEADING: _trailing,
}
"""Rules from the operations' declarations."""


@rule("column_moments")
def _column_moments(job: Job) -> Sequence[Value]:
    """Folds the examples into the columns."""
    (x,), rank = job.spread(), len(job.shapes[0])
    *rows, columns = job.shapes[0]
    inner = catalogue.transpose(x, perm=(*range(1, rank), 0, rank))
    beside = catalogue.reshape(inner, shape=(*rows, job.size * columns))
    return [catalogue.reshape(y, shape=(job.size, columns)) for y in job.again(beside)]


@rule("barrier")
def _barrier(job: Job) -> Sequence[Value | Same]:
    pairs = zip(job.again(*job.xs), job.mapped, strict=True)
    return [y if mapped else Same(y) for y, mapped in pairs]


@rule("shape_of", "size_of", "rank_of")
def _size(job: Job) -> Sequence[Same]:
    """The size of one example."""
    example = np.broadcast_to(np.zeros(()), job.shapes[0])
    return (Same(constant_of(job.op.reference(example, **job.attrs))),)


@rule("reshape")
def _reshape(job: Job) -> Sequence[Value]:
    return job.again(*job.xs, shape=(job.size, *job.attrs["shape"]))


@rule("broadcast_to")
def _broadcast_to(job: Job) -> Sequence[Value]:
    shape: tuple[int, ...] = job.attrs["shape"]
    return job.again(*job.aligned(len(shape)), shape=(job.size, *shape))


@rule("sum_to")
def _sum_to(job: Job) -> Sequence[Value]:
    shape: tuple[int, ...] = job.attrs["shape"]
    ones = (1,) * (len(job.shapes[0]) - len(shape))
    (y,) = job.again(*job.xs, shape=(job.size, *ones, *shape))
    return (catalogue.reshape(y, shape=(job.size, *shape)),)


@rule("transpose")
def _transpose(job: Job) -> Sequence[Value]:
    return job.again(*job.xs, perm=(0, *(p + 1 for p in job.attrs["perm"])))


@rule("tile")
def _tile(job: Job) -> Sequence[Value]:
    reps: tuple[int, ...] = job.attrs["reps"]
    return job.again(*job.aligned(len(reps)), reps=(1, *reps))


@rule("pad", "mirror_pad")
def _pad(job: Job) -> Sequence[Value]:
    return job.again(*job.xs, paddings=((0, 0), *job.attrs["paddings"]))


def _whole(job: Job) -> dict[str, Any]:
    """The bounds of a slice that takes the whole batch axis."""
    first = {"begin": 0, "end": LAST, "strides": 1}
    return {name: (first[name], *job.attrs[name]) for name in first}


@rule("slice")
def _slice(job: Job) -> Sequence[Value]:
    return job.again(*job.xs, **_whole(job))


@rule("unslice")
def _unslice(job: Job) -> Sequence[Value]:
    return job.again(*job.xs, shape=(job.size, *job.attrs["shape"]), **_whole(job))


@rule("slice_update")
def _slice_update(job: Job) -> Sequence[Value]:
    rank = len(job.shapes[0])
    update = job.xs[1]
    if job.mapped[1]:
        update = leading(update, job.size, job.shapes[1], rank)
    return job.again(job.spread_one(0), update, **_whole(job))


@rule("layer_norm")
def _layer_norm(job: Job) -> Sequence[Value] | None:
    """The rule where all examples share scale and offset."""
    return None if any(job.mapped[1:]) else job.again(*job.xs)


@rule("elected")
def _elected(job: Job) -> Sequence[Value]:
    return job.again(*job.spread(), batch=job.attrs["batch"] + 1)
