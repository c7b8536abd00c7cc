"""Decoders of sequences that are lists of steps, each step in the graph by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf

__all__ = ["basic_rnn_seq2seq", "embedding_rnn_decoder", "rnn_decoder", "tied_rnn_seq2seq"]


def rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, loop_function: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """The outputs of a cell, whose input may be made of the output before.

    Args:
        decoder_inputs: a matrix for each step.
        initial_state: of the cell.
        cell: a cell.
        loop_function: a function of an output and its number, whose result is the next input.
        scope: of the variables.
    """
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs, last = initial_state, [], None
        for n, inputs in enumerate(decoder_inputs):
            if loop_function is not None and last is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(last, n)
            if n > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
            last = output if loop_function is not None else None
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, dtype: Any = "float32",
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """A cell reads the first sequence, and its state begins a decoder of the second.

    Args:
        encoder_inputs, decoder_inputs: a matrix for each step.
        cell: a cell; each of both has variables of its own.
        dtype: of the state.
        scope: of the variables.
    """
    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        encoder = copy.deepcopy(cell)  # with variables of its own
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    loop_function: Any = None, dtype: Any = "float32", scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`basic_rnn_seq2seq` with the same variables in both.

    Args:
        encoder_inputs, decoder_inputs, cell, dtype: as in `basic_rnn_seq2seq`.
        loop_function: as in `rnn_decoder`.
        scope: of the variables.
    """
    with tf.variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        tf.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope=name)


def _next_embedding(table: Any, projection: Any, update: bool) -> Callable[[Any, int], Any]:
    def loop(last: Any, _: int) -> Any:
        if projection is not None:
            last = tf.nn.xw_plus_b(last, projection[0], projection[1])
        found = tf.nn.embedding_lookup(table, tf.argmax(last, 1))
        return found if update else tf.stop_gradient(found)

    return loop


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, num_symbols: int,
    embedding_size: int, output_projection: Any = None, feed_previous: bool = False,
    update_embedding_for_previous: bool = True, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` of integers.

    Args:
        decoder_inputs: integers, [batch], for each step.
        initial_state, cell: as in `rnn_decoder`.
        num_symbols, embedding_size: the shape of the table.
        output_projection: weights and biases from outputs to symbols.
        feed_previous: inputs after the first are the likeliest symbols of the outputs.
        update_embedding_for_previous: whether those train the table.
        scope: of the variables.
    """
    with tf.variable_scope(scope or "embedding_rnn_decoder"):
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = _next_embedding(table, output_projection, update_embedding_for_previous)
        inputs = [tf.nn.embedding_lookup(table, i) for i in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop if feed_previous else None)
