"""Losses for many classes that compare the true ones with few sampled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.loss.sampled import noise_contrastive_loss, sampled_logits, sampled_softmax
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, require_kind
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.lookup import embedding_lookup
from weft.tf1.random.candidate import log_uniform_candidate_sampler, true_matrix
from weft.tf1.shaping.arrangement import concat, reshape

__all__ = ["nce_loss", "sampled_softmax_loss"]

Loss = Callable[[Value, Value], Value]


def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Sequence[Any] | None = None,
    remove_accidental_hits: bool = False, partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:  # fmt: skip
    """The noise-contrastive loss of each example: [batch].

    Gradients by `weights` and `biases` are row-sparse.

    Args:
        weights: [num_classes, dim].
        biases: [num_classes].
        labels: classes, [batch, num_true].
        inputs: [batch, dim].
        num_sampled: how many classes are drawn, for the batch as a whole.
        num_classes: the number of classes.
        num_true: the number of true classes of each example.
        sampled_values: what a candidate sampler gives; by default
            `log_uniform_candidate_sampler` draws distinct classes.
        remove_accidental_hits: whether a sampled class does not count for examples of which it is
            a true class.
        partition_strategy: of no effect on one table, which `weights` and `biases` have to be.

    Raises:
        ShapeError: shapes do not fit together.
        DTypeError: labels are no integers.
        ArgumentError: numbers are not positive, `num_sampled` exceeds `num_classes`, or
            `sampled_values` are not three tensors.
        GraphError: `weights` or `biases` are several tables.

    >>> import weft.tf1 as tf
    >>> tf.reset_default_graph()
    >>> w, b = tf.ones([10, 4]), tf.zeros([10])
    >>> loss = tf.nn.nce_loss(w, b, [[0], [3]], tf.ones([2, 4]), num_sampled=3, num_classes=10)
    >>> with tf.Session() as session:
    ...     session.run(loss).shape
    (2,)
    """
    return _loss(
        "nce_loss", noise_contrastive_loss, weights, biases, labels, inputs, num_sampled,
        num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy, name,
        None,
    )  # fmt: skip


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Sequence[Any] | None = None,
    remove_accidental_hits: bool = True, partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss", seed: int | None = None,
) -> Tensor:  # fmt: skip
    """The cross-entropy of each example with softmax over true and sampled classes: [batch].

    For training: it is mostly less than that over all classes. See `nce_loss`.

    Args:
        seed: of the sampler.
    """
    return _loss(
        "sampled_softmax_loss", sampled_softmax, weights, biases, labels, inputs, num_sampled,
        num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy, name,
        seed,
    )  # fmt: skip


def _loss(
    kind: str, loss: Loss, weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int,
    num_classes: int, num_true: int, sampled_values: Any, remove: bool, strategy: str,
    name: str | None, seed: int | None,
) -> Tensor:  # fmt: skip
    with name_scope(name, kind, [inputs, labels]) as scope:
        x = convert_to_tensor(inputs, name="inputs")
        require_kind(kind, x, lambda d: d.is_floating, "floating inputs")
        given = convert_to_tensor(labels, name="labels")
        require_kind(kind, given, lambda d: d.is_integer, "integer labels")
        truth = true_matrix(kind, cast(given, dtypes.int64), num_true)
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                truth, num_true, num_sampled, True, num_classes, seed
            )
        sampled, true_count, sampled_count = _three(kind, sampled_values)
        ids = concat([reshape(truth, [-1]), sampled], 0)
        rows = [embedding_lookup(table, ids, strategy) for table in (weights, biases)]

        def build(v: Value, *others: Value) -> Value:
            return loss(*sampled_logits(v, *others, remove_hits=bool(remove)))

        given = [x, truth, sampled, *rows, true_count, sampled_count]
        return emit("Reshape", given, build, name=scope)


def _three(kind: str, values: Any) -> tuple[Tensor, Tensor, Tensor]:
    if not isinstance(values, list | tuple) or len(values) != 3:
        text = "(sampled_candidates, true_expected_count, sampled_expected_count)"
        raise fail(ArgumentError, f"{kind}: expected sampled_values {text}, got {values!r}")
    sampled, true_count, sampled_count = (stop_gradient(convert_to_tensor(v)) for v in values)
    return cast(sampled, dtypes.int64), true_count, sampled_count
