"""`tf.feature_column`: how features become the inputs of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.indexing.search import places_by_column
from weft.tf1.data_flow.id_table import index_table_from_tensor
from weft.tf1.framework.convert import unary
from weft.tf1.framework.graph import fail

__all__ = [
    "bucketized_column", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_list", "crossed_column", "embedding_column",
    "indicator_column", "input_layer", "linear_model", "make_parse_example_spec",
    "numeric_column",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Dense:
    """A column of numbers.

    Attributes:
        name: of its variables, and the order of columns.
        make: the numbers, [batch, width], of the features.
        spec: what it reads of an `Example`.
    """

    name: str
    make: Callable[[Any], Any]
    spec: dict[str, Any]


class EmbeddingColumn(_Dense):
    """A column of rows of a table."""


@dataclass(frozen=True, eq=False)
class _Categories:
    """A column of categories.

    Attributes:
        name: of its variables, and the order of columns.
        size: the number of categories.
        ids: of the features, [batch, number]; -1 for none.
        spec: what it reads of an `Example`.
    """

    name: str
    size: int
    ids: Callable[[Any], Any]
    spec: dict[str, Any]


class _Buckets(_Categories):
    """A column of intervals, which is also one of numbers: 1 for each example's interval."""


def _matrix(x: Any) -> Any:
    """A feature with an example a row."""
    x = tf.convert_to_tensor(x)
    if x.shape.ndims == 1:
        return x[:, None]
    if x.shape.ndims == 2:
        return x
    width = 1
    for d in x.shape.as_list()[1:]:
        width *= d
    return tf.reshape(x, [-1, width])


def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = "float32",
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> _Dense:  # fmt: skip
    """A feature of numbers.

    Args:
        key: of the feature.
        shape: of an example's numbers.
        default_value: in an `Example` without the feature.
        dtype: of the feature.
        normalizer_fn: a function of the tensor.
    """
    dims = [shape] if isinstance(shape, int) else list(shape)

    def make(features: Any) -> Any:
        x = tf.cast(tf.convert_to_tensor(features[key]), tf.float32)
        return _matrix(x if normalizer_fn is None else normalizer_fn(x))

    return _Dense(key, make, {key: tf.FixedLenFeature(dims, tf.as_dtype(dtype), default_value)})


def bucketized_column(source_column: _Dense, boundaries: Sequence[float]) -> _Categories:
    """The interval between boundaries in which each number is; each number has its own categories.

    Args:
        source_column: a numeric column.
        boundaries: in order.
    """
    (feature,) = source_column.spec.values()
    size = (len(boundaries) + 1) * math.prod(feature.shape)

    def ids(features: Any) -> Any:
        x = source_column.make(features)
        return unary("Bucketize", places_by_column, x, "bucketize", limits=tuple(boundaries))

    name = f"{source_column.name}_bucketized"
    return _Buckets(name, size, ids, source_column.spec)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> _Categories:
    """A feature of integers from 0 to num_buckets - 1.

    Args:
        key: of the feature.
        num_buckets: the number of categories.
        default_value: of integers outside; none by default.
    """

    def ids(features: Any) -> Any:
        x = tf.cast(_matrix(features[key]), tf.int64)
        if default_value is None:
            return x
        inside = tf.logical_and(x >= 0, x < num_buckets)
        return tf.where(inside, x, tf.zeros_like(x) + default_value)

    return _Categories(key, num_buckets, ids, {key: tf.VarLenFeature(tf.int64)})


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = "string"
) -> _Categories:
    """A feature of texts or integers, hashed.

    Args:
        key: of the feature.
        hash_bucket_size: the number of categories.
        dtype: of the feature.
    """

    def ids(features: Any) -> Any:
        x = _matrix(features[key])
        text = x if x.dtype.base_dtype == tf.string else tf.as_string(x)
        return tf.string_to_hash_bucket_fast(text, hash_bucket_size)

    spec = {key: tf.VarLenFeature(tf.as_dtype(dtype))}
    return _Categories(key, hash_bucket_size, ids, spec)


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1,
    num_oov_buckets: int = 0,
) -> _Categories:  # fmt: skip
    """A feature of some texts or integers.

    Args:
        key: of the feature.
        vocabulary_list: the categories.
        dtype: of the feature; that of the list by default.
        default_value: the number of others; -1 for none.
        num_oov_buckets: the number of categories of others, by their hash.
    """
    words = list(vocabulary_list)

    def ids(features: Any) -> Any:
        kind = tf.string if isinstance(words[0], str | bytes) else tf.int64
        table = index_table_from_tensor(
            tf.constant(words, kind), num_oov_buckets, default_value, dtype=kind
        )
        x = _matrix(features[key])
        return table.lookup(x if kind is tf.string else tf.cast(x, tf.int64))

    kind = dtype or (tf.string if isinstance(words[0], str | bytes) else tf.int64)
    return _Categories(
        key, len(words) + num_oov_buckets, ids, {key: tf.VarLenFeature(tf.as_dtype(kind))}
    )


def crossed_column(
    keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None
) -> _Categories:
    """Combinations of categories, hashed by Weft's function (TensorFlow has another).

    Args:
        keys: features of texts, or columns of categories.
        hash_bucket_size: the number of categories.
        hash_key: accepted.
    """
    del hash_key
    columns = [categorical_column_with_hash_bucket(k, 2**31) if isinstance(k, str) else k
               for k in keys]  # fmt: skip

    def ids(features: Any) -> Any:
        texts = [tf.as_string(column.ids(features)) for column in columns]
        return tf.string_to_hash_bucket_fast(tf.string_join(texts, "_X_"), hash_bucket_size)

    name = "_X_".join(column.name for column in columns)
    spec = {k: v for column in columns for k, v in column.spec.items()}
    return _Categories(name, hash_bucket_size, ids, spec)


def _counts(column: _Categories, features: Any) -> Any:
    """How often each category occurs, [batch, size]."""
    return tf.reduce_sum(tf.one_hot(column.ids(features), column.size), 1)


def _numbers(column: Any, features: Any) -> Any:
    """A column's numbers, [batch, width]: of categories, how often each occurs."""
    return _counts(column, features) if isinstance(column, _Categories) else column.make(features)


def indicator_column(categorical_column: _Categories) -> _Dense:
    """How often each category occurs in an example."""
    name = f"{categorical_column.name}_indicator"
    return _Dense(name, lambda f: _counts(categorical_column, f), categorical_column.spec)


def embedding_column(
    categorical_column: _Categories, dimension: int, combiner: str = "mean",
    initializer: Any = None, ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None,
    max_norm: float | None = None, trainable: bool = True,
) -> EmbeddingColumn:  # fmt: skip
    """Categories as rows of a table that is learned.

    Args:
        categorical_column: a column of categories.
        dimension: the rows' width.
        combiner: `mean`, `sum` or `sqrtn` of an example's rows.
        initializer: of the table; a truncated normal of deviation 1 / sqrt(dimension) by default.
        ckpt_to_load_from, tensor_name_in_ckpt, max_norm: refused, if they are given.
        trainable: whether training changes the table.

    Raises:
        ArgumentError: an argument is not supported.
    """
    if max_norm is not None or ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        text = "max_norm, ckpt_to_load_from and tensor_name_in_ckpt are not supported"
        raise fail(ArgumentError, f"embedding_column: {text}")
    if combiner not in ("mean", "sum", "sqrtn"):
        raise fail(ArgumentError, f"embedding_column: expected a combiner, got {combiner!r}")

    def make(features: Any) -> Any:
        start = initializer or tf.truncated_normal_initializer(stddev=dimension**-0.5)
        table = tf.get_variable("embedding_weights", [categorical_column.size, dimension],
                                initializer=start, trainable=trainable)  # fmt: skip
        ids = categorical_column.ids(features)
        there = tf.cast(ids >= 0, tf.float32)
        rows = tf.nn.embedding_lookup(table, tf.maximum(ids, 0)) * there[:, :, None]
        total, count = tf.reduce_sum(rows, 1), tf.reduce_sum(there, 1, keepdims=True)
        if combiner == "sum":
            return total
        count = tf.maximum(count, 1.0)
        return total / (count if combiner == "mean" else tf.sqrt(count))

    return EmbeddingColumn(f"{categorical_column.name}_embedding", make, categorical_column.spec)


def _listed(columns: Any) -> list[Any]:
    found = list(columns) if isinstance(columns, Iterable) else [columns]
    return sorted(found, key=lambda column: column.name)


def input_layer(
    features: Any, feature_columns: Any, weight_collections: Any = None, trainable: bool = True,
    cols_to_vars: Any = None, cols_to_output_tensors: Any = None,
) -> Any:  # fmt: skip
    """The numbers of all columns side by side, in the order of their names, [batch, width].

    Args:
        features: a dict of tensors.
        feature_columns: dense columns.
        weight_collections, trainable, cols_to_vars, cols_to_output_tensors: accepted.

    Raises:
        ArgumentError: a column is one of categories.
    """
    del weight_collections, trainable, cols_to_vars, cols_to_output_tensors
    with tf.variable_scope(None, "input_layer"):
        parts: list[Any] = []
        for column in _listed(feature_columns):
            if isinstance(column, _Categories) and not isinstance(column, _Buckets):
                text = "wrap columns of categories by embedding_column or indicator_column"
                raise fail(ArgumentError, f"input_layer: {text}, got {column.name}")
            with tf.variable_scope(column.name):
                parts.append(_numbers(column, features))
        return tf.concat(parts, 1) if len(parts) > 1 else parts[0]


def linear_model(
    features: Any, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum",
    weight_collections: Any = None, trainable: bool = True, cols_to_vars: Any = None,
) -> Any:  # fmt: skip
    """A linear function of all columns, [batch, units]; all weights begin with 0.

    Args:
        features: a dict of tensors.
        feature_columns: dense columns and columns of categories.
        units: the number of outputs.
        sparse_combiner: `sum`.
        weight_collections, cols_to_vars: accepted.
        trainable: whether training changes the weights.

    Raises:
        ArgumentError: another combiner.
    """
    del weight_collections, cols_to_vars
    if sparse_combiner != "sum":
        text = f"expected sparse_combiner='sum', got {sparse_combiner!r}"
        raise fail(ArgumentError, f"linear_model: {text}")
    zeros = tf.zeros_initializer()
    with tf.variable_scope(None, "linear_model"):
        total = tf.get_variable("bias_weights", [units], initializer=zeros, trainable=trainable)
        for column in _listed(feature_columns):
            with tf.variable_scope(column.name):
                x = _numbers(column, features)
                weights = tf.get_variable("weights", [x.shape.as_list()[1], units],
                                          initializer=zeros, trainable=trainable)  # fmt: skip
                total = tf.matmul(x, weights) + total
        return total


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What `tf.parse_example` reads for the columns."""
    return {k: v for column in _listed(feature_columns) for k, v in column.spec.items()}
