"""Steps that a model defines itself, by `train_step` and its kin, and what they may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

import numpy as np

import weft.tf1 as tf
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.eager.function import function
from weft.tf1.framework.graph import acts_in_order
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.fit.compiled import Output, outputs_of
from weft.tf1.keras.fit.loading import parts_of
from weft.tf1.keras.fit.row_weights import row_weights
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


def weighed(batch: Any, factors: Mapping[Any, Any]) -> Any:
    """A batch whose weights are times those of its rows' classes."""
    x, y, weights = parts_of(batch)
    found = row_weights(weights, factors, [np.asarray(y)], ["targets"])
    return batch if found is None else (x, y, found[0])


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
    """Runs a model's own steps, each as one program where it can be traced.

    Attributes:
        losses: how many results are means over a batch: what a step returns are results so far.
    """

    losses = 0

    def __init__(self, model: Any) -> None:
        self._train = model.make_train_function()
        self._test = model.make_test_function()
        self._predict = model.make_predict_function()

    def train(self, batch: Given) -> dict[str, Any]:
        """The results of `train_step`."""
        return _figures(self._train, batch)

    def test(self, batch: Given) -> dict[str, Any]:
        """The results of `test_step`."""
        return _figures(self._test, batch)

    def predict(self, batch: Given) -> Any:
        """The results of `predict_step`, as arrays."""
        found = self._predict(iter([map_leaves(tf.convert_to_tensor, batch.data)]))
        return nest.mapped(np.asarray, found)


def _figures(run: Callable[..., Any], batch: Given) -> dict[str, Any]:
    found = run(iter([map_leaves(tf.convert_to_tensor, batch.data)]))
    arrays = {str(name): np.asarray(value) for name, value in found.items()}
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


_METHODS: Final = {
    "fit": ("train_step", "compute_loss", "compute_metrics", "make_train_function"),
    "test": ("test_step", "compute_loss", "compute_metrics", "make_test_function"),
    "predict": ("predict_step", "make_predict_function"),
}
"""What a stage calls, in TensorFlow 2."""


class StepMethods:
    """What a model's own steps override and may call, as in TensorFlow 2.

    Attributes:
        run_eagerly: whether Python runs each step, so that it may read values.
    """

    optimizer: Any
    submodules: Any
    run_eagerly: bool = False
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

    def predict_step(self, data: Any) -> Any:
        """The outputs for a batch."""
        return cast(Any, self)(parts_of(data)[0], training=False)

    def make_train_function(self, force: bool = False) -> Callable[..., Any]:
        """What runs `train_step` on the next batch of an iterator.

        Args:
            force: accepted, the function is made anew each time.
        """
        return self._runs(self.train_step)

    def make_test_function(self, force: bool = False) -> Callable[..., Any]:
        """The same for `test_step`."""
        return self._runs(self.test_step)

    def make_predict_function(self, force: bool = False) -> Callable[..., Any]:
        """The same for `predict_step`."""
        return self._runs(self.predict_step)

    def _runs(self, step: Callable[..., Any]) -> Callable[..., Any]:
        run = step if self._reads_values() else function(step)
        return lambda iterator: run(next(iterator))

    @property
    def own_steps(self) -> OwnSteps:
        """The steps that the model defines, each as one program."""
        if self._own is None:
            self._own = OwnSteps(self)
        return self._own

    def _has_own(self, stage: str) -> bool:
        """Whether the steps of a stage are not those of the model's graph, in TensorFlow 2."""
        methods = [getattr(type(self), name) for name in _METHODS.get(stage, _METHODS["test"])]
        own = any([method is not getattr(StepMethods, method.__name__, None) for method in methods])
        return acts_in_order() and (own or self._reads_values())

    def _reads_values(self) -> bool:
        """Whether a program reads values in steps, so that they cannot be traced."""
        parts = [] if self._compiled_parts is None else self._compiled_parts.metrics
        return (
            self.run_eagerly
            or (Layer.any_needs_values and any([x.needs_values for x in self.submodules()]))
            or any([getattr(metric, "dynamic", False) for metric in parts])
        )

    def _metrics_of_steps(self) -> list[Any]:
        """The metrics of `compile`, and those that layers have as attributes."""
        parts = [] if self._compiled_parts is None else self._compiled_parts.metrics
        layers = self.submodules()
        return [*parts, *[m for x in layers for m in vars(x).values() if isinstance(m, Metric)]]
