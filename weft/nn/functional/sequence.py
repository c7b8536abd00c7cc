"""Connectionist temporal classification: losses of unaligned label sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.device import moved
from weft.eager.tensor.dispatch import lazy_of, leaf, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir.look import looks
from weft.ir.shape import show
from weft.nn.functional.common import reduction_of
from weft.ops.loss import ctc

__all__ = ["ctc_loss"]

_ctc_loss = recorded(ctc.ctc_loss)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The negative log probability of label sequences without alignment.

    Args:
        log_probs: log probabilities, (T, N, C) or (T, C).
        targets: labels (N, S), or concatenated (sum of lengths), or (S).
        input_lengths: the number of valid steps, (N).
        target_lengths: the number of labels, (N).
        blank: the class that stands for no label.
        reduction: `mean`, over labels and then over examples, `sum` or `none`.
        zero_infinity: targets too long for their input give 0, not infinity.

    Raises:
        DTypeError: lengths are not integers.
        ShapeError: shapes do not fit, or lengths exceed them (where their values are known).

    Source: Graves et al., "Connectionist Temporal Classification" (2006).
    """
    way = reduction_of("ctc_loss", reduction)
    shape = dims_of(log_probs)
    if len(shape) not in (2, 3) or not 0 <= blank < shape[-1]:
        raise ShapeError.here(
            f"ctc_loss: expected log_probs (T, N, C) or (T, C) and a blank below C, got "
            f"{show(shape)} and {blank}"
        )
    n = shape[1] if len(shape) == 3 else 1
    near = lazy_of(log_probs)
    counts = [_lengths(v, n, near) for v in (input_lengths, target_lengths)]
    rows = _rows(targets, target_lengths, n, near)
    _check_within("input_lengths", counts[0], shape[0])
    _check_within("target_lengths", counts[1], dims_of(rows)[1])
    return _ctc_loss(
        log_probs, rows, *counts, blank=int(blank), reduction=way,
        zero_infinity=bool(zero_infinity),
    )  # fmt: skip


def _lengths(numbers: Any, n: int, near: Lazy) -> Any:
    """Lengths as a tensor where another one is."""
    lengths: Any = numbers
    if not isinstance(numbers, Handle):
        lengths = wrap(leaf(np.asarray(numbers, np.int64), near))
    elif device_of(numbers.lazy.type) != device_of(near.type):
        lengths = wrap(moved(numbers.lazy, device_of(near.type)), numbers)
    dtype = lazy_of(lengths).type.dtype
    if not dtype.is_integer:
        raise DTypeError.here(f"ctc_loss: expected lengths of integers, got {dtype}")
    if math.prod(dims_of(lengths)) != n:
        raise ShapeError.here(f"ctc_loss: expected {n} lengths, got shape {show(dims_of(lengths))}")
    return lengths


def _check_within(name: str, lengths: Any, most: int) -> None:
    """Check that lengths are in [0, most], if they are known already."""
    looks.count += 1
    array = lengths.lazy.array
    if array is not None and array.size and not 0 <= array.min() <= array.max() <= most:
        raise ShapeError.here(f"ctc_loss: expected {name} from 0 to {most}, got {array.tolist()}")


def _rows(targets: Any, lengths: Any, n: int, near: Lazy) -> Any:
    """Targets as (N, S); if they are concatenated, their lengths must be computed."""
    shape = dims_of(targets)
    if len(shape) == 2 and shape[0] == n:
        return targets
    if len(shape) != 1:
        raise ShapeError.here(
            f"ctc_loss: expected targets ({n}, S) or of one dimension, got {show(shape)}"
        )
    counts = np.asarray(lengths.array if isinstance(lengths, Handle) else lengths).reshape(-1)
    flat = np.asarray(targets.array if isinstance(targets, Handle) else targets)
    if counts.size and (counts.min() < 0 or counts.sum() > len(flat)):
        raise ShapeError.here(
            f"ctc_loss: expected target_lengths of together at most {len(flat)}, got "
            f"{counts.tolist()}"
        )
    rows = np.zeros((n, int(counts.max(initial=0))), np.int64)
    starts = np.cumsum(counts) - counts
    for row, start, count in zip(rows, starts, counts, strict=True):
        row[:count] = flat[start : start + count]
    return wrap(leaf(rows, near))
