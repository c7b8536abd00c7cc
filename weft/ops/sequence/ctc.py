"""Connectionist temporal classification (CTC): likelihoods of unaligned label sequences.

Source: Graves et al., "Connectionist Temporal Classification" (2006), section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.call import trace
from weft.ops.control.scan import scan
from weft.ops.declaration import BY_EXPANSION, Array, Case, Composite, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts

NEVER: Final = -1e30
"""The log probability of impossible paths; finite, so that gradients are not NaN."""


def _dtype(logs: DType, labels: DType, steps: DType, lengths: DType, **_: Any) -> DType:
    for name, kind in (("labels", labels), ("steps", steps), ("lengths", lengths)):
        if kind is not int64:
            raise DTypeError(f"{name}: expected int64, got {kind}")
    return logs


def _shape(logs: Shape, labels: Shape, steps: Shape, lengths: Shape, *, blank: int) -> Shape:
    assert logs is not None and labels is not None
    n = logs[1]
    if len(logs) != 3 or len(labels) != 2 or not compatible(labels[:1], (n,)):
        raise ShapeError(
            f"expected logs (T, N, C) and labels (N, S), got {show(logs)} and {labels}"
        )
    for name, shape in (("steps", steps), ("lengths", lengths)):
        if not compatible(shape, (n,)):
            raise ShapeError(f"{name}: expected shape ({n},), got {show(shape)}")
    return (n,)


# In NumPy


def _reference(logs: Array, labels: Array, steps: Array, lengths: Array, *, blank: int) -> Array:
    n, size = labels.shape
    places = np.full((n, 2 * size + 1), blank)
    places[:, 1::2] = labels
    skips = np.zeros(places.shape, bool)
    skips[:, 2:] = (places[:, 2:] != blank) & (places[:, 2:] != places[:, :-2])
    alpha = np.full(places.shape, NEVER, logs.dtype)
    alpha[:, 0] = 0.0  # before the first step, ahead of the first blank
    for t, now in enumerate(logs):
        one, two = np.full_like(alpha, NEVER), np.full_like(alpha, NEVER)
        one[:, 1:], two[:, 2:] = alpha[:, :-1], alpha[:, :-2]
        moved = np.logaddexp(np.logaddexp(alpha, one), np.where(skips, two, NEVER))
        moved = moved + np.take_along_axis(now, places, axis=1)
        alpha = np.where((t < steps)[:, None], moved, alpha)
    ends = np.abs(np.arange(places.shape[1]) - (2 * lengths[:, None] - 0.5)) < 1
    return np.logaddexp.reduce(np.where(ends, alpha, NEVER), axis=1).astype(logs.dtype)


# In operations


def _expand(logs: Value, labels: Value, steps: Value, lengths: Value, *, blank: int) -> Value:
    count, n, _ = known(logs.shape)
    places = _with_blanks(labels, blank)
    size = known(places.shape)[1]
    index = catalogue.broadcast_to(catalogue.expand_dims(places, axis=0), shape=(count, n, size))
    emitted = catalogue.take_along_axis(logs, index, axis=2)
    place = catalogue.iota(shape=(1, size), axis=1, dtype=int64)
    never = constant_of(NEVER, logs.dtype)
    first = catalogue.select(catalogue.equal(place, constant_of(0, int64)), 0 * never, never)
    alpha = catalogue.broadcast_to(first, shape=(n, size))
    time = catalogue.iota(shape=(count,), axis=0, dtype=int64)
    inputs = (alpha, emitted, time, _skips(places, blank), catalogue.expand_dims(steps, axis=-1))
    types = [v.type for v in inputs]
    for i in (1, 2):
        types[i] = type(types[i])(types[i].dtype, known(types[i].shape)[1:])
    alpha = scan(*inputs, body=trace(_step, types), length=count, carried=1, mapped=2)
    last = catalogue.expand_dims(lengths * 2, axis=-1)
    ends = catalogue.logical_or(catalogue.equal(place, last), catalogue.equal(place, last - 1))
    return catalogue.logsumexp(catalogue.select(ends, alpha, never), axes=(-1,))


def _step(alpha: Value, emitted: Value, time: Value, skips: Value, steps: Value) -> Value:
    """One time step: a path stays, or advances by one label, or by two if allowed."""
    never = constant_of(NEVER, alpha.dtype)
    stay = catalogue.logaddexp(alpha, _later(alpha, 1))
    skip = catalogue.select(skips, _later(alpha, 2), never)
    moved = catalogue.logaddexp(stay, skip) + emitted
    return catalogue.select(catalogue.less(time, steps), moved, alpha)


def _with_blanks(labels: Value, blank: int) -> Value:
    """Labels (N, S) with blanks around and between them: (N, 2 S + 1)."""
    n, size = known(labels.shape)
    row = catalogue.broadcast_to(constant_of(blank, labels.dtype), shape=(n, size, 1))
    pairs = catalogue.concatenate(row, catalogue.expand_dims(labels, axis=-1), axis=-1)
    pairs = catalogue.reshape(pairs, shape=(n, 2 * size))
    return catalogue.pad(pairs, paddings=((0, 0), (0, 1)), value=blank)


def _later(x: Value, by: int) -> Value:
    """`x` shifted right by `by`; new elements have probability 0."""
    n, size = known(x.shape)
    kept = catalogue.slice(x, begin=(0, 0), end=(n, max(size - by, 0)))
    return catalogue.pad(kept, paddings=((0, 0), (min(by, size), 0)), value=NEVER)


def _skips(places: Value, blank: int) -> Value:
    """Where a label may follow the previous one without a blank between."""
    n, size = known(places.shape)
    before = catalogue.slice(places, begin=(0, 0), end=(n, max(size - 2, 0)))
    before = catalogue.pad(before, paddings=((0, 0), (min(2, size), 0)), value=blank)
    is_label = catalogue.not_equal(places, constant_of(blank, places.dtype))
    return catalogue.logical_and(is_label, catalogue.not_equal(places, before))


def _cases() -> Iterator[Case]:
    random = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        logs = np.log(random.uniform(0.1, 1.0, (5, 3, 4))).astype(dtype)
        labels = np.array([[1, 1, 2], [3, 0, 0], [0, 0, 0]])
        steps, lengths = np.array([5, 4, 3]), np.array([3, 1, 0])
        yield Case((logs, labels, steps, lengths), {"blank": 0}, rtol=1e-5)
        yield Case((logs[:, :1], labels[:1, :1], steps[:1], lengths[1:2]), {"blank": 3}, rtol=1e-5)


ctc_log_likelihood = defop(
    "ctc_log_likelihood",
    inputs="logs labels steps lengths",
    attrs={"blank": REQUIRED},
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    vjp=BY_EXPANSION,
    lower=Composite(_expand),
    cases=_cases,
    facts=Facts(autocast=Autocast.FLOAT32),
)
"""The log probability of label sequences, (N): the sum over all alignments.

Inputs: log probabilities (T, N, C); labels (N, S); the numbers of steps and of labels, (N).
Impossible sequences, such as more labels than steps, give about `NEVER`.
"""
