"""Layers without windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ShapeError
from weft.tf1.contrib.framework.arg_scope import add_arg_scope
from weft.tf1.contrib.layers.common import finished, weight
from weft.tf1.contrib.layers.regularizer import xavier_initializer
from weft.tf1.framework.graph import fail

__all__ = [
    "bias_add", "dropout", "embed_sequence", "flatten", "fully_connected", "linear",
    "one_hot_encoding", "relu", "relu6", "repeat", "softmax", "stack", "unit_norm",
]  # fmt: skip


_ZEROS = tf.zeros_initializer()


@add_arg_scope
def fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Any = tf.nn.relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS, biases_regularizer: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """activation(inputs @ weights + biases) over the last axis; ReLU by default.

    Args:
        inputs: a tensor whose last size is known.
        num_outputs: the size of the last axis of the outputs.
        activation_fn: a function; `None` for none.
        normalizer_fn: a function in place of the biases, such as `batch_norm`.
        normalizer_params: its options.
        weights_initializer, biases_initializer: of the variables; no biases for `None`. Weights
            are Glorot's by default.
        weights_regularizer, biases_regularizer: losses of the variables.
        reuse: share the variables of the scope.
        variables_collections: names, or a dict from `weights` and `biases` to names.
        outputs_collections: names.
        trainable: whether training changes the variables.
        scope: of the variables; `fully_connected` by default, made unique.

    Raises:
        ShapeError: the last size is not known.
    """
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        size = x.shape.as_list()[-1] if x.shape.ndims else None
        if size is None:
            text = f"fully_connected: expected a known last dimension, got shape {x.shape}"
            raise fail(ShapeError, text)
        start = weights_initializer or xavier_initializer()
        w = weight("weights", [size, int(num_outputs)], x, start, weights_regularizer,
                   trainable, variables_collections)  # fmt: skip
        y = tf.tensordot(x, w, [[-1], [0]]) if x.shape.ndims != 2 else tf.matmul(x, w)
        if normalizer_fn is None and biases_initializer is not None:
            b = weight("biases", [int(num_outputs)], x, biases_initializer, biases_regularizer,
                       trainable, variables_collections)  # fmt: skip
            y = tf.nn.bias_add(y, b)
        return finished(y, sc, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


def relu(*args: Any, **options: Any) -> Any:
    """`fully_connected` with ReLU."""
    return fully_connected(*args, **{"activation_fn": tf.nn.relu, **options})


def relu6(*args: Any, **options: Any) -> Any:
    """`fully_connected` with ReLU up to 6."""
    return fully_connected(*args, **{"activation_fn": tf.nn.relu6, **options})


def linear(*args: Any, **options: Any) -> Any:
    """`fully_connected` without an activation."""
    return fully_connected(*args, **{"activation_fn": None, **options})


@add_arg_scope
def bias_add(
    inputs: Any, activation_fn: Any = None, initializer: Any = _ZEROS,
    regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, data_format: str = "NHWC",
    scope: Any = None,
) -> Any:  # fmt: skip
    """Adds a variable to each feature.

    Args:
        inputs: a tensor whose number of features is known.
        activation_fn, reuse, variables_collections, outputs_collections, trainable, scope: as in
            `fully_connected`.
        initializer, regularizer: of the biases.
        data_format: `NHWC` or `NCHW`.
    """
    with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        size = x.shape.as_list()[1 if data_format.startswith("NC") else -1]
        b = weight("biases", [size], x, initializer, regularizer, trainable,
                   variables_collections)  # fmt: skip
        y = tf.nn.bias_add(x, b, data_format=data_format)
        return finished(y, sc, outputs_collections, activation_fn)


@add_arg_scope
def dropout(
    inputs: Any, keep_prob: Any = 0.5, noise_shape: Any = None, is_training: Any = True,
    outputs_collections: Any = None, scope: Any = None, seed: int | None = None,
) -> Any:  # fmt: skip
    """Dropout while training, else the inputs.

    Args:
        inputs: a tensor.
        keep_prob: the fraction that is kept.
        noise_shape: as in `tf.nn.dropout`.
        is_training: a Python or a tensor boolean.
        outputs_collections: names.
        scope: a name.
        seed: of the random numbers.
    """
    with tf.variable_scope(scope, "Dropout", [inputs]) as sc:
        y = tf.layers.dropout(
            inputs, 1 - keep_prob, noise_shape, seed, training=is_training, name="dropout"
        )
        return finished(y, sc, outputs_collections)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """All axes but the first flattened into one."""
    with tf.variable_scope(scope, "Flatten", [inputs]) as sc:
        return finished(tf.layers.flatten(inputs), sc, outputs_collections)


@add_arg_scope
def one_hot_encoding(
    labels: Any, num_classes: int, on_value: float = 1.0, off_value: float = 0.0,
    outputs_collections: Any = None, scope: Any = None,
) -> Any:  # fmt: skip
    """Labels as rows with `on_value` at the label."""
    with tf.variable_scope(scope, "OneHotEncoding", [labels]) as sc:
        x = tf.convert_to_tensor(labels)
        x = x if x.dtype.base_dtype == tf.int64 else tf.cast(x, tf.int64)
        y = tf.one_hot(x, num_classes, on_value=on_value, off_value=off_value)
        return finished(y, sc, outputs_collections)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """Softmax over the last axis."""
    with tf.variable_scope(scope, "softmax", [logits]):
        return tf.nn.softmax(logits)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Inputs divided by epsilon + their length along an axis."""
    with tf.variable_scope(scope, "UnitNorm", [inputs]):
        x = tf.convert_to_tensor(inputs)
        return x / tf.sqrt(tf.reduce_sum(tf.square(x), dim, keepdims=True) + epsilon)


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **options: Any):
    """A layer, applied several times; scopes are `scope/scope_1`, `scope/scope_2`, ..."""
    scope = options.pop("scope", None)
    with tf.variable_scope(scope, "Repeat", [inputs]):
        name = scope or getattr(layer, "__name__", "repeat")
        y = tf.convert_to_tensor(inputs)
        for n in range(repetitions):
            options["scope"] = f"{name.rsplit('/', 1)[-1]}_{n + 1}"
            y = layer(y, *args, **options)
        return y


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **options: Any):
    """A layer, applied once for each of the arguments in a list."""
    scope = options.pop("scope", None)
    with tf.variable_scope(scope, "Stack", [inputs]):
        name = scope or getattr(layer, "__name__", "stack")
        y = tf.convert_to_tensor(inputs)
        for n, args in enumerate(stack_args):
            options["scope"] = f"{name}_{n + 1}"
            y = layer(y, *(args if isinstance(args, list | tuple) else [args]), **options)
        return y


def embed_sequence(
    ids: Any, vocab_size: int | None = None, embed_dim: int | None = None, unique: bool = False,
    initializer: Any = None, regularizer: Any = None, trainable: bool = True, scope: Any = None,
    reuse: Any = None,
) -> Any:  # fmt: skip
    """The rows of a table at integers.

    Args:
        ids: integers of any shape.
        vocab_size, embed_dim: the shape of the table.
        unique: accepted; it changes no result.
        initializer, regularizer, trainable: of the table.
        scope, reuse: as in `fully_connected`.

    Raises:
        ShapeError: a size is missing while variables are created.
    """
    del unique
    if not reuse and (vocab_size is None or embed_dim is None):
        raise fail(ShapeError, "embed_sequence: expected vocab_size and embed_dim")
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        table = tf.get_variable("embeddings", [vocab_size, embed_dim], initializer=initializer,
                                regularizer=regularizer, trainable=trainable)  # fmt: skip
        return tf.nn.embedding_lookup(table, ids)
