"""Batching rules of matmuls, convolutions and pooling.

Images are N, spatial..., C. If only the image has a batch axis, it is folded into N. If only the
weights have one, it is folded into their filters. If both have one, it is folded into the channels,
in groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.sequence.recurrent import lstm_sequence
from weft.transform.batching.job import Job, Table, entering, leading, moved

RULES: Final[Table] = {}
rule = entering(RULES)


@rule("matmul")
def _matmul(job: Job) -> Sequence[Value]:
    x, w = job.xs
    flags: tuple[bool, bool] = job.attrs["transpose_x"], job.attrs["transpose_y"]
    column = job.shapes[1][-2 if flags[1] else -1] == 1
    if column and not job.mapped[0] and [len(s) for s in job.shapes] == [2, 2]:
        # Flattened columns of a batch are the rows of one matrix.
        row = catalogue.reshape(w, shape=(job.size, 1, math.prod(job.shapes[1])))
        (y,) = job.again(row, x, transpose_x=False, transpose_y=not flags[0])
        return (catalogue.reshape(y, shape=(job.size, concrete(y)[-1], 1)),)
    rank = max(map(len, job.shapes))
    if not job.mapped[1] and len(job.shapes[1]) == 2:
        return job.again(x, w)
    return job.again(*job.aligned(rank))


@rule("attention")
def _attention(job: Job) -> Sequence[Value]:
    rank = max(map(len, job.shapes[:3]))
    q, *rest = job.aligned(rank)
    if not any(job.mapped[:2]):  # the scores, of q and k, have all leading dimensions
        q = leading(job.spread_one(0), job.size, job.shapes[0], rank)
    return job.again(q, *rest)


# Axes of a batch of images


def _folded(x: Value) -> Value:
    """Reshapes B, N, ... to B * N, ..."""
    b, n, *rest = concrete(x)
    return catalogue.reshape(x, shape=(b * n, *rest))


def _unfolded(y: Value, size: int) -> Value:
    n, *rest = concrete(y)
    return catalogue.reshape(y, shape=(size, n // size, *rest))


def _as_channels(x: Value) -> Value:
    """Reshapes B, ..., C to ..., B * C."""
    b, *rest, c = concrete(x)
    return catalogue.reshape(moved(x, 0, len(rest)), shape=(*rest, b * c))


def _from_channels(y: Value, size: int) -> Value:
    *rest, c = concrete(y)
    split = catalogue.reshape(y, shape=(*rest, size, c // size))
    return moved(split, len(rest), 0)


def _grouped(job: Job, shape: Any = None) -> Sequence[Value]:
    """Makes each example's channels a group."""
    attrs: dict[str, Any] = {} if shape is None else {"shape": shape}
    xs = map(_as_channels, job.spread())
    (y,) = job.again(*xs, groups=job.size * job.attrs["groups"], **attrs)
    return (_from_channels(y, job.size),)


@rule("conv")
def _conv(job: Job) -> Sequence[Value]:
    x, w = job.xs
    if not job.mapped[1]:
        return (_unfolded(job.again(_folded(x), w)[0], job.size),)
    if not job.mapped[0] and job.attrs["groups"] == 1:
        return (_from_channels(job.again(x, _as_channels(w))[0], job.size),)
    return _grouped(job)


@rule("conv_grad_input")
def _conv_grad_input(job: Job) -> Sequence[Value]:
    g, w = job.xs
    n, *rest, c = job.attrs["shape"]
    if not job.mapped[1]:
        (y,) = job.again(_folded(g), w, shape=(job.size * n, *rest, c))
        return (_unfolded(y, job.size),)
    return _grouped(job, (n, *rest, job.size * c))


@rule("conv_grad_weight")
def _conv_grad_weight(job: Job) -> Sequence[Value]:
    x, g = job.xs
    *rest, c, k = job.attrs["shape"]
    single = job.attrs["groups"] == 1
    if single and not job.mapped[0]:
        (y,) = job.again(x, _as_channels(g), shape=(*rest, c, job.size * k))
        return (_from_channels(y, job.size),)
    if single and not job.mapped[1]:
        (y,) = job.again(_as_channels(x), g, shape=(*rest, job.size * c, k))
        split = catalogue.reshape(y, shape=(*rest, job.size, c, k))
        return (moved(split, len(rest), 0),)
    return _grouped(job, (*rest, c, job.size * k))


@rule("avg_pool", "max_pool", "max_pool_gather", "max_pool_grad")
def _pool(job: Job) -> Sequence[Value]:
    (y,) = job.again(*map(_folded, job.spread()))
    return (_unfolded(y, job.size),)


@rule("avg_pool_grad")
def _avg_pool_grad(job: Job) -> Sequence[Value]:
    n, *rest = job.attrs["shape"]
    (y,) = job.again(_folded(job.xs[0]), shape=(job.size * n, *rest))
    return (_unfolded(y, job.size),)


# Sequences


@rule("lstm_sequence", "lstm_sequence_grad")
def _recurrent(job: Job) -> Sequence[Value] | None:
    """Folds examples into the sequences, if they share the weights."""
    weights = 1 if job.op is lstm_sequence else 2
    if job.mapped[weights]:
        return None
    first = job.attrs["batch_first"]
    xs = [
        x if i == weights else _as_sequences(job.spread_one(i), first) for i, x in enumerate(job.xs)
    ]
    return [_from_sequences(y, job.size, first) for y in job.again(*xs)]


def _as_sequences(x: Value, batch_first: bool) -> Value:
    """Reshapes B, N, ... to B * N, ..., or B, L, N, ... to L, B * N, ..."""
    if batch_first or len(concrete(x)) == 3:  # states have no time axis
        return _folded(x)
    b, steps, n, width = concrete(x)
    return catalogue.reshape(moved(x, 0, 1), shape=(steps, b * n, width))


def _from_sequences(y: Value, size: int, batch_first: bool) -> Value:
    if batch_first or len(concrete(y)) == 2:
        return _unfolded(y, size)
    steps, n, width = concrete(y)
    return moved(catalogue.reshape(y, shape=(steps, size, n // size, width)), 1, 0)
