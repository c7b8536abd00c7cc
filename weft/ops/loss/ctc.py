"""The CTC loss: labels in order, at unknown times."""

from __future__ import annotations

import math

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.loss.reduction import reduced
from weft.ops.sequence.ctc import NEVER


@autocasting(Autocast.FLOAT32)
def ctc_loss(
    logs: Value, targets: Value, input_lengths: Value, target_lengths: Value,
    *, blank: int, reduction: str, zero_infinity: bool,
) -> Value:  # fmt: skip
    """The negative log-likelihood of label sequences with unknown alignment."""
    single = len(known(logs.shape)) == 2
    if single:
        logs = catalogue.expand_dims(logs, axis=1)
    labels = catalogue.cast(targets, dtype=int64)
    lengths = [
        catalogue.reshape(catalogue.cast(v, dtype=int64), shape=(known(logs.shape)[1],))
        for v in (input_lengths, target_lengths)
    ]
    losses = -catalogue.ctc_log_likelihood(logs, labels, *lengths, blank=blank)
    possible = catalogue.less(losses, constant_of(-NEVER / 10, losses.dtype))
    otherwise = constant_of(0.0 if zero_infinity else math.inf, losses.dtype)
    losses = catalogue.select(possible, losses, otherwise)
    if reduction == "mean":
        counts = catalogue.maximum(lengths[1], constant_of(1, int64))
        losses = losses / catalogue.cast(counts, dtype=losses.dtype)
    if single and reduction == "none":
        return catalogue.squeeze(losses, axes=(0,))
    return reduced(losses, reduction)
