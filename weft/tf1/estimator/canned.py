"""Estimators of linear models and of fully connected networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.estimator.estimator import Estimator
from weft.tf1.estimator.head import BinaryClassHead, Head, MultiClassHead, RegressionHead
from weft.tf1.estimator.modes import EstimatorSpec, ModeKeys
from weft.tf1.feature_column import input_layer, linear_model
from weft.tf1.framework.graph import fail
from weft.tf1.version import Behavior

__all__ = [
    "BaselineClassifier", "BaselineRegressor", "DNNClassifier", "DNNLinearCombinedClassifier",
    "DNNLinearCombinedRegressor", "DNNRegressor", "LinearClassifier", "LinearRegressor",
]  # fmt: skip


class _Rule(NamedTuple):
    """What trains the variables of a scope; of all, if it is empty.

    Attributes:
        optimizer: a name or an optimizer.
        rate: the learning rate of a named one.
    """

    optimizer: Any
    rate: float
    scope: str = ""

    def minimize(self, loss: Any) -> Any:
        """The update."""
        variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, self.scope or None)
        made = get_optimizer_instance(self.optimizer, self.rate)
        return made.minimize(loss, var_list=variables)


def _linear_rule(columns: Sequence[Any], optimizer: Any, most: float = 0.2) -> _Rule:
    return _Rule(optimizer, min(most, 1 / len(columns) ** 0.5), "linear")


def get_optimizer_instance(given: Any, rate: float) -> Any:
    """An optimizer: of a name and a learning rate, of a function that makes it, or itself.

    Args:
        given: the name, the function or the optimizer.
        rate: the learning rate of one by its name.
    """
    if not isinstance(given, str):
        return given() if callable(given) else given
    kinds = {"Adagrad": tf.train.AdagradOptimizer, "Adam": tf.train.AdamOptimizer,
             "Ftrl": tf.train.FtrlOptimizer, "RMSProp": tf.train.RMSPropOptimizer,
             "SGD": tf.train.GradientDescentOptimizer}  # fmt: skip
    return kinds[given](rate)


def _canned(
    logits: Callable[[Any, int, str], Any], classes: int | None, dimension: int, vocabulary: Any,
    *rules: _Rule,
) -> Callable[..., EstimatorSpec]:  # fmt: skip
    """A model function.

    Args:
        logits: a function of features, the number of outputs and the mode.
        classes: the number of classes; `None` for numbers.
        dimension: of the numbers.
        vocabulary: the classes' names.
        rules: what trains it.
    """

    def model(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        count = dimension if classes is None else 1 if classes == 2 else classes
        found = logits(features, count, mode)

        def minimize(loss: Any) -> Any:
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies([*[rule.minimize(loss) for rule in rules], *updates]):
                return tf.assign_add(tf.train.get_global_step(), 1)

        reduction = "sum_over_batch_size" if Behavior.is_2 else "sum"
        head: Head = RegressionHead(label_dimension=dimension, loss_reduction=reduction)
        if classes == 2:
            head = BinaryClassHead(label_vocabulary=vocabulary, loss_reduction=reduction)
        elif classes is not None:
            head = MultiClassHead(classes, label_vocabulary=vocabulary, loss_reduction=reduction)
        return head.create_estimator_spec(features, mode, found, labels, train_op_fn=minimize)

    return model


def _bias(features: Any, count: int, mode: str) -> Any:
    """Logits that do not depend on the features."""
    del mode
    rows = tf.shape(next(iter(features.values())) if isinstance(features, dict) else features)[0]
    with tf.variable_scope("baseline"):
        return tf.get_variable("bias", [count], initializer=tf.zeros_initializer()) * tf.ones(
            [rows, count]
        )


def _combined(
    linear: Sequence[Any], linear_optimizer: Any, network: Sequence[Any], network_optimizer: Any,
    *options: Any,
) -> tuple[Callable[[Any, int, str], Any], list[_Rule]]:  # fmt: skip
    """The sum of a linear model and a network, either of which may have no columns.

    Args:
        options: of `_network`, after the columns.
    """
    parts: list[Callable[[Any, int, str], Any]] = []
    rules: list[_Rule] = []
    if network:
        parts.append(_network(network, *options))
        rules.append(_Rule(network_optimizer, 0.001, "dnn"))
    if linear:
        parts.append(_linear(linear))
        rules.append(_linear_rule(linear, linear_optimizer, 0.005))
    if not parts:
        text = "expected linear_feature_columns or dnn_feature_columns"
        raise fail(ArgumentError, f"DNNLinearCombined: {text}")

    def logits(features: Any, count: int, mode: str) -> Any:
        return tf.add_n([part(features, count, mode) for part in parts])

    return logits, rules


def _network(
    columns: Sequence[Any], units: Sequence[int], activation: Any, dropout: float | None,
    batch_norm: bool,
) -> Callable[[Any, int, str], Any]:  # fmt: skip
    def logits(features: Any, count: int, mode: str) -> Any:
        training = mode == ModeKeys.TRAIN
        with tf.variable_scope("dnn"):
            with tf.variable_scope("input_from_feature_columns"):
                x = input_layer(features, columns)
            for n, width in enumerate(units):
                x = tf.layers.dense(x, width, activation, name=f"hiddenlayer_{n}")
                if dropout is not None and training:
                    x = tf.layers.dropout(x, dropout, training=True)
                if batch_norm:
                    x = tf.layers.batch_normalization(x, momentum=0.999, training=training)
            return tf.layers.dense(x, count, name="logits")

    return logits


def _linear(columns: Sequence[Any]) -> Callable[[Any, int, str], Any]:
    def logits(features: Any, count: int, mode: str) -> Any:
        del mode
        with tf.variable_scope("linear"):
            return linear_model(features, columns, units=count)

    return logits


class DNNClassifier(Estimator):
    """A classifier by a fully connected network.

    Args:
        hidden_units: the widths of the layers.
        feature_columns: of `tf.feature_column`.
        model_dir, config: as in `Estimator`.
        n_classes: the number of classes.
        label_vocabulary: the classes' names, if labels are texts.
        optimizer: a name or an optimizer; Adagrad by default, with a rate of 0.05.
        activation_fn: of the layers.
        dropout: the fraction of units that are dropped in training.
        batch_norm: whether layers are normalized.
    """

    def __init__(
        self, hidden_units: Sequence[int], feature_columns: Sequence[Any],
        model_dir: str | None = None, n_classes: int = 2, label_vocabulary: Any = None,
        optimizer: Any = "Adagrad", activation_fn: Any = tf.nn.relu, dropout: float | None = None,
        config: Any = None, batch_norm: bool = False,
    ) -> None:  # fmt: skip
        network = _network(feature_columns, hidden_units, activation_fn, dropout, batch_norm)
        model = _canned(network, n_classes, 1, label_vocabulary, _Rule(optimizer, 0.05))
        super().__init__(model, model_dir, config)


class DNNRegressor(Estimator):
    """Numbers predicted by a fully connected network.

    Args:
        label_dimension: how many numbers.
        hidden_units, feature_columns, model_dir, config, optimizer, activation_fn, dropout,
            batch_norm: as in `DNNClassifier`.
    """

    def __init__(
        self, hidden_units: Sequence[int], feature_columns: Sequence[Any],
        model_dir: str | None = None, label_dimension: int = 1, optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu, dropout: float | None = None, config: Any = None,
        batch_norm: bool = False,
    ) -> None:  # fmt: skip
        network = _network(feature_columns, hidden_units, activation_fn, dropout, batch_norm)
        model = _canned(network, None, label_dimension, None, _Rule(optimizer, 0.05))
        super().__init__(model, model_dir, config)


class LinearClassifier(Estimator):
    """A linear classifier.

    Args:
        optimizer: a name or an optimizer; FTRL by default, with a rate of
            min(0.2, 1 / sqrt(number of columns)).
        feature_columns, model_dir, config, n_classes, label_vocabulary: as in `DNNClassifier`.
    """

    def __init__(
        self, feature_columns: Sequence[Any], model_dir: str | None = None, n_classes: int = 2,
        label_vocabulary: Any = None, optimizer: Any = "Ftrl", config: Any = None,
    ) -> None:  # fmt: skip
        columns = list(feature_columns)
        rule = _linear_rule(columns, optimizer)
        model = _canned(_linear(columns), n_classes, 1, label_vocabulary, rule)
        super().__init__(model, model_dir, config)


class LinearRegressor(Estimator):
    """Numbers predicted by a linear model.

    Args:
        label_dimension: how many numbers.
        feature_columns, model_dir, config, optimizer: as in `LinearClassifier`.
    """

    def __init__(
        self, feature_columns: Sequence[Any], model_dir: str | None = None,
        label_dimension: int = 1, optimizer: Any = "Ftrl", config: Any = None,
    ) -> None:  # fmt: skip
        columns = list(feature_columns)
        rule = _linear_rule(columns, optimizer)
        model = _canned(_linear(columns), None, label_dimension, None, rule)
        super().__init__(model, model_dir, config)


class BaselineClassifier(Estimator):
    """A classifier that ignores the features and learns how frequent classes are.

    Args:
        optimizer: a name or an optimizer; FTRL by default, with a rate of 0.3.
        model_dir, config, n_classes, label_vocabulary: as in `DNNClassifier`.
    """

    def __init__(
        self, model_dir: str | None = None, n_classes: int = 2, *, label_vocabulary: Any = None,
        optimizer: Any = "Ftrl", config: Any = None,
    ) -> None:  # fmt: skip
        model = _canned(_bias, n_classes, 1, label_vocabulary, _Rule(optimizer, 0.3))
        super().__init__(model, model_dir, config)


class BaselineRegressor(Estimator):
    """Numbers predicted by their mean.

    Args:
        label_dimension: how many numbers.
        model_dir, config, optimizer: as in `BaselineClassifier`.
    """

    def __init__(
        self, model_dir: str | None = None, label_dimension: int = 1, *, optimizer: Any = "Ftrl",
        config: Any = None,
    ) -> None:  # fmt: skip
        model = _canned(_bias, None, label_dimension, None, _Rule(optimizer, 0.3))
        super().__init__(model, model_dir, config)


class DNNLinearCombinedClassifier(Estimator):
    """A classifier by the sum of a linear model and a fully connected network ("wide and deep").

    Args:
        linear_feature_columns, dnn_feature_columns: of `tf.feature_column`.
        linear_optimizer: a name or an optimizer; FTRL by default, with a rate of
            min(0.005, 1 / sqrt(number of columns)).
        dnn_optimizer: a name or an optimizer; Adagrad by default, with a rate of 0.001.
        dnn_hidden_units, dnn_activation_fn, dnn_dropout: of the network.
        model_dir, config, n_classes, label_vocabulary, batch_norm: as in `DNNClassifier`.
    """

    def __init__(
        self, model_dir: str | None = None, linear_feature_columns: Sequence[Any] = (),
        linear_optimizer: Any = "Ftrl", dnn_feature_columns: Sequence[Any] = (),
        dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Sequence[int] = (),
        dnn_activation_fn: Any = tf.nn.relu, dnn_dropout: float | None = None, n_classes: int = 2,
        *, label_vocabulary: Any = None, config: Any = None, batch_norm: bool = False,
    ) -> None:  # fmt: skip
        logits, rules = _combined(
            linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
            dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm,
        )  # fmt: skip
        model = _canned(logits, n_classes, 1, label_vocabulary, *rules)
        super().__init__(model, model_dir, config)


class DNNLinearCombinedRegressor(Estimator):
    """Numbers predicted by the sum of a linear model and a fully connected network.

    Args:
        label_dimension: how many numbers.
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
            dnn_hidden_units, dnn_activation_fn, dnn_dropout, config, batch_norm: as in
            `DNNLinearCombinedClassifier`.
    """

    def __init__(
        self, model_dir: str | None = None, linear_feature_columns: Sequence[Any] = (),
        linear_optimizer: Any = "Ftrl", dnn_feature_columns: Sequence[Any] = (),
        dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Sequence[int] = (),
        dnn_activation_fn: Any = tf.nn.relu, dnn_dropout: float | None = None,
        label_dimension: int = 1, *, config: Any = None, batch_norm: bool = False,
    ) -> None:  # fmt: skip
        logits, rules = _combined(
            linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
            dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm,
        )  # fmt: skip
        model = _canned(logits, None, label_dimension, None, *rules)
        super().__init__(model, model_dir, config)
