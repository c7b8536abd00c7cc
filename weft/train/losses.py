"""Losses, optimizers and metrics by name, and losses weighted per item."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft import metrics as m
from weft import optim
from weft.eager.functions.api import Tensor, clamp, log
from weft.errors import ArgumentError
from weft.nn import Module as NNModule
from weft.nn import functional as F
from weft.ops.base import at_user_line

Loss = Callable[..., Any]
SMALLEST: Final = 1e-7  # probabilities are clipped to it before the logarithm, as in Keras


def _logs(p: Tensor) -> Tensor:
    return log(clamp(p, SMALLEST, 1.0))


def _sparse(p: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    return F.nll_loss(_logs(p), y, reduction=reduction)


def _categorical(p: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    losses = -(y * _logs(p)).sum(-1)
    return losses.mean() if reduction == "mean" else losses


def _binary(p: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    return F.binary_cross_entropy(p, y.to(p.dtype), reduction=reduction)


def _binary_logits(x: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    return F.binary_cross_entropy_with_logits(x, y.to(x.dtype), reduction=reduction)


LOSSES: Final[dict[str, Loss]] = {
    "cross_entropy": F.cross_entropy,
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _binary_logits,
    "nll_loss": F.nll_loss,
    "mse": F.mse_loss, "mse_loss": F.mse_loss, "mean_squared_error": F.mse_loss,
    "mae": F.l1_loss, "l1_loss": F.l1_loss, "mean_absolute_error": F.l1_loss,
    "huber": F.huber_loss,
    "sparse_categorical_crossentropy": _sparse,
    "categorical_crossentropy": _categorical,
    "binary_crossentropy": _binary,
}  # fmt: skip
"""PyTorch's names take logits where PyTorch's functions do; Keras's take probabilities."""

OPTIMIZERS: Final = {
    name.lower(): getattr(optim, name)
    for name in (
        "SGD",
        "Adam",
        "AdamW",
        "Adagrad",
        "RMSprop",
        "Adadelta",
        "Adamax",
        "NAdam",
        "Lion",
    )
}
_RATES: Final = {"sgd": 0.01, "rmsprop": 0.001}

METRICS: Final[dict[str, Callable[[], m.Metric]]] = {
    "accuracy": m.Accuracy, "acc": m.Accuracy, "mse": m.MeanSquaredError,
    "mean_squared_error": m.MeanSquaredError, "mae": m.MeanAbsoluteError,
    "mean_absolute_error": m.MeanAbsoluteError, "auc": m.AUROC, "auroc": m.AUROC,
    "perplexity": m.Perplexity,
}  # fmt: skip


def loss_of(given: Any) -> Loss:
    """A loss by name, or the given function or module.

    Raises:
        ArgumentError: the name is unknown, or the value is not callable.
    """
    if callable(given):
        return given
    return _named("loss", LOSSES, given)


def optimizer_of(given: Any, model: NNModule) -> Any:
    """An optimizer by name, the given one, or one that a function makes from parameters.

    Raises:
        ArgumentError: the name is unknown.
    """
    if isinstance(given, optim.Optimizer):
        return given
    if isinstance(given, str):
        name = given.lower()
        kind = _named("optimizer", OPTIMIZERS, name)
        options = {"lr": _RATES[name]} if name in _RATES else {}
        return kind(model.parameters(), **options)
    if callable(given):
        return given(model.parameters())
    return _named("optimizer", OPTIMIZERS, given)


def metrics_of(given: Any) -> dict[str, Any]:
    """Metrics, or functions of outputs and targets, by their logged names."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: _metric(x)[1] for name, x in given.items()}
    each: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    return dict([_metric(x) for x in each])


def _metric(given: Any) -> tuple[str, Any]:
    if isinstance(given, str):
        return given, _named("metric", METRICS, given)()
    if isinstance(given, m.Metric):
        return type(given).__name__.lower(), copy.deepcopy(given)
    if callable(given):
        return getattr(given, "__name__", "metric"), given
    return "", _named("metric", METRICS, given)


def _named(what: str, table: Mapping[str, Any], given: Any) -> Any:
    if not isinstance(given, str) or given not in table:
        raise ArgumentError(
            f"train: expected as {what} an object, a function or a name of {sorted(table)}, got "
            f"{given!r}{at_user_line()}"
        )
    return table[given]


def weighted(loss: Loss, outputs: Any, targets: Any, weights: Any) -> Any:
    """The mean of the weighted losses of all items, as in Keras.

    Raises:
        ArgumentError: the loss gives only one number.
    """
    if isinstance(loss, NNModule) and hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.reduction = "none"
        losses = loss(outputs, targets)
    elif "reduction" in inspect.signature(loss).parameters:
        losses = loss(outputs, targets, reduction="none")
    else:
        losses = loss(outputs, targets)
    if losses.ndim == 0:
        raise ArgumentError(
            "train: expected a loss with an argument `reduction`, or one number an item, as items "
            f"have weights; got one number{at_user_line()}"
        )
    each = losses.flatten(1).mean(1) if losses.ndim > 1 else losses
    return (each * weights).mean()
