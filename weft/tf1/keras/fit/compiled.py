"""The arguments of `compile` for each output: loss, loss weight, metrics; by name or object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.errors import ArgumentError, UnknownKeyError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import losses as loss_module
from weft.tf1.keras import metrics as metric_module
from weft.tf1.keras.losses import FunctionLoss
from weft.tf1.version import Behavior

_SPARSE: Final = loss_module.sparse_categorical_crossentropy
_ACCURACY: Final = {
    "binary": metric_module.binary_accuracy,
    "sparse": metric_module.sparse_categorical_accuracy,
    "categorical": metric_module.categorical_accuracy,
}
_ENTROPY: Final = {
    "binary": loss_module.binary_crossentropy, "sparse": _SPARSE,
    "categorical": loss_module.categorical_crossentropy,
}  # fmt: skip
_GENERAL: Final = {"accuracy": "acc", "acc": "acc", "crossentropy": "ce", "ce": "ce"}


@dataclass
class Output:
    """The loss and metrics of one output.

    Attributes:
        tensor: the output.
        loss: a function or an object; `None` for an output without targets.
        metrics: with their names, and whether example weights count.
    """

    name: str
    tensor: Any
    loss: Any
    loss_weight: float = 1.0
    metrics: list[tuple[str, Any, bool]] = field(default_factory=list[tuple[str, Any, bool]])

    @property
    def function(self) -> Any:
        """The loss's function, if it has one."""
        return type(self.loss).function if isinstance(self.loss, FunctionLoss) else self.loss

    @property
    def target_shape(self) -> list[int | None]:
        """The static shape of targets."""
        shape = self.tensor.shape.as_list()
        if self.function is _SPARSE:
            return [*shape[:-1], 1]
        known = self.function in loss_module.NAMES.values()
        return shape if known else [None] * len(shape)


def outputs_of(
    names: Sequence[str], tensors: Sequence[Any], loss: Any, loss_weights: Any, metrics: Any,
    weighted_metrics: Any,
) -> list[Output]:  # fmt: skip
    """The loss and metrics of each output.

    Raises:
        ArgumentError, UnknownKeyError: numbers or names do not match the outputs.
    """
    losses = _each("loss", loss, names)
    scales = _each("loss_weights", loss_weights, names)
    found: list[Output] = []
    for name, tensor, one, scale in zip(names, tensors, losses, scales, strict=True):
        made = None if one is None else loss_module.get(one)
        found.append(Output(name, tensor, made, 1.0 if scale is None else float(scale)))
    for given, is_weighted in ((metrics, False), (weighted_metrics, True)):
        for output, own in zip(found, _metrics_of_each(given, names), strict=True):
            prefix = f"{output.name}_" if len(names) > 1 else ""
            for metric in own:
                output.metrics.append((*_metric(metric, output, prefix, is_weighted), is_weighted))
    return found


def _each(what: str, given: Any, names: Sequence[str]) -> list[Any]:
    """One entry for each output."""
    if isinstance(given, Mapping) and "class_name" not in given:
        _require_known(what, given, names)
        return [given.get(n) for n in names]
    if isinstance(given, list | tuple):
        if len(given) != len(names):
            raise fail(
                ArgumentError,
                f"compile: expected {what} for the outputs {list(names)}, got {len(given)}",
            )
        return list(given)
    return [given] * len(names)


def _require_known(what: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise fail(
            UnknownKeyError,
            f"compile: expected {what} for the outputs {list(names)}, got {unknown}",
        )


def _metrics_of_each(given: Any, names: Sequence[str]) -> list[list[Any]]:
    """The metrics of each output: one list for all, or a list of lists."""
    if given is None:
        return [[] for _ in names]
    if isinstance(given, Mapping):
        _require_known("metrics", given, names)
        return [_listed(given.get(n)) for n in names]
    items = _listed(given)
    if any(isinstance(x, list | tuple) for x in items):
        return [_listed(x) for x in _each("metrics", items, names)]
    return [list(items) for _ in names]


def _listed(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, list | tuple) else [x]


def _metric(given: Any, output: Output, prefix: str, is_weighted: bool) -> tuple[str, Any]:
    """A metric, and its reported name."""
    if isinstance(given, str) and given in _GENERAL:
        label = given if Behavior.is_2 else _GENERAL[given]
        function = (_ACCURACY if _GENERAL[given] == "acc" else _ENTROPY)[_kind(output)]
    else:
        function = metric_module.get(given)
        label = getattr(function, "name", None) or getattr(function, "__name__", "metric")
        label = given if Behavior.is_2 and isinstance(given, str) else label
    name = f"{prefix}{'weighted_' if is_weighted and function is not given else ''}{label}"
    if isinstance(function, metric_module.Metric):
        return f"{prefix}{function.name}", function
    return name, metric_module.MeanMetricWrapper(_plain(function), name=name)


def _plain(function: Any) -> Any:
    return function.call if isinstance(function, loss_module.Loss) else function


def _kind(output: Output) -> str:
    """The meaning of accuracy for an output: by its shape, or by its loss."""
    if output.tensor.shape.as_list()[-1] == 1 or output.function is _ENTROPY["binary"]:
        return "binary"
    return "sparse" if output.function is _SPARSE else "categorical"
