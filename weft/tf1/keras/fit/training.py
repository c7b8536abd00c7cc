"""`compile`, `fit`, `evaluate`, `predict` and their batch variants, for a model in a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import weft.tf1 as tf
from weft.documentation import Reads
from weft.errors import ArgumentError, StateError
from weft.tf1.framework.graph import acts_in_order, fail
from weft.tf1.framework.tensor import OperatorNotAllowedInGraphError
from weft.tf1.keras import optimizers
from weft.tf1.keras.callbacks.callback import History
from weft.tf1.keras.engine import nest, sessions
from weft.tf1.keras.engine.network import Network
from weft.tf1.keras.fit.compiled import outputs_of
from weft.tf1.keras.fit.feeding import (
    Batch,
    Slot,
    arranged,
    as_array,
    refuse_mixed,
    require_equal_rows,
)  # fmt: skip
from weft.tf1.keras.fit.loading import Continued, Prepared, begun, is_loader, loader_of, parts_of
from weft.tf1.keras.fit.own_steps import Given, StepMethods, packed, weighed
from weft.tf1.keras.fit.row_weights import row_weights
from weft.tf1.keras.fit.runner import KerasTrainer, Runner
from weft.tf1.keras.fit.steps import Program, Steps, state_updates
from weft.tf1.version import Behavior
from weft.train.keras_methods import KerasMethods, expected_compile
from weft.train.supervised import Arrays

_SPEED: Final = {"jit_compile", "steps_per_execution"}
"""Options of `compile` that change no result."""


class Training(Network, KerasMethods, StepMethods):
    """A network that can be trained.

    Attributes:
        optimizer: that of `compile`.
        metrics_names: the names of `evaluate`'s results, in order.
    """

    trainer_class = KerasTrainer
    history_class = History

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name, **options)
        self.optimizer: Any = None
        self._told: dict[str, Any] | None = None
        self._steps: Steps | None = None
        self._predict: tuple[Any, Program] | None = None
        self._class_weight: Mapping[Any, Any] | None = None
        self._own = self._compiled_parts = None

    graph = Reads[tf.Graph]("_graph_of_name", "The graph that the model belongs to.")

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        run_eagerly: bool | None = None,
        **options: Any,
    ) -> None:
        """Configure training.

        Args:
            optimizer: a name or an object, also one of `tf.train`.
            loss: a name, function or object; for several outputs a list, or by name.
            metrics: names, functions or objects; for several outputs lists, or by name.
            loss_weights: factors of the outputs' losses.
            sample_weight_mode: accepted; the weights' shape says whether steps have their own.
            weighted_metrics: metrics to which example weights apply.
            run_eagerly: whether Python runs each step, in TensorFlow 2.
            options: `steps_per_execution`, `jit_compile`: accepted.

        Raises:
            ArgumentError, UnknownKeyError: an unknown name or option.
        """
        del sample_weight_mode
        absent = {"target_tensors": target_tensors, "distribute": distribute}
        given = [name for name, value in absent.items() if value is not None]
        unknown = sorted([*options.keys() - _SPEED, *given])
        if unknown:
            raise fail(ArgumentError, f"compile: expected Keras's arguments, got {unknown}")
        with self.graph.as_default():
            self.optimizer = optimizers.get(optimizer)
        self._told = {
            "loss": loss, "metrics": metrics, "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
        }  # fmt: skip
        self.loss, self._steps = loss, None
        self._own = self._compiled_parts = None
        if run_eagerly is not None:
            self.run_eagerly = run_eagerly
        if self.outputs is not None and loss is not None and not self._has_own("fit"):
            _ = self.steps  # errors are raised here

    def get_learning_rate(self) -> float:
        """The optimizer's learning rate."""
        with self.graph.as_default():
            return float(sessions.values_of([self.optimizer.lr])[0])

    def set_learning_rate(self, rate: float) -> None:
        """Set the optimizer's learning rate."""
        with self.graph.as_default():
            self.optimizer.lr = rate

    @property
    def told(self) -> dict[str, Any]:
        """The arguments of `compile`.

        Raises:
            StateError: it is not compiled.
        """
        if self._told is None:
            raise expected_compile(self)
        return self._told

    @property
    def steps(self) -> Steps:
        """The programs of the compiled model.

        Raises:
            StateError: it is not compiled.
        """
        told = self.told
        if self._steps is None:
            if self.outputs is None:
                raise fail(StateError, f"{self.name}: expected data first, as it has no inputs yet")
            with self.graph.as_default():
                plans = outputs_of(self.output_names, self.outputs, **told)
            self._steps = Steps(self, plans, self.optimizer, self.trainable_weights)
        return self._steps

    @property
    def metrics_names(self) -> list[str]:
        """The names of `evaluate`'s results, in order."""
        return list(self.steps.names)

    @property
    def metrics(self) -> list[Any]:
        """The metrics, as objects."""
        own = self._has_own("fit") or self._has_own("test")
        return self._metrics_of_steps() if own else list(self.steps.metrics)

    def reset_states(self) -> None:
        """Reset the states of stateful layers to zeros."""
        for layer in self.submodules():
            if layer is not self and getattr(layer, "stateful", False):
                layer.reset_states()

    def reset_metrics(self) -> None:
        """Reset the metrics."""
        if self._has_own("fit") or self._has_own("test"):
            for metric in self.metrics:
                metric.reset_states()
        if self._steps is not None:
            self._steps.reset()

    # -- runs

    def fit(self, *args: Any, **options: Any) -> Any:
        """Train; see `weft.train.Model.fit`.

        `x` is an array, several in a list or by the inputs' names, a `tf.data` dataset, a
        generator, or a `keras.utils.Sequence`.
        """
        return super().fit(*args, **_without(options))

    def evaluate(self, *args: Any, **options: Any) -> Any:
        """Loss and metrics: the loss alone, or a list in the order of `metrics_names`."""
        return super().evaluate(*args, **_without(options))

    def predict(self, *args: Any, **options: Any) -> Any:
        """The outputs for all rows, as arrays."""
        return super().predict(*args, **_without(options))

    def fit_generator(
        self, generator: Any, steps_per_epoch: int | None = None, epochs: int = 1,
        verbose: Any = 1, callbacks: Any = None, validation_data: Any = None,
        validation_steps: int | None = None, validation_freq: int = 1,
        class_weight: Mapping[Any, Any] | None = None, max_queue_size: int = 10, workers: int = 1,
        use_multiprocessing: bool = False, shuffle: bool = True, initial_epoch: int = 0,
    ) -> Any:  # fmt: skip
        """`fit` for a generator or a `Sequence`, with another order of arguments."""
        del max_queue_size, workers, use_multiprocessing
        return self.fit(
            generator, epochs=epochs, verbose=verbose, callbacks=callbacks,
            validation_data=validation_data, shuffle=shuffle, class_weight=class_weight,
            initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps, validation_freq=validation_freq,
        )  # fmt: skip

    def evaluate_generator(
        self, generator: Any, steps: int | None = None, callbacks: Any = None,
        max_queue_size: int = 10, workers: int = 1, use_multiprocessing: bool = False,
        verbose: Any = 0,
    ) -> Any:  # fmt: skip
        """`evaluate` for a generator or a `Sequence`, with another order of arguments."""
        del max_queue_size, workers, use_multiprocessing
        return self.evaluate(generator, steps=steps, callbacks=callbacks, verbose=verbose)

    def predict_generator(
        self, generator: Any, steps: int | None = None, callbacks: Any = None,
        max_queue_size: int = 10, workers: int = 1, use_multiprocessing: bool = False,
        verbose: Any = 0,
    ) -> Any:  # fmt: skip
        """`predict` for a generator or a `Sequence`, with another order of arguments."""
        del max_queue_size, workers, use_multiprocessing
        return self.predict(generator, steps=steps, callbacks=callbacks, verbose=verbose)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None,
        reset_metrics: bool = True,
    ) -> Any:  # fmt: skip
        """One update; returns the loss, with metrics if there are any."""
        if self._own_for("fit", x):
            given = Given(packed(x, y, sample_weight))
            return self._told_of(self.own_steps.train, given, reset_metrics)
        batch = self._ready(x, y, sample_weight, class_weight)
        return self._told_of(self.steps.train, batch, reset_metrics)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True
    ) -> Any:
        """The loss of a batch, with metrics if there are any."""
        if self._own_for("test", x):
            given = Given(packed(x, y, sample_weight))
            return self._told_of(self.own_steps.test, given, reset_metrics)
        batch = self._ready(x, y, sample_weight, None)
        return self._told_of(self.steps.test, batch, reset_metrics)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for a batch."""
        if self._own_for("predict", x):
            return self.own_steps.predict(Given(packed(x, None, None)))
        return self.predict_arrays(self._arranged_inputs(x))

    def _told_of(self, run: Callable[[Any], dict[str, Any]], batch: Any, reset: bool) -> Any:
        if reset:
            self.reset_metrics()
        figures = list(run(batch).values())
        if Behavior.is_2:  # numbers of Python
            figures = [float(x) if np.ndim(x) == 0 else x for x in figures]
        return nest.one_or_list(figures)

    def predict_arrays(self, arrays: Sequence[Any]) -> Any:
        """The outputs for arrays of the inputs, in order."""
        outputs = self.outputs or []
        if self._predict is None or self._predict[0] is not self.outputs:
            with self.graph.as_default():
                updates = state_updates(self)
                fetches = [*outputs, *([tf.group(*updates)] if updates else [])]
            self._predict = (self.outputs, Program(self.graph, fetches, self.inputs or [], False))
        return nest.one_or_list(self._predict[1](arrays)[: len(outputs)])

    # -- parts of a run

    def _compiled(self, stage: str) -> Any:
        if stage != "predict" and self._told is None:
            raise expected_compile(self)
        return Runner(self)

    def _weigh(self, module: Any, class_weight: Mapping[Any, Any] | None) -> None:
        self._class_weight = class_weight

    def _nested(self, x: Any) -> Any:
        if x is None or is_loader(x):
            return x
        if isinstance(x, Mapping):
            return {k: as_array(v) for k, v in x.items()}
        if isinstance(x, list | tuple) and any(hasattr(item, "shape") for item in x):
            return tuple([as_array(item) for item in x])
        return as_array(x)

    def _batches(
        self, stage: str, x: Any, y: Any, weights: Any, size: int, shuffle: bool, steps: Any
    ) -> Any:
        if x is None:
            raise fail(ArgumentError, f"{stage}: expected data as x, got None")
        factors = self._class_weight if stage == "fit" else None
        x, own = self._begun(stage, x)
        if own:
            return self._given(x, y, weights, size, shuffle, steps, factors)
        if is_loader(x):
            refuse_mixed(y, weights)
            return Prepared(
                loader_of(x, shuffle, steps), lambda b: self._ready(*parts_of(b), factors)
            )
        whole = self._ready(x, y, weights, factors)
        arrays = Arrays(
            (tuple(whole.x), tuple(whole.y), tuple(whole.weights or ())), size, bool(shuffle)
        )
        loader = arrays if steps is None else Continued(arrays)
        return Prepared(loader, lambda parts: Batch(parts[0], parts[1], parts[2] or None))

    def _begun(self, stage: str, x: Any) -> tuple[Any, bool]:
        """The data, and whether own steps run a stage: its first batch tells a new model."""
        first = x
        if is_loader(x) and self.inputs is None and not self._has_own(stage):
            batch, x = begun(x)
            first = parts_of(batch)[0]
        return x, self._own_for(stage, first)

    def _own_for(self, stage: str, x: Any) -> bool:
        """Whether own steps run a stage; a model that has seen no data is shown these."""
        if self.inputs is None and not self._has_own(stage):
            self._see(x)
        self._try_steps(stage)
        return self._has_own(stage)

    def _try_steps(self, stage: str) -> None:
        """Build the loss and the metrics, which may ask for values, as layers may."""
        if stage == "predict" or self._told is None or not acts_in_order() or self._has_own(stage):
            return
        try:
            self.steps.build("train" if stage == "fit" else "test")
        except OperatorNotAllowedInGraphError:
            self.ask_for_values()

    def _given(
        self, x: Any, y: Any, weights: Any, size: int, shuffle: bool, steps: Any, factors: Any
    ) -> Any:
        """Batches as steps of a model's own get them."""
        data = x if is_loader(x) else Arrays(packed(x, y, weights), size, bool(shuffle))
        return Prepared(
            loader_of(data, shuffle, steps),
            lambda batch: Given(batch if factors is None else weighed(batch, factors)),
        )

    def _inputs(self, x: Any, size: int, steps: Any) -> Any:
        x, own = self._begun("predict", x if is_loader(x) else self._nested(x))
        if own:
            return self._given(x, None, None, size, False, steps, None)
        if is_loader(x):
            loader = loader_of(x, False, steps)
            return Prepared(
                loader, lambda b: Batch(self._arranged_inputs(parts_of(b)[0]), (), None)
            )
        arrays = Arrays(tuple(self._arranged_inputs(x)), size)
        return Prepared(arrays, lambda parts: Batch(parts, (), None))

    def _ready(self, x: Any, y: Any, weights: Any, factors: Any) -> Batch:
        """A batch, or all data, in the order of the steps' feeds."""
        xs = self._arranged_inputs(x)
        outputs = self.steps.outputs
        slots = [Slot(o.name, o.target_shape, "targets") for o in outputs]
        if slots and y is None:
            raise fail(ArgumentError, f"fit: expected targets for {[s.name for s in slots]}")
        ys = arranged(y, slots, "targets") if slots else []
        names = [*self.input_names, *[f"{s.name} (targets)" for s in slots]]
        require_equal_rows([*xs, *ys], names)
        return Batch(xs, ys, row_weights(weights, factors, ys, [s.name for s in slots]))

    def _arranged_inputs(self, x: Any) -> list[Any]:
        if self.inputs is None:
            self._see(x)
        pairs = zip(self.input_names, self.inputs or [], strict=True)
        slots = [Slot(n, t.shape.as_list(), "data") for n, t in pairs]
        return arranged(x, slots, self.name)

    def _see(self, x: Any) -> None:
        """Create inputs and outputs for data of these shapes, if the model has none yet."""
        items = list(x.items()) if isinstance(x, Mapping) else None
        arrays = [v for _, v in items] if items else list(x) if isinstance(x, tuple) else [x]
        arrays = [as_array(a) for a in arrays]
        with self.graph.as_default():
            stands = [
                tf.placeholder(_kind(a), [None, *(a.shape[1:] or (1,))], name=f"{self.name}_input")
                for a in arrays
            ]
            given: Any = tuple(stands) if len(stands) > 1 else stands[0]
            if items:
                given = dict(zip([k for k, _ in items], stands, strict=True))
            outputs = self(given)
        self.inputs, self.nested_outputs = stands, outputs
        self.outputs = nest.flatten(outputs)
        self.input_names = [k for k, _ in items] if items else _numbered("input", len(stands))
        self.output_names = _numbered("output", len(self.outputs))


def _numbered(what: str, count: int) -> list[str]:
    return [f"{what}_{i + 1}" for i in range(count)]


def _kind(a: Any) -> str:
    """The element type of a placeholder for data."""
    return "float32" if a.dtype.kind == "f" else a.dtype.name


def _without(options: dict[str, Any]) -> dict[str, Any]:
    """The options, without those of Keras's worker processes."""
    gone = ("max_queue_size", "workers", "use_multiprocessing")
    return {k: v for k, v in options.items() if k not in gone}
