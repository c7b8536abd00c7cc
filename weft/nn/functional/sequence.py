"""Connectionist temporal classification: labels in order, at unknown times."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, leaf, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.common import reduced, reduction_of
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast

_NEVER: Final = -1e30
"""The logarithm of the probability of what cannot be; finite, so that gradients are numbers."""


def _with_blanks(targets: Value, blank: int) -> Value:
    """Labels (N, S) with blanks around and between them: (N, 2 S + 1)."""
    n, size = known(targets.shape)
    row = catalogue.broadcast_to(constant_of(blank, targets.dtype), shape=(n, size, 1))
    pairs = catalogue.concatenate(row, catalogue.expand_dims(targets, axis=-1), axis=-1)
    pairs = catalogue.reshape(pairs, shape=(n, 2 * size))
    return catalogue.pad(pairs, paddings=((0, 0), (0, 1)), value=blank)


def _later(x: Value, by: int) -> Value:
    """`x` moved `by` places to the right; what comes in cannot be."""
    n, size = known(x.shape)
    kept = catalogue.slice(x, begin=(0, 0), end=(n, max(size - by, 0)))
    return catalogue.pad(kept, paddings=((0, 0), (min(by, size), 0)), value=_NEVER)


def _skips(labels: Value, blank: int) -> Value:
    """Where a label may follow the one before it without a blank between."""
    n, size = known(labels.shape)
    before = catalogue.slice(labels, begin=(0, 0), end=(n, max(size - 2, 0)))
    before = catalogue.pad(before, paddings=((0, 0), (min(2, size), 0)), value=blank)
    is_label = catalogue.not_equal(labels, constant_of(blank, labels.dtype))
    return catalogue.logical_and(is_label, catalogue.not_equal(labels, before))


def _log_likelihood(
    logs: Value, labels: Value, input_lengths: Value, target_lengths: Value, blank: int
) -> Value:
    """The logarithm of the probability of all ways to read the labels, (N); Graves, section 4.1."""
    steps, n, _ = known(logs.shape)
    size = known(labels.shape)[1]
    index = catalogue.broadcast_to(catalogue.expand_dims(labels, axis=0), shape=(steps, n, size))
    emitted = catalogue.unstack.all(
        catalogue.take_along_axis(logs, index, axis=2), count=steps, axis=0
    )
    never = constant_of(_NEVER, logs.dtype)
    skips = _skips(labels, blank)
    place = catalogue.iota(shape=(1, size), axis=1, dtype=int64)
    first = catalogue.less(place, constant_of(2, int64))
    alpha = catalogue.select(first, emitted[0], never)
    lengths = catalogue.expand_dims(input_lengths, axis=-1)
    for t in range(1, steps):
        stay = catalogue.logaddexp(alpha, _later(alpha, 1))
        skip = catalogue.select(skips, _later(alpha, 2), never)
        moved = catalogue.logaddexp(stay, skip) + emitted[t]
        alpha = catalogue.select(catalogue.less(constant_of(t, int64), lengths), moved, alpha)
    last = catalogue.expand_dims(target_lengths * 2, axis=-1)
    ends = catalogue.logical_or(catalogue.equal(place, last), catalogue.equal(place, last - 1))
    return catalogue.logsumexp(catalogue.select(ends, alpha, never), axes=(-1,))


@recorded(autocast=Autocast.FLOAT32)
def _ctc_loss(
    logs: Value, targets: Value, input_lengths: Value, target_lengths: Value,
    *, blank: int, reduction: str, zero_infinity: bool,
) -> Value:  # fmt: skip
    single = len(known(logs.shape)) == 2
    if single:
        logs = catalogue.expand_dims(logs, axis=1)
    labels = _with_blanks(catalogue.cast(targets, dtype=int64), blank)
    lengths = [
        catalogue.reshape(catalogue.cast(v, dtype=int64), shape=(known(logs.shape)[1],))
        for v in (input_lengths, target_lengths)
    ]
    losses = -_log_likelihood(logs, labels, lengths[0], lengths[1], blank)
    possible = catalogue.less(losses, constant_of(-_NEVER / 10, losses.dtype))
    otherwise = constant_of(0.0 if zero_infinity else math.inf, losses.dtype)
    losses = catalogue.select(possible, losses, otherwise)
    if reduction == "mean":
        counts = catalogue.maximum(lengths[1], constant_of(1, int64))
        losses = losses / catalogue.cast(counts, dtype=losses.dtype)
    if single and reduction == "none":
        return catalogue.squeeze(losses, axes=(0,))
    return reduced(losses, reduction)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Negative logarithm of the probability of labels, in order, at unknown times.

    Args:
        log_probs: logarithms of probabilities, (T, N, C) or (T, C).
        targets: labels (N, S), or one after another (their total), or (S).
        input_lengths: how many of the T steps count, (N); so `target_lengths` for the labels.
        blank: the class that stands for no label.
        reduction: the mean is over labels, then over examples.
        zero_infinity: an impossible sequence, too short for its labels, counts as 0.

    Raises:
        DTypeError: lengths that are no integers.
        ShapeError: shapes that do not fit, or lengths beyond them (where their values are known).

    Source: Graves et al., "Connectionist Temporal Classification" (2006).
    """
    way = reduction_of("ctc_loss", reduction)
    shape = dims_of(log_probs)
    if len(shape) not in (2, 3) or not 0 <= blank < shape[-1]:
        raise ShapeError(
            f"ctc_loss: expected log_probs (T, N, C) or (T, C) and a blank below C, got "
            f"{show(shape)} and {blank}{at_user_line()}"
        )
    n = shape[1] if len(shape) == 3 else 1
    counts = [_lengths(v, n) for v in (input_lengths, target_lengths)]
    rows = _rows(targets, target_lengths, n)
    _check_within("input_lengths", counts[0], shape[0])
    _check_within("target_lengths", counts[1], dims_of(rows)[1])
    return _ctc_loss(
        log_probs, rows, *counts, blank=int(blank), reduction=way,
        zero_infinity=bool(zero_infinity),
    )  # fmt: skip


def _lengths(given: Any, n: int) -> Any:
    found = given if isinstance(given, Handle) else wrap(leaf(np.asarray(given, np.int64)))
    dtype = lazy_of(found).type.dtype
    if not dtype.is_integer:
        raise DTypeError(f"ctc_loss: expected lengths of integers, got {dtype}{at_user_line()}")
    if math.prod(dims_of(found)) != n:
        raise ShapeError(
            f"ctc_loss: expected {n} lengths, got shape {show(dims_of(found))}{at_user_line()}"
        )
    return found


def _check_within(name: str, lengths: Any, most: int) -> None:
    """Refuse lengths outside [0, most], if they are known already."""
    array = lengths.lazy.array
    if array is not None and array.size and not 0 <= array.min() <= array.max() <= most:
        raise ShapeError(
            f"ctc_loss: expected {name} from 0 to {most}, got {array.tolist()}{at_user_line()}"
        )


def _rows(targets: Any, lengths: Any, n: int) -> Any:
    """Targets as (N, S); where they are one after another, their lengths are looked at."""
    shape = dims_of(targets)
    if len(shape) == 2 and shape[0] == n:
        return targets
    if len(shape) != 1:
        raise ShapeError(
            f"ctc_loss: expected targets ({n}, S) or of one dimension, got {show(shape)}"
            f"{at_user_line()}"
        )
    counts = np.asarray(lengths.array if isinstance(lengths, Handle) else lengths).reshape(-1)
    flat = np.asarray(targets.array if isinstance(targets, Handle) else targets)
    if counts.size and (counts.min() < 0 or counts.sum() > len(flat)):
        raise ShapeError(
            f"ctc_loss: expected target_lengths of together at most {len(flat)}, got "
            f"{counts.tolist()}{at_user_line()}"
        )
    rows = np.zeros((n, int(counts.max(initial=0))), np.int64)
    starts = np.cumsum(counts) - counts
    for row, start, count in zip(rows, starts, counts, strict=True):
        row[:count] = flat[start : start + count]
    return wrap(leaf(rows))
