"""`Tracked`: layers and variables found among an object's attributes, in assignment order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import weft.tf1 as tf
from weft.documentation import Reads
from weft.errors import ArgumentError
from weft.host.nested import NESTED
from weft.tf1.framework.graph import acts_in_order, fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.reach import needs_only

_SIMPLE = (type(None), int, float, str)  # most options, which are no layers
_PLAIN = ("_inner", "inbound_nodes", "history")


class Tracked:
    """The part of a layer that tracks weights, losses, updates and sublayers.

    Attributes:
        trainable: whether training changes its weights; applies to sublayers too.
        inbound_nodes: its calls.
    """

    trainable: bool

    def __init__(self) -> None:
        self.__dict__.setdefault("_inner", [])
        self._trainable_weights: list[Any] = []
        self._other_weights: list[Any] = []
        self._seen_weights: set[int] = set()
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._regularized: list[tuple[Any, Any]] = []
        self._regularization: list[Any] = []
        self._metric_tensors: list[tuple[str, Any]] = []
        self.inbound_nodes: list[Any] = []
        self._name = ""

    name = Reads[str]("_name", "The name.")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _PLAIN and not isinstance(value, _SIMPLE):
            self._track(value)
        super().__setattr__(name, value)
        if name == "trainable":  # also for sublayers, as in Keras
            for layer in self._children():
                layer.trainable = value

    def _track(self, value: Any) -> None:
        inner: list[Any] = self.__dict__.setdefault("_inner", [])
        for layer in _tracked_in(value):
            if not any(x is layer for x in inner):
                inner.append(layer)
        if isinstance(value, tf.Variable) and id(value) not in self._seen_weights:
            self._seen_weights.add(id(value))
            chosen = self._trainable_weights if value.trainable else self._other_weights
            chosen.append(value)

    def _children(self) -> list[Any]:
        """The direct sublayers."""
        return self.__dict__.get("_inner", [])

    def submodules(self) -> Iterator[Any]:
        """This layer and all sublayers, each once."""
        seen: set[int] = set()
        waiting: list[Any] = [self]
        while waiting:
            layer = waiting.pop(0)
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer
                waiting = [*layer._children(), *waiting]

    # -- weights

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that training changes."""
        if not self.trainable:
            return []
        inner = [v for x in self._children() for v in x.trainable_weights]
        return _distinct([*self._trainable_weights, *inner])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The weights that training does not change."""
        children = self._children()
        if self.trainable:
            inner = [v for x in children for v in x.non_trainable_weights]
            return _distinct([*self._other_weights, *inner])
        inner = [v for x in children for v in x.weights]
        return _distinct([*self._trainable_weights, *self._other_weights, *inner])

    @property
    def weights(self) -> list[Any]:
        """All weights: trainable ones first."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    variables = Reads[list[Any]]("weights", "The same as `weights`.")
    trainable_variables = Reads[list[Any]]("trainable_weights", "The same as `trainable_weights`.")

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The same as `non_trainable_weights`."""
        return self.non_trainable_weights

    # -- losses and updates, including sublayers

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add losses to be minimized: tensors, or functions without arguments that return some.

        Args:
            inputs: accepted; dependencies are looked up in the graph.
        """
        del inputs
        self._losses.extend(losses if isinstance(losses, list | tuple) else [losses])

    def forget_losses(self) -> None:
        """In eager execution, drop the losses that `add_loss` has added in an earlier call."""
        if acts_in_order():
            for layer in self.submodules():
                layer._losses = [x for x in layer._losses if callable(x)]

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Run operations in each training step."""
        del inputs
        if acts_in_order():  # they are computed already
            return
        self._updates.extend(updates if isinstance(updates, list | tuple) else [updates])

    def add_metric(
        self, value: Any, aggregation: str | None = None, name: str | None = None
    ) -> Any:
        """Report a tensor's mean in `fit` and `evaluate`.

        Args:
            aggregation: `"mean"`.
        """
        if aggregation not in (None, "mean"):
            raise fail(ArgumentError, f"add_metric: expected 'mean', got {aggregation!r}")
        label = name or getattr(value, "name", "metric").partition(":")[0].rpartition("/")[2]
        self._metric_tensors.append((label, value))
        return value

    @property
    def losses(self) -> list[Any]:
        """The losses of regularizers and of `add_loss`."""
        found: list[Any] = []
        for layer in self.submodules():
            found += layer.own_losses()
        return found

    def own_losses(self) -> list[Any]:
        """The losses of this layer alone."""
        if acts_in_order():
            regularization = [f(v) for v, f in self._regularized]
            return [*regularization, *[x() if callable(x) else x for x in self._losses]]
        for variable, regularizer in self._regularized[len(self._regularization) :]:
            with variable.graph.as_default(), tf.name_scope(f"{variable.op.name}/Regularizer/"):
                self._regularization.append(regularizer(variable))
        given = [x() if callable(x) else x for x in self._losses]
        return [*self._regularization, *given]

    @property
    def updates(self) -> list[Any]:
        """The operations that training steps run."""
        return [x for layer in self.submodules() for x in layer.own_updates()]

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on these inputs, or with `None` those that depend on none."""
        return _that_need(self.updates, inputs)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on these inputs, or with `None` those that depend on none."""
        return _that_need(self.losses, inputs)

    def own_updates(self) -> list[Any]:
        """The updates of this layer alone; none if it is frozen."""
        return self._updates if self.trainable or getattr(self, "stateful", False) else []

    def own_metric_tensors(self) -> list[tuple[str, Any]]:
        """The metrics that this layer added by `add_metric`."""
        return self._metric_tensors


def _tracked_in(value: Any) -> list[Any]:
    """The layers that an attribute is or contains, in lists and dictionaries."""
    return [x for x in NESTED.leaves(value) if isinstance(x, Tracked)]


def _that_need(elements: Sequence[Any], inputs: Any) -> list[Any]:
    if inputs is None:
        return [x for x in elements if needs_only(x, ())]
    given = nest.flatten(inputs)
    return [x for x in elements if needs_only(x, given) and not needs_only(x, ())]


def _distinct(items: list[Any]) -> list[Any]:
    return list({id(x): x for x in items}.values())
