"""Decoders of sequences that are lists of steps, each step in the graph by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf
from weft.tf1.contrib.rnn.cell import EmbeddingWrapper, OutputProjectionWrapper

__all__ = [
    "attention_decoder", "basic_rnn_seq2seq", "embedding_attention_decoder",
    "embedding_attention_seq2seq", "embedding_rnn_decoder", "embedding_rnn_seq2seq", "rnn_decoder",
    "tied_rnn_seq2seq",
]  # fmt: skip


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
        encoder = _copied(cell)
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def _copied(cell: Any) -> Any:
    """A cell with the same settings and variables of its own."""
    return copy.deepcopy(cell)


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


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int,
    output_projection: Any = None, feed_previous: bool = False, dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """An encoder of integers, whose state begins a decoder of integers.

    Args:
        encoder_inputs, decoder_inputs: integers, [batch], for each step.
        cell: a cell; each of both has variables of its own.
        num_encoder_symbols, num_decoder_symbols, embedding_size: the shapes of the tables.
        output_projection, feed_previous: as in `embedding_rnn_decoder`.
        dtype: of the state.
        scope: of the variables.
    """
    with tf.variable_scope(scope or "embedding_rnn_seq2seq"):
        encoder = EmbeddingWrapper(_copied(cell), num_encoder_symbols, embedding_size)
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or tf.float32)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        return embedding_rnn_decoder(
            decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection,
            feed_previous,
        )  # fmt: skip


def attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any,
    output_size: int | None = None, num_heads: int = 1, loop_function: Any = None,
    dtype: Any = None, scope: Any = None, initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` that looks at the encoder's outputs (Vinyals et al., 2015).

    Args:
        decoder_inputs, initial_state, cell, loop_function, scope: as in `rnn_decoder`.
        attention_states: [batch, time, width].
        output_size: the width of the outputs; the cell's by default.
        num_heads: how many times it looks in a step.
        dtype: of the variables.
        initial_state_attention: look before the first step.
    """
    size = output_size or cell.output_size
    with tf.variable_scope(scope or "attention_decoder", dtype=dtype):
        states = tf.convert_to_tensor(attention_states)
        width = states.shape.as_list()[2]
        heads: list[tuple[Any, Any]] = []
        for a in range(num_heads):
            k = tf.get_variable(f"AttnW_{a}", [1, 1, width, width])
            v = tf.get_variable(f"AttnV_{a}", [width])
            heads.append((tf.tensordot(states, tf.reshape(k, [width, width]), 1), v))

        def look(state: Any) -> list[Any]:
            parts = [p for s in _flat(state) for p in _flat(s)]
            query = tf.concat(parts, 1) if len(parts) > 1 else parts[0]
            found: list[Any] = []
            for a, (features, v) in enumerate(heads):
                with tf.variable_scope(f"Attention_{a}"):
                    y = tf.layers.dense(query, width, name="query", reuse=tf.AUTO_REUSE)
                scores = tf.reduce_sum(v * tf.tanh(features + y[:, None, :]), 2)
                found.append(tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * states, 1))
            return found

        batch = tf.shape(decoder_inputs[0])[0]
        context = [tf.zeros(tf.stack([batch, width])) for _ in heads]
        for c in context:
            c.set_shape([None, width])
        state = initial_state
        if initial_state_attention:
            context = look(initial_state)
        outputs, last = [], None
        for n, inputs in enumerate(decoder_inputs):
            if n > 0:
                tf.get_variable_scope().reuse_variables()
            if loop_function is not None and last is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(last, n)
            depth = inputs.shape.as_list()[1]
            x = tf.layers.dense(tf.concat([inputs, *context], 1), depth, name="input",
                                reuse=tf.AUTO_REUSE)  # fmt: skip
            output, state = cell(x, state)
            context = look(state)
            with tf.variable_scope("AttnOutputProjection"):
                output = tf.layers.dense(tf.concat([output, *context], 1), size, name="output",
                                         reuse=tf.AUTO_REUSE)  # fmt: skip
            last = output if loop_function is not None else None
            outputs.append(output)
        return outputs, state


def _flat(state: Any) -> list[Any]:
    return list(state) if isinstance(state, list | tuple) else [state]


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any,
    num_symbols: int, embedding_size: int, num_heads: int = 1, output_size: int | None = None,
    output_projection: Any = None, feed_previous: bool = False,
    update_embedding_for_previous: bool = True, dtype: Any = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`attention_decoder` of integers.

    Args:
        decoder_inputs: integers, [batch], for each step.
        num_symbols, embedding_size, output_projection, feed_previous,
            update_embedding_for_previous: as in `embedding_rnn_decoder`.
        initial_state, attention_states, cell, num_heads, output_size, dtype, scope,
            initial_state_attention: as in `attention_decoder`.
    """
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = _next_embedding(table, output_projection, update_embedding_for_previous)
        inputs = [tf.nn.embedding_lookup(table, i) for i in decoder_inputs]
        return attention_decoder(
            inputs, initial_state, attention_states, cell, output_size or cell.output_size,
            num_heads, loop if feed_previous else None,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int, num_heads: int = 1,
    output_projection: Any = None, feed_previous: bool = False, dtype: Any = None,
    scope: Any = None, initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`embedding_rnn_seq2seq` whose decoder looks at the encoder's outputs.

    Args:
        encoder_inputs, decoder_inputs, cell, num_encoder_symbols, num_decoder_symbols,
            embedding_size, output_projection, feed_previous, dtype, scope: as in
            `embedding_rnn_seq2seq`.
        num_heads, initial_state_attention: as in `attention_decoder`.
    """
    with tf.variable_scope(scope or "embedding_attention_seq2seq"):
        encoder = EmbeddingWrapper(_copied(cell), num_encoder_symbols, embedding_size)
        outputs, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or tf.float32)
        states = tf.stack(outputs, 1)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        size = num_decoder_symbols if output_projection is None else None
        return embedding_attention_decoder(
            decoder_inputs, state, states, cell, num_decoder_symbols, embedding_size, num_heads,
            size, output_projection, feed_previous,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip
