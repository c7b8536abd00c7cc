"""Losses over few sampled classes instead of all of them.

Source: Gutmann and Hyvärinen, "Noise-contrastive estimation" (2010); Jean et al., "On Using Very
Large Target Vocabulary for Neural Machine Translation" (2014).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.shape.creation import ones_like, zeros_like
from weft.ops.shape.reshape import dimension

LOWEST: Final = float(np.finfo(np.float32).min)  # added to the logits of accidental hits


def sampled_logits(
    x: Value, labels: Value, sampled: Value, weights: Value, biases: Value,
    true_count: Value, sampled_count: Value, *, remove_hits: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """Logits of each row's true classes and of the sampled ones, less logarithms of their counts.

    Args:
        x: (rows, dim).
        labels: classes, (rows, true).
        sampled: classes, (sampled,).
        weights, biases: the rows of the classes in `labels`, flattened, then in `sampled`.
        true_count: how often each of `labels` is expected among the sampled classes.
        sampled_count: the same for each of `sampled`.
        remove_hits: whether sampled classes do not count in rows of which they are a true class.

    Returns:
        (rows, true) and (rows, sampled).
    """
    weights, biases = (catalogue.cast(v, dtype=x.dtype) for v in (weights, biases))
    rows, true = dimension(labels, 0), dimension(labels, 1)
    some = rows * true
    own = catalogue.reshape(weights[:some], shape=[rows, true, dimension(x, 1)])
    of_true = catalogue.sum(catalogue.expand_dims(x, axis=1) * own, axes=(-1,))
    of_true = of_true + catalogue.reshape(biases[:some], shape=[rows, true])
    others = catalogue.matmul(x, weights[some:], transpose_y=True) + biases[some:]
    if remove_hits:
        hits = catalogue.equal(catalogue.expand_dims(labels, axis=2), sampled)
        hits = catalogue.any(hits, axes=(1,))
        nothing = constant_of(0, x.dtype)
        others = others + catalogue.select(hits, constant_of(LOWEST, x.dtype), nothing)
    logs = [catalogue.cast(catalogue.log(v), dtype=x.dtype) for v in (true_count, sampled_count)]
    return of_true - logs[0], others - logs[1]


def _joined(of_true: Value, others: Value) -> tuple[Value, Value]:
    """All logits, and labels that sum to 1 in each row."""
    ones = ones_like(of_true)
    labels = catalogue.concatenate(
        ones / catalogue.sum(ones, axes=(1,), keepdims=True), zeros_like(others), axis=1
    )
    return catalogue.concatenate(of_true, others, axis=1), labels


def noise_contrastive_loss(of_true: Value, others: Value) -> Value:
    """The binary cross-entropies of true and sampled classes, added up for each row."""
    logits, labels = _joined(of_true, others)
    return catalogue.sum(catalogue.sigmoid_cross_entropy(logits, labels), axes=(1,))


def sampled_softmax(of_true: Value, others: Value) -> Value:
    """The cross-entropy of each row with its true classes, among these and the sampled ones."""
    logits, labels = _joined(of_true, others)
    return catalogue.softmax_cross_entropy(logits, catalogue.stop_gradient(labels))
