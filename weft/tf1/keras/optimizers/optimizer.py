"""`Optimizer`: hyperparameters live in variables, so callbacks can change them between steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail, within
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.graph_state import graph_state
from weft.tf1.keras.optimizers.schedules import TABLE as SCHEDULES
from weft.tf1.keras.storage.serialization import deserialized, serialize
from weft.tf1.train.optimizer import Optimizer as Base

__all__ = ["Optimizer", "WrappedOptimizer"]

_ALIASES: Final = {"lr": "learning_rate"}
_CLIPS: Final = ("clipnorm", "clipvalue")


class Optimizer(Base):
    """Base class: a subclass gives its hyperparameters, its slots, and the update rule.

    Args:
        name: of its scope.
        rates: hyperparameters by name; the learning rate may be a `LearningRateSchedule`.
        options: `lr` for `learning_rate`; `decay`, which makes the rate rate / (1 + decay *
            iterations); `clipnorm`, the maximum norm of each gradient; `clipvalue`, the maximum
            element.
    """

    slots: tuple[str, ...] = ()
    lazy: ClassVar[bool] = False
    """Whether rows without a gradient are left alone."""

    def __init__(
        self, name: str, rates: Mapping[str, Any] | None = None, **options: Any
    ) -> None:  # fmt: skip
        super().__init__(False, name)
        unknown = sorted(options.keys() - {"lr", "decay", *_CLIPS})
        if unknown:
            raise fail(
                ArgumentError,
                f"{name}: expected as options lr, decay, clipnorm, clipvalue, got {unknown}",
            )
        self._first: dict[str, Any] = {**(rates or {}), "decay": options.get("decay", 0.0)}
        if options.get("lr") is not None:
            self._first["learning_rate"] = options["lr"]
        self.clips = {n: options[n] for n in _CLIPS if options.get(n) is not None}
        self._held: dict[tuple[str, int], Any] = {}
        self._fixed: dict[str, Any] = {}

    # -- what a subclass defines

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The hyperparameters of the rule, as tensors; `step` counts from 1."""
        others = [name for name in self._first if name not in ("learning_rate", "decay")]
        return [rate, *[self.held(name).value() for name in others]]

    def first_value(self, slot: str) -> Any:
        """The initializer of a slot; zeros by default."""
        return None

    # -- hyperparameters

    def held(self, name: str, first: float | None = None) -> Any:
        """The variable of a hyperparameter, or of another number, in the default graph."""
        key = (name, id(tf.get_default_graph()))
        if key not in self._held:
            value = self._first[name] if first is None else first
            with tf.control_dependencies(None), tf.name_scope(""):
                found = tf.Variable(
                    float(value), trainable=False, name=f"{self._name}/{name}", dtype="float32"
                )
            graph_state().variables.append(found)
            self._held[key] = found
        return self._held[key]

    def __getattr__(self, name: str) -> Any:
        first = self.__dict__.get("_first", {})
        real = _ALIASES.get(name, name)
        if real in first:
            value = first[real]
            return value if callable(value) else self.held(real)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        real = _ALIASES.get(name, name)
        first = self.__dict__.get("_first", {})
        if real not in first:
            super().__setattr__(name, value)
            return
        first[real] = value
        if (real, id(tf.get_default_graph())) in self._held:
            sessions.assign_values([(self.held(real), value)])

    @property
    def iterations(self) -> Any:
        """The variable that counts updates."""
        key = ("iterations", id(tf.get_default_graph()))
        if key not in self._held:
            with tf.control_dependencies(None), tf.name_scope(""):
                found = tf.Variable(
                    0, trainable=False, name=f"{self._name}/iterations", dtype=tf.int64
                )
            graph_state().variables.append(found)
            self._held[key] = found
        return self._held[key]

    def _rate(self) -> Any:
        """The learning rate of this step."""
        given = self._first["learning_rate"]
        step = self.iterations.value()
        rate = given(step) if callable(given) else self.held("learning_rate").value()
        if self._first["decay"]:
            rate = rate / (1.0 + self.held("decay").value() * tf.cast(step, tf.float32))
        return rate

    # -- updates

    def _hyperparameters(self) -> dict[str, Any]:
        step = tf.cast(self.iterations.value(), tf.float32) + 1.0
        return {f"rate_{i}": x for i, x in enumerate(self.numbers(self._rate(), step))}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for name in self.slots:
            for var in var_list:
                known = var in self._slots.get(name, {})
                made = self.slot(var, name, f"{self._name}/{name}", self.first_value(name))
                if not known:
                    graph_state().variables.append(made)

    def _apply(self, grad: Any, var: Any) -> Any:
        rates = [self.rate(name, var) for name in self._rates]
        held = [self._slots[name][var] for name in self.slots]
        kind = f"Apply{type(self).__name__}"
        return self.emit(kind, grad, var, held, rates, self._update_of(var), lazy=self.lazy)

    def build(self, var_list: Sequence[Any]) -> None:
        """Create the update count, and the slots for these variables."""
        with tf.control_dependencies(None):
            _ = self.iterations
            self._create_slots(var_list)

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """Gradients of a loss, clipped."""
        return [self._clipped(g) for g in tf.gradients(loss, list(params))]

    def get_updates(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """What a step does: operations, or pairs of a variable and its new value."""
        return _updates(self, loss, params)

    def _clipped(self, g: Any) -> Any:
        if g is None or not self.clips:
            return g
        if "clipnorm" in self.clips:
            g = tf.clip_by_norm(g, float(self.clips["clipnorm"]))
        if "clipvalue" in self.clips:
            most = float(self.clips["clipvalue"])
            g = tf.clip_by_value(tf.convert_to_tensor(g), -most, most)
        return g

    def minimize(self, loss: Any, var_list: Any = None, *args: Any, **options: Any) -> Any:
        """An operation that takes one step down the gradient of `loss`."""
        chosen: Any = tf.trainable_variables() if var_list is None else var_list
        chosen = chosen() if callable(chosen) else chosen
        pairs = [(self._clipped(g), v) for g, v in self.compute_gradients(loss, chosen)]
        return self.apply_gradients(pairs, name=options.get("name"))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """An operation that updates each variable by its gradient, and counts."""
        pairs = list(grads_and_vars)
        with within(pairs[0][1].graph):
            step = self.iterations if global_step is None else global_step
            return super().apply_gradients(pairs, step, name)

    # -- state

    @property
    def weights(self) -> list[Any]:
        """The variables: the count of updates, then the slots."""
        graph = tf.get_default_graph()
        slots = [v for n in self.slots for v in self._slots.get(n, {}).values()]
        return [self.iterations, *[v for v in slots if v.graph is graph]]

    def named_variables(self) -> dict[str, Any]:
        """The count of updates, and the slots by the number of their variable."""
        return {"iterations": self.iterations, **super().named_variables()}

    def get_weights(self) -> list[Any]:
        """The values of the variables."""
        return sessions.values_of(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of the variables.

        Raises:
            ArgumentError: their number differs.
        """
        own, weights = self.weights, list(weights)
        if len(own) == len(weights) + 1:  # Keras 2.2's RMSprop and others do not count
            weights.insert(0, 0)
        if len(weights) == len(own) + (len(own) - 1) // 2 and len(self.slots) == 2:
            weights = weights[: len(own)]  # its Adam always had a third slot
        if len(own) != len(weights):
            raise fail(
                ArgumentError,
                f"{self._name}.set_weights: expected {len(own)} weights, got {len(weights)}",
            )
        sessions.assign_values(list(zip(own, weights, strict=True)))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, with current hyperparameters."""
        now = {name: self._now(name) for name in self._first}
        return {"name": self._name, **now, **self.clips, **self._fixed}

    def _now(self, name: str) -> Any:
        value = self._first[name]
        if callable(value):
            return serialize(value) if hasattr(value, "get_config") else value
        held = self._held.get((name, id(tf.get_default_graph())))
        return value if held is None else float(sessions.values_of([held])[0])

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Optimizer:
        """An optimizer from `get_config`."""
        return cls(**{k: deserialized("schedule", SCHEDULES, v) for k, v in config.items()
                      if k != "name"}, name=config.get("name", cls.__name__))  # fmt: skip


class WrappedOptimizer:
    """An optimizer of `tf.train` for Keras models.

    Args:
        optimizer: the one of `tf.train`.
    """

    def __init__(self, optimizer: Base) -> None:
        self.optimizer = optimizer
        self._iterations: Any = None

    def build(self, var_list: Sequence[Any]) -> None:
        """Create the update count, and the slots for these variables."""
        with tf.control_dependencies(None):
            _ = self.iterations
            self._create_slots(var_list)

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """Gradients of a loss."""
        return tf.gradients(loss, list(params))

    def get_updates(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """The operation of a step."""
        return _updates(self, loss, params)

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """An operation that updates each variable by its gradient."""
        found = self.optimizer.apply_gradients(grads_and_vars)
        known = {id(v) for v in graph_state().variables}
        made = [v for v in self.optimizer.variables() if id(v) not in known]
        graph_state().variables.extend(made)
        return found

    @property
    def weights(self) -> list[Any]:
        """Its variables."""
        return self.optimizer.variables()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)


def _updates(optimizer: Any, loss: Any, params: Sequence[Any]) -> list[Any]:
    """The operation that applies the gradients of a loss, in a list.

    Raises:
        ArgumentError: there are none.
    """
    found = optimizer.get_gradients(loss, params)
    pairs = [(g, v) for g, v in zip(found, params, strict=True) if g is not None]
    if not pairs:
        raise fail(
            ArgumentError,
            f"fit: expected a loss that depends on trainable weights, got none among "
            f"{[v.name for v in params]}",
        )
    return [optimizer.apply_gradients(pairs)]
