"""Keras's data per graph: tensor histories, masks, variables, learning phase."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft import ops
from weft.ir.node import Value
from weft.tf1.framework.graph import is_symbolic


class GraphState:
    """Keras's data of one graph.

    Attributes:
        histories: for each tensor that a layer produced: the layer, the call's index, the output's.
        unrelated: tensors that depend on no layer's output.
        masks: for tensors with masked steps: a boolean tensor.
        variables: Keras's variables, which it initializes itself.
        initialized: the session in which this many of them are initialized.
        counts: the number of named layers per class.
        fixed_phase: the value of `set_learning_phase`.
        phase: the learning phase, a placeholder that defaults to false.
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
    """The same flag, known at compile time, so that whatever depends on it costs nothing.

    Sizes are known at compile time, so there is one program for each value of the flag.
    """
    size = ops.cast(phase, dtype="int32")
    return ops.greater(ops.size_of(ops.full((size,), 0, "int32")), 0)


def graph_state(graph: tf.Graph | None = None) -> GraphState:
    """The data of a graph, by default of the default graph."""
    graph = graph or tf.get_default_graph()
    state = known_state(graph)
    if state is None:
        state = graph.keys["keras"] = GraphState(graph)
    return state


def known_state(graph: tf.Graph | None = None) -> GraphState | None:
    """The data of a graph; `None` if no Keras layer has used it."""
    return (graph or tf.get_default_graph()).keys.get("keras")


def snake(name: str) -> str:
    """`conv2d` of `Conv2D`, `layer_normalization` of `LayerNormalization`."""
    inner = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", inner).lower()


def history_of(x: Any) -> tuple[Any, int, int] | None:
    """The layer that produced a tensor, the call's index, the output's; or `None`."""
    return graph_state(x.graph).histories.get(x) if is_symbolic(x) else None


def mask_of(x: Any) -> Any:
    """The mask of a tensor; `None` if nothing is masked."""
    if is_symbolic(x):
        return graph_state(x.graph).masks.get(x)
    return getattr(x, "mask", None)


def set_mask(x: Any, mask: Any) -> None:
    """Set the mask of a tensor."""
    if mask is not None and is_symbolic(x):
        graph_state(x.graph).masks[x] = mask
    elif mask is not None:
        x.mask = mask
