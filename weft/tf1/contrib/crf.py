"""`tf.contrib.crf`: linear-chain conditional random fields (Lafferty et al., 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.tf1.control.py_func import host_function

__all__ = [
    "crf_binary_score", "crf_decode", "crf_log_likelihood", "crf_log_norm", "crf_sequence_score",
    "crf_unary_score", "viterbi_decode",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def _mask(lengths: Any, inputs: Any, less: int = 0) -> Any:
    """Ones at the first `lengths - less` of all steps but `less`."""
    steps = tf.range(tf.shape(inputs)[1] - less)
    limit = tf.cast(lengths, tf.int32) - less
    return tf.cast(tf.less(steps[None, :], limit[:, None]), inputs.dtype)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the inputs at the tags: [batch].

    Args:
        tag_indices: integers, [batch, time].
        sequence_lengths: the number of valid steps, [batch].
        inputs: scores, [batch, time, tags].
    """
    x = tf.convert_to_tensor(inputs)
    chosen = tf.one_hot(tag_indices, x.shape.as_list()[2], dtype=x.dtype)
    return tf.reduce_sum(tf.reduce_sum(x * chosen, 2) * _mask(sequence_lengths, x), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the transitions between consecutive tags: [batch].

    Args:
        tag_indices, sequence_lengths: as in `crf_unary_score`.
        transition_params: scores of a tag after another, [tags, tags].
    """
    table = tf.convert_to_tensor(transition_params)
    tags = tf.cast(tag_indices, tf.int32)
    at = tags[:, :-1] * table.shape.as_list()[0] + tags[:, 1:]
    scores = tf.gather(tf.reshape(table, [-1]), at)
    steps = tf.range(tf.shape(tags)[1] - 1)
    limit = tf.cast(sequence_lengths, tf.int32) - 1
    return tf.reduce_sum(scores * tf.cast(steps[None, :] < limit[:, None], scores.dtype), 1)


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The score of sequences of tags, not normalized: [batch].

    Args:
        inputs, tag_indices, sequence_lengths, transition_params: as in `crf_log_likelihood`.
    """
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm of the sum over all sequences of tags: [batch].

    Args:
        inputs, sequence_lengths, transition_params: as in `crf_log_likelihood`.
    """
    x, table = tf.convert_to_tensor(inputs), tf.convert_to_tensor(transition_params)
    lengths = tf.cast(sequence_lengths, tf.int32)
    steps = tf.transpose(x, [1, 0, 2])
    count = tf.shape(steps)[0]

    def step(alphas: Any, given: Any) -> Any:
        scores, at = given
        new = scores + tf.reduce_logsumexp(alphas[:, :, None] + table[None], 1)
        return tf.where(at < lengths, new, alphas)

    given = (steps[1:], tf.range(1, count))
    alphas = tf.foldl(step, given, initializer=steps[0])
    alphas.set_shape(steps.shape[1:])
    return tf.reduce_logsumexp(alphas, 1)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The logarithm of the probability of sequences of tags, and the transitions.

    Args:
        inputs: scores of each tag at each step, [batch, time, tags].
        tag_indices: the tags, integers, [batch, time].
        sequence_lengths: the number of valid steps, [batch].
        transition_params: scores of a tag after another, [tags, tags]; a variable `transitions`
            by default.
    """
    x = tf.convert_to_tensor(inputs)
    size = x.shape.as_list()[2]
    table = tf.get_variable("transitions", [size, size]) if transition_params is None \
        else transition_params  # fmt: skip
    score = crf_sequence_score(x, tag_indices, sequence_lengths, table)
    return score - crf_log_norm(x, sequence_lengths, table), table


def viterbi_decode(score: Array, transition_params: Array) -> tuple[list[int], Any]:
    """The tags with the highest score, and the score, of one sequence, in NumPy.

    Args:
        score: [time, tags].
        transition_params: [tags, tags].

    >>> viterbi_decode(np.eye(2), np.zeros((2, 2)))
    ([0, 1], 2.0)
    """
    best, back = score[0], np.zeros(score.shape, np.int64)
    for t in range(1, len(score)):
        through = best[:, None] + transition_params
        back[t] = through.argmax(0)
        best = score[t] + through.max(0)
    tags = [int(best.argmax())]
    for pointers in reversed(back[1:]):
        tags.append(int(pointers[tags[-1]]))
    return tags[::-1], best.max()


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The tags with the highest score [batch, time], and the scores [batch].

    Args:
        potentials: scores of each tag at each step, [batch, time, tags].
        transition_params: [tags, tags].
        sequence_length: the number of valid steps, [batch]; tags after them are 0.
    """

    def decode(x: Array, table: Array, lengths: Array) -> tuple[Array, Array]:
        tags, scores = np.zeros(x.shape[:2], np.int32), np.zeros(len(x), x.dtype)
        for row, (one, length) in enumerate(zip(x, lengths, strict=True)):
            n = max(int(length), 1)
            tags[row, :n], scores[row] = viterbi_decode(one[:n], table)
        return tags, scores

    x = tf.convert_to_tensor(potentials)
    found = host_function(
        "CrfDecode", decode, [x, transition_params, sequence_length], [tf.int32, x.dtype],
        [((0, 0), (0, 1)), ((0, 0),)], None,
    )  # fmt: skip
    return found.outputs[0], found.outputs[1]
