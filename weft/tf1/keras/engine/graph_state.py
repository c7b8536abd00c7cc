"""What Keras keeps beside a graph: where tensors come from, masks, variables, the phase."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft import ops
from weft.ir.node import Value


class GraphState:
    """Of one graph.

    Attributes:
        histories: of each tensor that a layer gave: the layer, which of its calls, which output.
        unrelated: tensors that follow from nothing that a layer gave.
        masks: of each tensor whose steps do not all count: a boolean tensor.
        variables: those that Keras makes, and so gives their first value.
        initialized: the session in which so many of them have values.
        counts: how many layers of each kind have been named.
        fixed_phase: what `set_learning_phase` has said.
        phase: whether this is training; false in a run that does not feed it.
        is_training: the same, for layers.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self.histories: dict[Any, tuple[Any, int, int]] = {}
        self.unrelated: set[Any] = set()
        self.masks: dict[Any, Any] = {}
        self.variables: list[Any] = []
        self.initialized: tuple[Any, int] | None = None
        self.counts: Counter[str] = Counter()
        self.fixed_phase: int | None = None
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            self.phase = tf.placeholder(tf.bool, [], name="keras_learning_phase")
            self.is_training = graph.emit(
                "StaticPhase", [self.phase], _known_in_program, name="keras_is_training"
            ).outputs[0]
        implicit = graph.keys.setdefault("implicit", {})
        implicit[self.phase.value] = lambda _: np.array(self.fixed_phase == 1)

    def unique_name(self, kind: str) -> str:
        """`dense`, `dense_1`, ... for a class `Dense`."""
        base = snake(kind)
        if base == "input":  # numbered from 1 on, as in Keras
            self.counts[base] += 1
            return f"{base}_{self.counts[base]}"
        self.counts[base] += 1
        number = self.counts[base] - 1
        return f"{base}_{number}" if number else base


def _known_in_program(phase: Value) -> Value:
    """The same flag, known when a program is compiled: what depends on it costs nothing there.

    A size must be known, so there is a program for each value of the flag.
    """
    size = ops.cast(phase, dtype="int32")
    return ops.greater(ops.size_of(ops.full((size,), 0, "int32")), 0)


def graph_state(graph: tf.Graph | None = None) -> GraphState:
    """That of a graph, or of the default graph."""
    graph = graph or tf.get_default_graph()
    found = graph.keys.get("keras")
    if found is None:
        found = graph.keys["keras"] = GraphState(graph)
    return found


def snake(name: str) -> str:
    """`conv2d` of `Conv2D`, `layer_normalization` of `LayerNormalization`."""
    inner = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", inner).lower()


def history_of(x: Any) -> tuple[Any, int, int] | None:
    """The layer that gave a tensor, which of its calls, which output; `None` of others."""
    return graph_state(x.graph).histories.get(x) if tf.is_tensor(x) else None


def mask_of(x: Any) -> Any:
    """The mask of a tensor; `None` where all counts."""
    return graph_state(x.graph).masks.get(x) if tf.is_tensor(x) else None


def set_mask(x: Any, mask: Any) -> None:
    """Say which steps of a tensor count."""
    if mask is not None:
        graph_state(x.graph).masks[x] = mask
