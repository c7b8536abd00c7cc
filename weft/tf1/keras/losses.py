"""`tf.keras.losses`: functions of targets and predictions, one value per example; and classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ops.loss import classification, regression
from weft.tf1.framework.graph import emit, fail
from weft.tf1.keras.engine.graph_state import snake
from weft.tf1.keras.storage.serialization import Configured, getter, serialize, table_of
from weft.tf1.version import Behavior

__all__ = [
    "KLD", "MAE", "MAPE", "MSE", "MSLE", "BinaryCrossentropy", "CategoricalCrossentropy",
    "CategoricalHinge", "CosineSimilarity", "Hinge", "Huber", "KLDivergence", "LogCosh", "Loss",
    "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "Poisson", "Reduction", "SparseCategoricalCrossentropy",
    "SquaredHinge", "binary_crossentropy", "categorical_crossentropy", "categorical_hinge",
    "cosine", "cosine_proximity", "cosine_similarity", "deserialize", "get", "hinge", "huber_loss",
    "kld", "kullback_leibler_divergence", "logcosh", "mae", "mape", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error", "mse",
    "msle", "poisson", "serialize", "sparse_categorical_crossentropy", "squared_hinge",
]  # fmt: skip

EPSILON: Final = 1e-7
Function = Callable[..., Any]


def _same(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    y_pred = tf.convert_to_tensor(y_pred)
    return tf.cast(y_true, y_pred.dtype), y_pred


def _mean(x: Any) -> Any:
    return tf.reduce_mean(x, axis=-1)


def _clipped(probabilities: Any) -> Any:
    return tf.clip_by_value(probabilities, EPSILON, 1.0 - EPSILON)


def _by(formula: Callable[..., Value], p: Any, t: Any) -> Any:
    """A formula on graph values, applied to predictions and targets."""
    return emit("Mul", [p, t], formula, name="losses")


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """mean((y_pred - y_true) ** 2)"""
    t, p = _same(y_true, y_pred)
    return _mean(tf.square(p - t))


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """mean(abs(y_pred - y_true))"""
    t, p = _same(y_true, y_pred)
    return _mean(tf.abs(p - t))


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """100 * mean(abs((y_true - y_pred) / y_true))"""
    t, p = _same(y_true, y_pred)
    build = partial(regression.absolute_percentage_error, epsilon=EPSILON)
    return _mean(_by(build, p, t))


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """mean((log(y_pred + 1) - log(y_true + 1)) ** 2)"""
    t, p = _same(y_true, y_pred)
    build = partial(regression.squared_logarithmic_error, epsilon=EPSILON)
    return _mean(_by(build, p, t))


def _hinge(y_true: Any, y_pred: Any) -> Any:
    t, p = _same(y_true, y_pred)

    def build(x: Any, labels: Any) -> Any:
        return regression.hinge(x, classification.signs(labels), at_margin=True)

    return _by(build, p, t)


def hinge(y_true: Any, y_pred: Any) -> Any:
    """mean(max(0, 1 - y_true * y_pred)), of labels -1 and 1, or 0 and 1"""
    return _mean(_hinge(y_true, y_pred))


def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """mean(max(0, 1 - y_true * y_pred) ** 2), of labels -1 and 1, or 0 and 1"""
    return _mean(tf.square(_hinge(y_true, y_pred)))


def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """max(0, 1 + largest other prediction - prediction of the class)"""
    t, p = _same(y_true, y_pred)
    return _by(classification.categorical_hinge, p, t)


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Half the squared error; linear beyond `delta`."""
    t, p = _same(y_true, y_pred)

    def build(x: Value, target: Value) -> Value:
        return regression.huber_loss(x, target, None, delta=delta, reduction="none")

    return _mean(_by(build, p, t))


def logcosh(y_true: Any, y_pred: Any) -> Any:
    """mean(log(cosh(y_pred - y_true)))"""
    t, p = _same(y_true, y_pred)
    return _mean(_by(regression.log_cosh, p, t))


def _logits_of(y_pred: Any, kind: str, from_logits: bool) -> Any:
    """The logits: predictions, or those behind a softmax or sigmoid, which give a more exact loss.

    TensorFlow 2 takes those behind, with a warning, also where predictions are told to be logits.
    """
    inputs = y_pred.op.inputs  # none of what was computed at once
    behind = inputs[0] if inputs and y_pred.op.type == kind else None
    if from_logits and (behind is None or not Behavior.is_2):
        return y_pred
    return behind


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> Any:
    """-sum(y_true * log(y_pred)), of probabilities, or of logits if `from_logits`."""
    t, p = _same(y_true, y_pred)
    if label_smoothing:
        classes = tf.cast(tf.shape(t)[-1], p.dtype)
        t = classification.smoothed(t, label_smoothing, classes)
    logits = _logits_of(p, "Softmax", from_logits)
    if logits is not None:
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=t, logits=logits)
    return _by(partial(classification.class_log_loss, epsilon=EPSILON), p, t)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """-log(y_pred[class]), of class numbers, and of probabilities or logits."""
    p = tf.convert_to_tensor(y_pred)
    logits = _logits_of(p, "Softmax", from_logits)
    if logits is None:
        logits = tf.log(_clipped(p))
    rank = logits.shape.ndims or 2
    if axis not in (-1, rank - 1):
        order = [i for i in range(rank) if i != axis % rank]
        logits = tf.transpose(logits, [*order, axis % rank])
    dims = logits.shape.as_list()
    rows = tf.reshape(logits, [-1, tf.shape(logits)[-1] if dims[-1] is None else dims[-1]])
    labels = tf.reshape(tf.cast(y_true, tf.int64), [-1])
    found = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=rows)
    return found if rank == 2 else tf.reshape(found, tf.shape(logits)[:-1])


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> Any:
    """-mean(y_true * log(y_pred) + (1 - y_true) * log(1 - y_pred))"""
    t, p = _same(y_true, y_pred)
    if label_smoothing:
        t = classification.smoothed(t, label_smoothing, 2)
    logits = _logits_of(p, "Sigmoid", from_logits)
    if logits is not None:
        return _mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=logits))
    return _mean(_by(partial(classification.log_loss, epsilon=EPSILON), _clipped(p), t))


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """sum(y_true * log(y_true / y_pred))"""
    t, p = _same(y_true, y_pred)
    return _by(partial(classification.relative_entropy, epsilon=EPSILON), p, t)


def poisson(y_true: Any, y_pred: Any) -> Any:
    """mean(y_pred - y_true * log(y_pred))"""
    t, p = _same(y_true, y_pred)

    def build(x: Value, target: Value) -> Value:
        return regression.poisson_nll_loss(
            x, target, log_input=False, full=False, eps=EPSILON, reduction="none"
        )

    return _mean(_by(build, p, t))


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """-sum(normalized y_true * normalized y_pred): minimal for equal directions"""
    t, p = _same(y_true, y_pred)
    return -tf.reduce_sum(tf.nn.l2_normalize(t, axis) * tf.nn.l2_normalize(p, axis), axis=axis)


class Loss(Configured):
    """Base class; a subclass defines `call(y_true, y_pred)`.

    Args:
        reduction: `"auto"` and `"sum_over_batch_size"` take the mean, `"sum"` the sum, `"none"`
            keeps one value per example.
    """

    def __init__(self, reduction: str = "auto", name: str | None = None) -> None:
        if reduction not in vars(Reduction).values():
            raise fail(ArgumentError, f"Loss: expected a losses.Reduction, got {reduction!r}")
        self.reduction, self.name = reduction, name or snake(type(self).__name__)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One value per example."""
        raise NotImplementedError

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The loss of a batch."""
        return reduced(self.call(y_true, y_pred), sample_weight, self.reduction)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"reduction": self.reduction, "name": self.name}


class Reduction:
    """How the values of examples are reduced."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"


def reduced(losses: Any, weights: Any, reduction: str) -> Any:
    """Values of examples, weighted and reduced."""
    losses = tf.convert_to_tensor(losses)
    if weights is not None:
        losses = weighted(losses, weights)
    if reduction == Reduction.NONE:
        return losses
    total = tf.reduce_sum(losses)
    return total if reduction == Reduction.SUM else total / tf.cast(tf.size(losses), losses.dtype)


def weighted(losses: Any, weights: Any) -> Any:
    """Losses times weights of examples, (N,) or (N, 1), or of examples and steps.

    Raises:
        ShapeError: the weights have more dimensions than the losses.
    """
    factor = tf.cast(tf.convert_to_tensor(weights), losses.dtype)
    rank, own = losses.shape.ndims or 0, factor.shape.ndims or 0
    if own == rank + 1 and rank and factor.shape.as_list()[-1] == 1:
        factor, own = tf.squeeze(factor, [-1]), rank
    if own > rank and losses.shape.ndims is not None:
        raise fail(
            ShapeError,
            f"sample_weight: expected weights of rows, or of up to {rank} dimensions as the losses "
            f"have {losses.shape.as_list()}, got {own}",
        )
    for _ in range(rank - own):
        factor = tf.expand_dims(factor, -1)
    return losses * factor


class FunctionLoss(Loss):
    """A loss class from a function of targets and predictions."""

    function: Function

    def __init__(self, reduction: str = "auto", name: str | None = None, **options: Any) -> None:
        super().__init__(reduction, name)
        self.options = options

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One value per example."""
        return type(self).function(y_true, y_pred, **self.options)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), **self.options}


def _class(name: str, function: Function, first: str | None = None) -> type[FunctionLoss]:
    """A loss class; `first` is the option that comes first."""

    class Made(FunctionLoss):
        def __init__(self, *args: Any, **options: Any) -> None:
            given = dict(
                zip(([first] if first else []) + ["reduction", "name"], args, strict=False)
            )
            super().__init__(**{**given, **options})

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = function.__doc__
    Made.function = staticmethod(function)
    return Made


MeanSquaredError = _class("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _class("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Hinge = _class("Hinge", hinge)
SquaredHinge = _class("SquaredHinge", squared_hinge)
CategoricalHinge = _class("CategoricalHinge", categorical_hinge)
Huber = _class("Huber", huber_loss, "delta")
LogCosh = _class("LogCosh", logcosh)
CategoricalCrossentropy = _class("CategoricalCrossentropy", categorical_crossentropy, "from_logits")
SparseCategoricalCrossentropy = _class(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, "from_logits"
)
BinaryCrossentropy = _class("BinaryCrossentropy", binary_crossentropy, "from_logits")
KLDivergence = _class("KLDivergence", kullback_leibler_divergence)
Poisson = _class("Poisson", poisson)
CosineSimilarity = _class("CosineSimilarity", cosine_similarity, "axis")

mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence
cosine = cosine_proximity = cosine_similarity

NAMES: Final = table_of(globals(), "Loss", "Reduction")


get = deserialize = getter("loss", NAMES)
