"""The steps of a compiled model: forward, backward, update and metrics in one session run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import losses
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.graph_state import graph_state, mask_of
from weft.tf1.keras.engine.reach import needs_only
from weft.tf1.keras.fit.compiled import Output
from weft.tf1.keras.fit.feeding import Batch
from weft.tf1.keras.metrics import Mean
from weft.tf1.version import Behavior

Ranks = tuple[tuple[int, bool], ...] | None
"""Of the weights of each output: the rank, and whether the last dimension is 1."""


class Program:
    """The fetches of one kind of step, and its feeds."""

    def __init__(self, graph: Any, fetches: list[Any], feeds: list[Any], phase: bool) -> None:
        self._graph, self._fetches, self._feeds = graph, fetches, feeds
        self._phase, self._training = graph_state(graph).phase, phase

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The values of the fetches, for these feeds."""
        with self._graph.as_default():
            session = sessions.get_session()
            fed = dict(zip(self._feeds, arrays, strict=True))
            fed[self._phase] = self._training
            return session.run(self._fetches, fed)


def state_updates(model: Any) -> list[Any]:
    """The operations that store the states of stateful layers."""
    layers = [layer for layer in model.submodules() if getattr(layer, "stateful", False)]
    found = [u for layer in layers for u in layer.own_updates()]
    return [u for u in found if needs_only(u, model.inputs)]


class Steps:
    """Builds the programs of a model when they are first needed.

    Args:
        model: with inputs, losses, updates and weights.
        outputs: the loss and metrics of each.
        optimizer: makes the update.
        trainable: the trainable weights.

    Attributes:
        names: of the metrics of a step.
        losses: how many of them are means over a batch.
        metrics: objects that are reset at the start of each pass.
    """

    def __init__(
        self, model: Any, outputs: Sequence[Output], optimizer: Any, trainable: Sequence[Any]
    ) -> None:
        self._model, self._optimizer, self._trainable = model, optimizer, list(trainable)
        self.outputs = [o for o in outputs if o.loss is not None]
        self.graph = model.graph
        own = [u for u in model.updates if needs_only(u, model.inputs)]
        self._updates = own  # of layers that are trainable now
        self._programs: dict[Any, Program] = {}
        self._parts: dict[Ranks, tuple[list[Any], list[Any], list[Any], Any]] = {}
        several = len(outputs) > 1
        with self.graph.as_default(), tf.control_dependencies(None):
            self.targets = [
                tf.placeholder("float32", o.target_shape, name=f"{o.name}_target")
                for o in self.outputs
            ]
            extra = _extra_metrics(model)
        names = [f"{o.name}_loss" for o in self.outputs] if several else []
        self.losses = 1 + len(names)
        metrics = [(n, m) for o in outputs for n, m, _ in o.metrics]
        self.names = ["loss", *names, *[n for n, _ in metrics], *[n for n, _, _ in extra]]
        self.metrics = [*[m for _, m in metrics], *[m for _, m, _ in extra]]
        self._extra = extra

    # -- runs

    def train(self, batch: Batch) -> dict[str, Any]:
        """One update; returns the metrics of the batch."""
        return self._run("train", batch)

    def test(self, batch: Batch) -> dict[str, Any]:
        """The metrics of a batch."""
        return self._run("test", batch)

    def _run(self, kind: str, batch: Batch) -> dict[str, Any]:
        ranks = (
            None
            if batch.weights is None
            else tuple([(w.ndim, w.ndim > 1 and w.shape[-1] == 1) for w in batch.weights])
        )
        program = self._programs.get((kind, ranks))
        if program is None:
            program = self._programs[kind, ranks] = self._made(kind, ranks)
        found = program([*batch.x, *batch.y, *(batch.weights or ())])
        return dict(zip(self.names, found, strict=False))

    def reset(self) -> None:
        """Reset the metrics."""
        for metric in self.metrics:
            metric.reset_states()

    # -- programs

    def build(self, kind: str) -> None:
        """Add loss and metrics to the graph, for `train` or `test` without weights of rows."""
        if None not in self._parts:
            with self.graph.as_default(), tf.control_dependencies(None), tf.name_scope(kind):
                self._parts[None] = self._figures(None)

    def _made(self, kind: str, ranks: Ranks) -> Program:
        with self.graph.as_default(), tf.control_dependencies(None), tf.name_scope(kind):
            if ranks not in self._parts:
                self._parts[ranks] = self._figures(ranks)
            feeds, figures, counted, total = self._parts[ranks]
            fetches = list(figures)
            if kind == "train":
                fetches.append(tf.group(self._update(total), *counted))
            else:
                fetches.append(tf.group(*counted, *state_updates(self._model)))
        return Program(self.graph, fetches, feeds, kind == "train")

    def _update(self, total: Any) -> Any:
        """The operation that updates weights, and the layers' updates."""
        updates = self._optimizer.get_updates(loss=total, params=self._trainable)
        each = [tf.assign(*u) if isinstance(u, tuple) else u for u in updates]
        return tf.group(*each, *self._updates)

    def _figures(self, ranks: Ranks) -> tuple[list[Any], list[Any], list[Any], Any]:
        """Feeds, fetched metrics, metric updates, and the loss."""
        given = [None] * len(self.outputs) if ranks is None else [
            tf.placeholder(
                "float32", [None] * (rank - single) + [1] * single, name=f"{o.name}_sample_weights"
            )
            for o, (rank, single) in zip(self.outputs, ranks, strict=True)
        ]  # fmt: skip
        feeds = [*self._model.inputs, *self.targets, *[w for w in given if w is not None]]
        each = zip(self.outputs, self.targets, given, strict=True)
        parts = [loss_of(o, t, w) for o, t, w in each]
        added = [x for x in self._model.losses if needs_only(x, feeds)]
        if not parts and not added:
            raise fail(
                ArgumentError, f"{self._model.name}: expected a loss in compile() or by add_loss()"
            )
        total = total_of(self.outputs, parts, added)
        results: list[Any] = []
        updates: list[Any] = []
        for o, t, w in zip(self.outputs, self.targets, given, strict=True):
            for _, metric, is_weighted in o.metrics:
                _judge(metric, t, o.tensor, w if is_weighted else None, results, updates)
        for _, metric, value in self._extra:
            _count(metric, (value,), {}, results, updates)
        several = parts if self.losses > 1 else []
        return feeds, [total, *several, *results], updates, total


def total_of(outputs: Sequence[Output], parts: Sequence[Any], added: Sequence[Any]) -> Any:
    """The sum of the outputs' losses by their weights, and of what layers add."""
    terms = [o.loss_weight * x for o, x in zip(outputs, parts, strict=True)]
    terms += [tf.reduce_sum(x) for x in added]
    return terms[0] if len(terms) == 1 else tf.add_n(terms)


def _extra_metrics(model: Any) -> list[tuple[str, Any, Any]]:
    """The values of `add_metric`, as means."""
    told = [x for layer in model.submodules() for x in layer.own_metric_tensors()]
    return [(name, Mean(name=name), value) for name, value in told]


def _weights(tensor: Any, given: Any, of_mean: bool = False) -> Any:
    """Example weights, and step weights from the mask of an output.

    Args:
        of_mean: for a mean over the steps that are not masked, as in TensorFlow 2.
    """
    mask = mask_of(tensor)
    if mask is None:
        return given
    own = tf.cast(mask, tensor.dtype)
    if of_mean:
        own *= tf.cast(tf.size(own), own.dtype) / tf.reduce_sum(own)
    return own if given is None else losses.weighted(own, given)


def loss_of(output: Output, target: Any, given: Any) -> Any:
    """The loss of an output: weighted, and reduced as it says."""
    if isinstance(output.loss, losses.Loss):
        each = output.loss.call(target, output.tensor)
        reduction = output.loss.reduction
    else:
        each, reduction = output.loss(target, output.tensor), losses.Reduction.AUTO
    kinds = losses.Reduction.AUTO, losses.Reduction.SUM_OVER_BATCH_SIZE
    weights = _weights(output.tensor, given, Behavior.is_2 and reduction in kinds)
    return losses.reduced(each, weights, reduction)


def _judge(
    metric: Any, target: Any, tensor: Any, given: Any, results: list[Any], updates: list[Any]
) -> None:
    weights = _weights(tensor, given)
    options = {} if weights is None else {"sample_weight": weights}
    _count(metric, (target, tensor), options, results, updates)


def _count(
    metric: Any, args: tuple[Any, ...], options: Any, results: list[Any], updates: list[Any]
) -> None:
    """Update a metric with a batch, then read it."""
    update = metric.update_state(*args, **options)
    each = [x for x in (update if isinstance(update, list | tuple) else [update]) if x is not None]
    updates.extend(each)
    with tf.control_dependencies(each):
        results.append(tf.identity(metric.result()))
