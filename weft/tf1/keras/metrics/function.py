"""Accuracies: functions of targets and predictions, 1 for each right example."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.ops.metric import decision

__all__ = [
    "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy", "top_k_categorical_accuracy",
]  # fmt: skip


def _hits(condition: Any, like: Any) -> Any:
    return tf.cast(condition, like.dtype)


def _labels(y_true: Any, y_pred: Any) -> Any:
    """Class numbers without a trailing axis of 1."""
    t = tf.convert_to_tensor(y_true)
    rank = t.shape.ndims
    if rank is not None and rank == y_pred.shape.ndims and t.shape.as_list()[-1] in (None, 1):
        t = tf.squeeze(t, [-1])
    return tf.cast(t, tf.int64)


def accuracy(y_true: Any, y_pred: Any) -> Any:
    """y_true == y_pred"""
    p = tf.convert_to_tensor(y_pred)
    return tf.cast(tf.equal(tf.cast(y_true, p.dtype), p), tf.float32)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """mean(y_true == (y_pred > threshold))"""
    p = tf.convert_to_tensor(y_pred)
    found = tf.cast(p > threshold, p.dtype)
    return tf.reduce_mean(_hits(tf.equal(tf.cast(y_true, p.dtype), found), p), axis=-1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the largest prediction is that of the class, for one-hot targets."""
    t, p = tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    op = tf.get_default_graph().emit("Equal", [t, p], decision.same_largest, name="Equal")
    return _hits(op.outputs[0], p)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the largest prediction is that of the class, for class numbers."""
    p = tf.convert_to_tensor(y_pred)
    return _hits(tf.equal(_labels(y_true, p), tf.argmax(p, axis=-1)), p)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """Whether the class has one of the k largest predictions, for one-hot targets."""
    p = tf.convert_to_tensor(y_pred)
    return _hits(tf.nn.in_top_k(p, tf.argmax(y_true, axis=-1), k), p)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """Whether the class has one of the k largest predictions, for class numbers."""
    p = tf.convert_to_tensor(y_pred)
    return _hits(tf.nn.in_top_k(p, tf.reshape(tf.cast(y_true, tf.int64), [-1]), k), p)
