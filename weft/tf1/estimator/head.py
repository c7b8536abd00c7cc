"""Heads: what follows from a model's logits: predictions, the loss, metrics, and an update."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.data_flow.id_table import index_table_from_tensor
from weft.tf1.estimator.export import ClassificationOutput, PredictOutput, RegressionOutput
from weft.tf1.estimator.modes import EstimatorSpec, ModeKeys
from weft.tf1.framework.graph import fail

__all__ = ["BinaryClassHead", "Head", "MultiClassHead", "RegressionHead"]

_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_MEANS = ("sum_over_batch_size", "weighted_sum_over_batch_size")
_BOTH = 2


class Head(ABC):
    """Base class.

    Args:
        weight_column: the feature with the examples' weights, or its column.
        loss_reduction: the loss is the mean over examples, or their sum for `"sum"`.
        name: of the head; added to the names of metrics.
    """

    def __init__(
        self, weight_column: Any = None, loss_reduction: str = _MEANS[0], name: str | None = None
    ) -> None:
        if loss_reduction not in (*_MEANS, "sum"):
            text = f"expected loss_reduction 'sum_over_batch_size' or 'sum', got {loss_reduction!r}"
            raise fail(ArgumentError, f"{type(self).__name__}: {text}")
        self.weight_column, self.loss_reduction, self.name = weight_column, loss_reduction, name

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abstractmethod
    def predictions(self, logits: Any) -> dict[str, Any]:
        """What logits predict, by name."""

    @abstractmethod
    def _losses(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        """The losses of examples, and the labels as they are counted."""

    @abstractmethod
    def _metrics(self, found: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        """Metrics of predictions, beside the average loss."""

    @abstractmethod
    def _exports(self, found: dict[str, Any]) -> dict[str, Any]:
        """What is exported, beside the predictions; the default first."""

    def create_estimator_spec(
        self, features: Any, mode: str, logits: Any, labels: Any = None, optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None, update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:  # fmt: skip
        """What a model function returns.

        Args:
            features: a dict of tensors, of which one may be weights.
            mode: of `ModeKeys`.
            logits: [batch, logits_dimension].
            labels: of the examples; none for predictions.
            optimizer: what minimizes the loss.
            trainable_variables: what it changes; all by default.
            train_op_fn: instead of an optimizer, a function of the loss that gives a step.
            update_ops: what is run with a step.
            regularization_losses: added to the loss.

        Raises:
            ArgumentError: in training, there is neither an optimizer nor a train_op_fn, or both.
        """
        found = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            exports = self._exports(found)
            exports = {_DEFAULT: next(iter(exports.values()))} | exports
            exports["predict"] = PredictOutput(found)
            return EstimatorSpec(mode, found, export_outputs=exports)
        losses, labels = self._losses(logits, labels)
        weights = self._weights(features)
        weighted = losses if weights is None else losses * weights
        total = (tf.reduce_sum if self.loss_reduction == "sum" else tf.reduce_mean)(weighted)
        if regularization_losses:
            total = total + tf.add_n(list(regularization_losses))
        metrics = {"average_loss": tf.metrics.mean(losses, weights)}
        metrics |= self._metrics(found, labels, weights)
        end = f"/{self.name}" if self.name else ""
        metrics = {f"{key}{end}": value for key, value in metrics.items()}
        train = None
        if mode == ModeKeys.TRAIN:
            train = self._step(total, optimizer, trainable_variables, train_op_fn, update_ops)
        return EstimatorSpec(mode, found, total, train, metrics)

    def _weights(self, features: Any) -> Any:
        """The examples' weights, [batch, 1]; `None` if they count alike."""
        column = self.weight_column
        if column is None:
            return None
        column = tf.feature_column.numeric_column(column) if isinstance(column, str) else column
        return column.make(features)

    def _step(
        self, loss: Any, optimizer: Any, variables: Any, train_op_fn: Any, updates: Any
    ) -> Any:
        if (optimizer is None) == (train_op_fn is None):
            text = "expected an optimizer or a train_op_fn, and not both"
            raise fail(ArgumentError, f"{type(self).__name__}: {text}")
        with tf.control_dependencies(list(updates or ())):
            if train_op_fn is not None:
                return train_op_fn(tf.identity(loss))
            step = tf.train.get_global_step()
            return optimizer.minimize(tf.identity(loss), var_list=variables, global_step=step)


class _Classes(Head):
    """Of classes.

    Args:
        label_vocabulary: the classes' names, if labels are texts.
        weight_column, loss_reduction, name: as in `Head`.
    """

    count: int

    def __init__(
        self, weight_column: Any, label_vocabulary: Sequence[Any] | None, loss_reduction: str,
        name: str | None,
    ) -> None:  # fmt: skip
        super().__init__(weight_column, loss_reduction, name)
        self.vocabulary = label_vocabulary

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Logits, probabilities, and the likeliest classes."""
        both = self._all(logits)
        ids = tf.argmax(both, 1)
        names = tf.as_string(ids) if self.vocabulary is None else \
            tf.gather(tf.constant(self.vocabulary), ids)  # fmt: skip
        return {
            "logits": logits, "probabilities": tf.nn.softmax(both), "class_ids": ids[:, None],
            "classes": names[:, None],
        }  # fmt: skip

    def _all(self, logits: Any) -> Any:
        return logits

    def _losses(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        if self.vocabulary is not None:
            labels = index_table_from_tensor(tf.constant(self.vocabulary)).lookup(labels)
        flat = tf.cast(tf.reshape(labels, [-1]), tf.int64)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=flat, logits=self._all(logits)
        )
        return losses[:, None], flat[:, None]

    def _metrics(self, found: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        return {"accuracy": tf.metrics.accuracy(labels, found["class_ids"], weights)}

    def _exports(self, found: dict[str, Any]) -> dict[str, Any]:
        names = self.vocabulary or [str(i) for i in range(self.count)]
        rows = tf.shape(found["logits"])[0]
        classes = tf.tile(tf.constant([list(names)]), tf.stack([rows, 1]))
        return {"classification": ClassificationOutput(found["probabilities"], classes)}


class MultiClassHead(_Classes):
    """Of several classes, by softmax.

    Args:
        n_classes: 3 or more.
        weight_column: the feature with the examples' weights, or its column.
        label_vocabulary: the classes' names, if labels are texts.
        loss_reduction: the loss is the mean over examples, or their sum for `"sum"`.
        name: of the head; added to the names of metrics.
    """

    def __init__(
        self, n_classes: int, weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None, loss_reduction: str = _MEANS[0],
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight_column, label_vocabulary, loss_reduction, name)
        if n_classes <= _BOTH:
            text = f"expected n_classes of 3 or more, got {n_classes}; two have BinaryClassHead"
            raise fail(ArgumentError, f"MultiClassHead: {text}")
        self.count = n_classes

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self.count


class BinaryClassHead(_Classes):
    """Of two classes, by one logit.

    Args:
        weight_column, label_vocabulary, loss_reduction, name: as in `MultiClassHead`.
    """

    count = 2

    def __init__(
        self, weight_column: Any = None, label_vocabulary: Sequence[Any] | None = None,
        loss_reduction: str = _MEANS[0], name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight_column, label_vocabulary, loss_reduction, name)

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return 1

    def _all(self, logits: Any) -> Any:
        return tf.concat([tf.zeros_like(logits), logits], 1)

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Logits, the probability of the second class and of both, and the likelier class."""
        return super().predictions(logits) | {"logistic": tf.sigmoid(logits)}

    def _metrics(self, found: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        ids, likely = found["class_ids"], found["logistic"]
        share = tf.metrics.mean(labels, weights)
        return super()._metrics(found, labels, weights) | {
            "precision": tf.metrics.precision(labels, ids, weights),
            "recall": tf.metrics.recall(labels, ids, weights),
            "prediction/mean": tf.metrics.mean(likely, weights),
            "label/mean": share,
            "accuracy_baseline": tuple([tf.maximum(x, 1 - x) for x in share]),
            "auc": tf.metrics.auc(labels, likely, weights),
            "auc_precision_recall": tf.metrics.auc(labels, likely, weights, curve="PR"),
        }

    def _exports(self, found: dict[str, Any]) -> dict[str, Any]:
        return super()._exports(found) | {"regression": RegressionOutput(found["logistic"])}


class RegressionHead(Head):
    """Of numbers, by their squared differences.

    Args:
        weight_column: the feature with the examples' weights, or its column.
        label_dimension: how many numbers an example has.
        loss_reduction: the loss is the mean over examples, or their sum for `"sum"`.
        name: of the head; added to the names of metrics.
    """

    def __init__(
        self, weight_column: Any = None, label_dimension: int = 1,
        loss_reduction: str = _MEANS[0], name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight_column, loss_reduction, name)
        self._dimension = label_dimension

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self._dimension

    def predictions(self, logits: Any) -> dict[str, Any]:
        """The logits."""
        return {"predictions": logits}

    def _losses(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        wanted = tf.reshape(tf.cast(labels, tf.float32), tf.shape(logits))
        return tf.squared_difference(logits, wanted), wanted

    def _metrics(self, found: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        return {
            "label/mean": tf.metrics.mean(labels, weights),
            "prediction/mean": tf.metrics.mean(found["predictions"], weights),
        }

    def _exports(self, found: dict[str, Any]) -> dict[str, Any]:
        return {"regression": RegressionOutput(found["predictions"])}
