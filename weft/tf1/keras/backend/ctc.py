"""Connectionist temporal classification of probabilities, with Keras's names."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.tf1.keras.engine.settings import epsilon

__all__ = ["ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse"]


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The loss of each sequence of labels: [batch, 1].

    Args:
        y_true: labels [batch, labels].
        y_pred: probabilities [batch, time, classes]; the last class is the blank.
        input_length: the number of valid steps, [batch, 1].
        label_length: the number of labels, [batch, 1].
    """
    labels, steps = tf.squeeze(label_length, [-1]), tf.squeeze(input_length, [-1])
    found = tf.nn.ctc_loss_v2(y_true, _logs(y_pred), labels, steps, blank_index=-1)
    return tf.expand_dims(found, 1)


def ctc_decode(
    y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Any]:
    """The likeliest labels.

    Args:
        y_pred: probabilities [batch, time, classes]; the last class is the blank.
        input_length: the number of valid steps, [batch].
        greedy: whether to take the likeliest class of each step; else a search among prefixes.
        beam_width, top_paths: of the search.

    Returns:
        Labels, [batch, time] for each path, with -1 where there is none; and the paths' negative
        sums of logits, or their log probabilities, [batch, paths].
    """
    logs, lengths = _logs(y_pred), tf.cast(input_length, tf.int32)
    if greedy:
        found, scores = tf.nn.ctc_greedy_decoder(logs, lengths)
    else:
        found, scores = tf.nn.ctc_beam_search_decoder_v2(logs, lengths, beam_width, top_paths)
    room = tf.cast(tf.shape(y_pred)[:2], tf.int64)
    dense = [tf.sparse_to_dense(x.indices, room, x.values, default_value=-1) for x in found]
    return dense, scores


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Labels [batch, labels] as a sparse tensor.

    Args:
        labels: the labels.
        label_lengths: how many there are in each row, [batch].
    """
    inside = tf.sequence_mask(label_lengths, tf.shape(labels)[1])
    size = tf.cast(tf.shape(labels), tf.int64)
    return tf.SparseTensor(tf.where(inside), tf.boolean_mask(labels, inside), size)


def _logs(y_pred: Any) -> Any:
    """Probabilities as logits [time, batch, classes]."""
    return tf.log(tf.transpose(y_pred, [1, 0, 2]) + epsilon())
