"""Losses, optimizers and metrics by name, and losses weighted per item."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft import metrics as m
from weft import nn, optim
from weft.eager.functions.api import Tensor, as_tensor, clamp, log, tensor, where
from weft.errors import ArgumentError, ShapeError
from weft.nn import Module as NNModule
from weft.nn import functional as F

Loss = Callable[..., Any]
SMALLEST: Final = 1e-7  # probabilities are clipped to it before the logarithm, as in Keras


def _logs(p: Tensor) -> Tensor:
    return log(clamp(p, SMALLEST, 1.0))


def _sparse(p: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    if p.shape[:-1] != y.shape:
        raise ShapeError.here(
            "sparse_categorical_crossentropy: expected class numbers of shape "
            f"{tuple(p.shape[:-1])} for probabilities {tuple(p.shape)}, classes last, got "
            f"{tuple(y.shape)}"
        )
    losses = F.nll_loss(_logs(p).reshape(-1, p.shape[-1]), y.reshape(-1).long(), reduction="none")
    return losses.mean() if reduction == "mean" else losses.reshape(y.shape)


def _categorical(p: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    if p.shape != y.shape:
        raise ShapeError.here(
            f"categorical_crossentropy: expected targets of shape {tuple(p.shape)}, one-hot, got "
            f"{tuple(y.shape)}; sparse_categorical_crossentropy takes class numbers"
        )
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


def metrics_of(given: Any, loss: Loss | None = None) -> dict[str, Any]:
    """Metrics, or functions of outputs and targets, by their logged names.

    Args:
        loss: says whether outputs are logits, for metrics given by name.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: _metric(x, loss)[1] for name, x in given.items()}
    each: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    return dict([_metric(x, loss) for x in each])


def _metric(given: Any, loss: Loss | None) -> tuple[str, Any]:
    if isinstance(given, str):
        made = _named("metric", METRICS, given)()
        if isinstance(made, m.Accuracy) and _takes_binary_logits(loss):
            made.threshold = 0.0
        return given, made
    if isinstance(given, m.Metric):
        return type(given).__name__.lower(), copy.deepcopy(given)
    if callable(given):
        return getattr(given, "__name__", "metric"), given
    return "", _named("metric", METRICS, given)


def _takes_binary_logits(loss: Loss | None) -> bool:
    return loss is _binary_logits or isinstance(loss, nn.BCEWithLogitsLoss)


def _named(what: str, table: Mapping[str, Any], given: Any) -> Any:
    if not isinstance(given, str) or given not in table:
        raise ArgumentError.here(
            f"train: expected as {what} an object, a function or a name of {sorted(table)}, got "
            f"{given!r}"
        )
    return table[given]


def takes_classes(loss: Loss) -> bool:
    """Whether the targets of a loss are class numbers, one for each row of scores."""
    if isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss):
        return True
    return any(loss is x for x in (F.cross_entropy, F.nll_loss, _sparse))


def has_one_class(loss: Loss) -> bool:
    """Whether each row has one class: of its scores, and of targets of their shape."""
    return takes_classes(loss) or loss is _categorical


def weighted(loss: Loss, outputs: Any, targets: Any, weights: Sequence[Any]) -> Any:
    """The mean of the losses of all items, multiplied by weights, as in Keras.

    Args:
        weights: factors (N) or (N, 1) of rows, or of rows and steps, or of all losses.

    Raises:
        ArgumentError: the loss gives only one number.
        ShapeError: weights do not fit.
    """
    losses, reduction = _unreduced(loss, outputs, targets)
    if not isinstance(losses, Tensor) or losses.ndim == 0:
        raise ArgumentError.here(
            "train: expected a loss with an argument `reduction`, or one number an item, as items "
            "have weights; got one number"
        )
    for factors in weights:
        losses = losses * _fitted(factors, losses)
    return losses.sum() if reduction == "sum" else losses.mean()


def _unreduced(loss: Loss, outputs: Any, targets: Any) -> tuple[Any, str]:
    """The losses of all items, and the reduction that the loss itself would make."""
    if isinstance(loss, NNModule) and hasattr(loss, "reduction"):
        own, reduction = copy.copy(loss), str(loss.reduction)
        own.reduction = "none"
        return own(outputs, targets), reduction
    if "reduction" in inspect.signature(loss).parameters:
        return loss(outputs, targets, reduction="none"), "mean"
    return loss(outputs, targets), "mean"


def _fitted(factors: Any, losses: Tensor) -> Tensor:
    """Weights of rows, or of the losses' first dimensions, so that they broadcast to the losses."""
    w = factors if isinstance(factors, Tensor) else as_tensor(factors)
    given = tuple(w.shape)
    while w.ndim and w.shape[-1] == 1 and w.shape != losses.shape[: w.ndim]:
        w = w.squeeze(-1)
    if w.shape != losses.shape[: w.ndim]:
        raise ShapeError.here(
            f"train: expected weights of rows, ({losses.shape[0]},), or of the losses' shape "
            f"{tuple(losses.shape)}, got {given}"
        )
    return w.to(losses.dtype).reshape(*w.shape, *[1] * (losses.ndim - w.ndim))


class ClassWeights:
    """Factors of the losses of classes; classes without one have the factor 1, as in Keras.

    Args:
        factors: by class number.

    Raises:
        ArgumentError: a key is no class number.
    """

    def __init__(self, factors: Mapping[Any, Any]) -> None:
        odd = [k for k in factors if isinstance(k, str) or int(k) != k]
        if odd:
            raise ArgumentError.here(
                f"fit: expected class_weight as a dictionary of class numbers, got keys {odd!r}"
            )
        numbers = [int(k) for k in factors]
        self._first, self._last = min(numbers, default=0), max(numbers, default=-1)
        table = np.ones(self._last - self._first + 2, np.float32)  # the last one: all others
        table[[n - self._first for n in numbers]] = list(factors.values())
        self._table = tensor(table)

    def of(self, outputs: Any, targets: Any) -> Tensor:
        """The factors of rows: of class numbers (N), (N, 1) or (N, steps), or of one-hot rows.

        Raises:
            ArgumentError: there are several targets.
        """
        if not isinstance(targets, Tensor):
            raise ArgumentError.here(
                "fit: expected one tensor of targets with class_weight, got "
                f"{type(targets).__name__}; give sample_weight instead"
            )
        y = class_numbers(outputs, targets)
        y = y.round().long() if y.dtype.is_floating else y.long()
        known = (y >= self._first) & (y <= self._last)
        return self._table[where(known, y - self._first, self._table.numel() - 1)]


def class_numbers(outputs: Any, y: Tensor) -> Tensor:
    """The classes of rows: targets (N, 1) without that dimension, one-hot ones by their maximum."""
    if y.ndim > 1 and y.shape[-1] == 1:
        return y.squeeze(-1)
    alike = isinstance(outputs, Tensor) and outputs.shape == y.shape
    return y.argmax(-1) if y.ndim > 1 and alike else y
