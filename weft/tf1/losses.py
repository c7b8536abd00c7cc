"""`tf.losses`: weighted losses, added to the collection `LOSSES`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from weft import ops
from weft.documentation import named
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.loss import classification, regression
from weft.ops.loss.reduction import weighted
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.nn import activation
from weft.tf1.shaping import arrangement


class Reduction:
    """How a loss is reduced to a scalar."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """`losses` times `weights`, reduced to a scalar (or not), and added to a collection."""
    if reduction not in Reduction.all():
        raise fail(GraphError, f"losses: expected a Reduction, got {reduction!r}")
    with name_scope(scope, "weighted_loss", [losses]):
        tensor = convert_to_tensor(losses)
        if not tensor.dtype.is_floating:
            tensor = arithmetic.to_float(tensor)
        scale = convert_to_tensor(weights)
        if scale.dtype.base_dtype is not tensor.dtype.base_dtype:
            scale = arithmetic.cast(scale, tensor.dtype)
        _require_weights(scale, tensor)
        kind, name = ("Mul", "Mul") if reduction == Reduction.NONE else ("DivNoNan", "value")
        loss = emit(kind, [tensor, scale], weighted, reduction, name=name)
        add_loss(loss, loss_collection)
    return loss


def _require_weights(weights: Tensor, losses: Tensor) -> None:
    w, x = weights.shape, losses.shape
    if not w.ndims or x.ndims is None:
        return
    fits = w.ndims <= x.ndims and all(
        a is None or b is None or a in (1, b)
        for a, b in zip(w.as_list(), x.as_list(), strict=False)
    )
    if not fits:
        raise fail(ShapeError, f"losses: expected weights that fit losses of shape {x}, got {w}")


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses of the default graph."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The regularizers' losses."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """The sum of the regularizers' losses."""
    found = get_regularization_losses(scope)
    return arithmetic.add_n(found, name=name) if found else convert_to_tensor(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses.

    Raises:
        GraphError: there are none.
    """
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return arithmetic.add_n(found, name=name)


def _elementwise(
    default: str, first: Any, second: Any, build: Any, weights: Any, scope: str | None,
    collection: str | None, reduction: str,
) -> Tensor:  # fmt: skip
    """An elementwise loss of predictions and labels."""
    if first is None or second is None:
        raise fail(GraphError, f"{default}: expected labels and predictions, got None")
    with name_scope(scope, default, [first, second]) as prefix:
        x = arithmetic.to_float(convert_to_tensor(second))
        t = arithmetic.to_float(convert_to_tensor(first))
        if not x.shape.is_compatible_with(t.shape):
            raise fail(ShapeError, f"{default}: expected labels of shape {x.shape}, got {t.shape}")
        found = emit("Mul", [x, t], build, name="losses")
        return compute_weighted_loss(found, weights, prefix, collection, reduction)


def _of_difference(title: str, build: Callable[[Value], Value], doc: str):
    @named(title, doc)
    def loss(
        labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
        loss_collection: str | None = GraphKeys.LOSSES,
        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    ) -> Tensor:  # fmt: skip
        return _elementwise(title, labels, predictions, lambda x, t: build(x - t), weights, scope,
                            loss_collection, reduction)  # fmt: skip

    return loss


mean_squared_error = _of_difference("mean_squared_error", ops.square, "(predictions - labels) ** 2")
absolute_difference = _of_difference("absolute_difference", ops.abs, "abs(predictions - labels)")


def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """-labels * log(predictions) - (1 - labels) * log(1 - predictions)"""

    build = partial(classification.log_loss, epsilon=epsilon)
    return _elementwise("log_loss", labels, predictions, build, weights, scope, loss_collection,
                        reduction)  # fmt: skip


def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """max(0, 1 - (2 * labels - 1) * logits)"""
    return _elementwise("hinge_loss", labels, logits,
                        lambda x, t: regression.hinge(x, t * 2.0 - 1.0), weights, scope,
                        loss_collection, reduction)  # fmt: skip


def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """Half the squared error; linear beyond `delta`."""

    def build(x: Value, t: Value) -> Value:
        return regression.huber_loss(x, t, None, delta=delta, reduction="none")

    return _elementwise("huber_loss", labels, predictions, build, weights, scope,
                        loss_collection, reduction)  # fmt: skip


def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """`tf.nn.softmax_cross_entropy_with_logits`, weighted; labels may be smoothed."""
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels]) as prefix:
        x = convert_to_tensor(logits)
        t = arithmetic.cast(convert_to_tensor(onehot_labels), x.dtype)
        if label_smoothing > 0:
            classes = x.shape.as_list()[-1]
            if classes is None:
                raise fail(ShapeError, "label_smoothing: expected a known number of classes")
            t = classification.smoothed(t, label_smoothing, classes)
        found = activation.softmax_cross_entropy_with_logits(labels=t, logits=x, name="xentropy")
        return compute_weighted_loss(found, weights, prefix, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`, weighted."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels]) as prefix:
        x, t = convert_to_tensor(logits), convert_to_tensor(labels)
        if t.shape.ndims is not None and t.shape.ndims == x.shape.ndims:
            t = arrangement.squeeze(t, [-1])
        found = activation.sparse_softmax_cross_entropy_with_logits(
            labels=t, logits=x, name="xentropy"
        )
        factors = convert_to_tensor(weights)
        if factors.shape.ndims == (found.shape.ndims or 0) + 1 and factors.shape.as_list()[-1] == 1:
            weights = arrangement.squeeze(factors, [-1])
        return compute_weighted_loss(found, weights, prefix, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """`tf.nn.sigmoid_cross_entropy_with_logits`, weighted; labels may be smoothed."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels]) as prefix:
        x = convert_to_tensor(logits)
        t = arithmetic.cast(convert_to_tensor(multi_class_labels), x.dtype)
        if label_smoothing > 0:
            t = classification.smoothed(t, label_smoothing, 2)
        found = activation.sigmoid_cross_entropy_with_logits(labels=t, logits=x, name="xentropy")
        return compute_weighted_loss(found, weights, prefix, loss_collection, reduction)
