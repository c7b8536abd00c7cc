"""Losses of sequences that are lists of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf

__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]


def sequence_loss_by_example(
    logits: Sequence[Any], targets: Sequence[Any], weights: Sequence[Any],
    average_across_timesteps: bool = True, softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The weighted cross entropy of each example: [batch].

    Args:
        logits: a matrix for each step.
        targets: classes, [batch], for each step.
        weights: [batch], for each step.
        average_across_timesteps: divide by the sum of the weights.
        softmax_loss_function: a function of `labels` and `logits`.
        name: of the operations.

    Raises:
        ValueError: the lists have different lengths.
    """
    if not len(targets) == len(logits) == len(weights):
        text = f"{len(logits)}, {len(weights)}, {len(targets)}"
        raise ValueError(f"sequence_loss_by_example: expected lists of one length, got {text}")
    with tf.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        terms: list[Any] = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                flat = tf.reshape(target, [-1])
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            terms.append(loss * weight)
        total = tf.add_n(terms)
        return total / (tf.add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any], targets: Sequence[Any], weights: Sequence[Any],
    average_across_timesteps: bool = True, average_across_batch: bool = True,
    softmax_loss_function: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The sum of `sequence_loss_by_example`, over the batch's size by default.

    Args:
        logits, targets, weights, average_across_timesteps, softmax_loss_function, name: as in
            `sequence_loss_by_example`.
        average_across_batch: divide by the batch's size.
    """
    with tf.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        total = tf.reduce_sum(sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        ))  # fmt: skip
        if not average_across_batch:
            return total
        return total / tf.cast(tf.shape(targets[0])[0], total.dtype)


def model_with_buckets(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], targets: Sequence[Any],
    weights: Sequence[Any], buckets: Sequence[tuple[int, int]], seq2seq: Callable[..., Any],
    softmax_loss_function: Any = None, per_example_loss: bool = False, name: str | None = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """The outputs and the loss of a model for each pair of lengths.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: a tensor for each step.
        buckets: pairs of lengths, from short to long.
        seq2seq: a function of the inputs of both, which gives outputs and states.
        softmax_loss_function: as in `sequence_loss_by_example`.
        per_example_loss: losses of each example.
        name: of the operations.
    """
    losses, outputs = [], []
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    with tf.name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs]):
        for n, (source, target) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if n > 0 else None):
                found, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(found)
                losses.append(loss(found, targets[:target], weights[:target],
                                   softmax_loss_function=softmax_loss_function))  # fmt: skip
    return outputs, losses
