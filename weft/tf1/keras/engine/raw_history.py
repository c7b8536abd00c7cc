"""Tensors produced by plain operations on layers' outputs: the operations become layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import weft.tf1 as tf
from weft.tf1.keras.engine.graph_state import GraphState, graph_state, history_of

WRAPPERS: Final[list[Callable[[Any], None]]] = []
"""The last one creates the layer of an operation."""


def find_history(tensors: Sequence[Any]) -> None:
    """Create layers for the operations between these tensors and layers' outputs."""
    for y in tensors:
        state = graph_state(y.graph)
        if state.histories:
            _wrap_all(y, state)


def _wrap_all(y: Any, state: GraphState) -> None:
    """Walk back from a tensor, and wrap operations that depend on layers, inputs first."""
    waiting = [(y, False)]
    while waiting:
        x, ready = waiting.pop()
        if x in state.unrelated or history_of(x) is not None:
            continue
        inputs = [i for i in x.op.inputs if tf.is_tensor(i)]
        if not ready:
            waiting.append((x, True))
            waiting += [(i, False) for i in inputs]
        elif any([history_of(i) is not None for i in inputs]):
            WRAPPERS[-1](x.op)
        else:
            state.unrelated.add(x)
