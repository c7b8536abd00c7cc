"""Steps that a model defines itself, by `train_step` and `test_step`, and what they may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

import weft.tf1 as tf
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.eager.function import function
from weft.tf1.framework.graph import acts_in_order
from weft.tf1.keras.engine import nest
from weft.tf1.keras.fit.compiled import Output, outputs_of
from weft.tf1.keras.fit.loading import parts_of
from weft.tf1.keras.fit.steps import loss_of, total_of
from weft.tf1.keras.metrics import Mean, Metric


class Given(NamedTuple):
    """A batch as the program gave it.

    Attributes:
        data: the argument of a step.
    """

    data: Any

    @property
    def rows(self) -> int:
        """The batch size."""
        return next((len(x) for x in leaves(self.data) if np.ndim(x)), 1)


def packed(x: Any, y: Any, weights: Any) -> Any:
    """The argument of a step for arrays: x alone, or a tuple."""
    parts = (x, y) if weights is None else (x, y, weights)
    nested = isinstance(x, tuple | list | Mapping)
    return parts if y is not None or weights is not None else (x,) if nested else x


class Compiled:
    """The loss and the metrics of `compile`, for steps that a program writes.

    Args:
        told: the arguments of `compile`.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told
        self._outputs: list[Output] | None = None
        self._mean: Any = None

    def loss(
        self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None
    ) -> Any:
        """The loss of a batch; its mean over rows is the metric `loss`."""
        each = [e for e in self._each(y, y_pred, sample_weight) if e[0].loss is not None]
        parts = [loss_of(*e) for e in each]
        total = total_of([output for output, _, _ in each], parts, regularization_losses or ())
        if self._mean is None:
            self._mean = Mean("loss")
        rows = tf.shape(nest.flatten(y_pred)[0])[0]
        self._mean.update_state(total, tf.cast(rows, "float32"))
        return total

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch in the metrics."""
        for output, target, weights in self._each(y, y_pred, sample_weight):
            for _, metric, is_weighted in output.metrics:
                metric.update_state(target, output.tensor, weights if is_weighted else None)

    @property
    def metrics(self) -> list[Any]:
        """The mean of the loss, and the metrics, as far as batches have made them."""
        own = [] if self._mean is None else [self._mean]
        return [*own, *[m for o in self._outputs or () for _, m, _ in o.metrics]]

    def _each(self, y: Any, y_pred: Any, weights: Any) -> list[tuple[Output, Any, Any]]:
        tensors, targets = nest.flatten(y_pred), nest.flatten(y)
        if self._outputs is None:
            names = [f"output_{i + 1}" for i in range(len(tensors))]
            self._outputs = outputs_of(names, tensors, **self._told)
        for output, tensor in zip(self._outputs, tensors, strict=True):
            output.tensor = tensor
        given = nest.flatten(weights) if weights is not None else [None] * len(tensors)
        return list(zip(self._outputs, targets, given, strict=True))


class OwnSteps:
    """Runs a model's own steps, each as one program.

    Attributes:
        losses: how many results are means over a batch: what a step returns are results so far.
    """

    losses = 0

    def __init__(self, model: Any) -> None:
        self._train = function(model.train_step)
        self._test = function(model.test_step)

    def train(self, batch: Given) -> dict[str, Any]:
        """The results of `train_step`."""
        return _figures(self._train, batch)

    def test(self, batch: Given) -> dict[str, Any]:
        """The results of `test_step`."""
        return _figures(self._test, batch)


def _figures(step: Callable[..., Any], batch: Given) -> dict[str, Any]:
    found = step(map_leaves(tf.convert_to_tensor, batch.data))
    return {str(name): np.asarray(value)[()] for name, value in found.items()}


class StepMethods:
    """What a model's own `train_step` and `test_step` override and may call, as in TensorFlow 2."""

    optimizer: Any
    submodules: Any
    _own: OwnSteps | None
    _compiled_parts: Compiled | None

    @property
    def compiled_loss(self) -> Any:
        """The loss of `compile`: a function of targets, predictions and weights."""
        return self._parts.loss

    @property
    def compiled_metrics(self) -> Compiled:
        """The metrics of `compile`."""
        return self._parts

    @property
    def _parts(self) -> Compiled:
        if self._compiled_parts is None:
            self._compiled_parts = Compiled(cast(Any, self).told)
        return self._compiled_parts

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
    ) -> Any:
        """The loss of a batch, with the losses of layers."""
        del x
        losses = cast(Any, self).losses
        return self.compiled_loss(y, y_pred, sample_weight, regularization_losses=losses)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> dict[str, Any]:
        """The metrics after a batch, by name."""
        del x
        self.compiled_metrics.update_state(y, y_pred, sample_weight)
        return {metric.name: metric.result() for metric in self._metrics_of_steps()}

    def train_step(self, data: Any) -> dict[str, Any]:
        """Forward, gradients, update, metrics; override it for steps of your own."""
        x, y, weights = parts_of(data)
        with tf.GradientTape() as tape:
            y_pred = cast(Any, self)(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weights)
        variables = cast(Any, self).trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return self.compute_metrics(x, y, y_pred, weights)

    def test_step(self, data: Any) -> dict[str, Any]:
        """The same without an update."""
        x, y, weights = parts_of(data)
        y_pred = cast(Any, self)(x, training=False)
        self.compute_loss(x, y, y_pred, weights)
        return self.compute_metrics(x, y, y_pred, weights)

    @property
    def own_steps(self) -> OwnSteps:
        """The steps that the model defines, each as one program."""
        if self._own is None:
            self._own = OwnSteps(self)
        return self._own

    def _has_own(self, stage: str) -> bool:
        """Whether the model defines the step of a stage, in TensorFlow 2."""
        name = "train_step" if stage == "fit" else "test_step"
        defined = getattr(type(self), name) is not getattr(StepMethods, name)
        return defined and acts_in_order()

    def _metrics_of_steps(self) -> list[Any]:
        """The metrics of `compile`, and those that layers have as attributes."""
        parts = [] if self._compiled_parts is None else self._compiled_parts.metrics
        layers = self.submodules()
        return [*parts, *[m for x in layers for m in vars(x).values() if isinstance(m, Metric)]]
