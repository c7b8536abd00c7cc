"""Sessions, variables, values, and functions of placeholders."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import GraphError
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.graph_state import graph_state, history_of
from weft.tf1.keras.engine.settings import floatx

__all__ = [
    "backend", "batch_get_value", "batch_set_value", "clear_session", "count_params", "eval",
    "function", "get_uid", "get_value", "is_keras_tensor", "learning_phase_scope", "placeholder",
    "reset_uids", "set_value", "update", "update_add", "update_sub", "variable",
]  # fmt: skip

_uids: Counter[str] = Counter()


def backend() -> str:
    """The name of what computes."""
    return "tensorflow"


def clear_session() -> None:
    """Drop Keras's session, and start an empty default graph."""
    sessions.forget_session()
    with contextlib.suppress(GraphError):  # inside of `with graph.as_default()` the graph stays
        tf.reset_default_graph()
    reset_uids()


def get_uid(prefix: str = "") -> int:
    """1, 2, ... for each prefix."""
    _uids[prefix] += 1
    return _uids[prefix]


def reset_uids() -> None:
    """Restart counting at 1."""
    _uids.clear()


def is_keras_tensor(x: Any) -> bool:
    """Whether a Keras layer produced it."""
    return history_of(x) is not None


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Any:
    """Inside, operations are built for training (1) or not (0)."""
    state = graph_state()
    before, state.fixed_phase = state.fixed_phase, value
    try:
        yield
    finally:
        state.fixed_phase = before


def placeholder(
    shape: Any = None, ndim: int | None = None, dtype: Any = None, sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A placeholder of a shape, or of a rank."""
    del sparse
    dims = [None] * ndim if shape is None and ndim is not None else shape
    return tf.placeholder(dtype or floatx(), dims, name=name)


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable, which is initialized as soon as Keras's session is used."""
    kind = tf.as_dtype(dtype or floatx())
    first = value if tf.is_tensor(value) else np.asarray(value, kind.ir.numpy)
    found = tf.Variable(first, dtype=kind, name=name, constraint=constraint)
    graph_state().variables.append(found)
    return found


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    if not tf.is_tensor(x):
        return x
    with x.graph.as_default():
        if isinstance(x, tf.Variable):
            found = sessions.values_of([x])[0]
            return found if found.ndim else found[()]
        return sessions.get_session().run(x)


eval = get_value


def set_value(x: Any, value: Any) -> None:
    """Set the value of a variable."""
    with x.graph.as_default():
        sessions.assign_values([(x, value)])


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of several variables."""
    return [get_value(x) for x in tensors]


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Set the values of several variables."""
    for variable_, value in tuples:
        set_value(variable_, value)


def update(x: Any, new_x: Any) -> Any:
    """The operation that assigns."""
    return tf.assign(x, new_x)


def update_add(x: Any, increment: Any) -> Any:
    """The operation that adds to a variable."""
    return tf.assign_add(x, increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """The operation that subtracts from a variable."""
    return tf.assign_sub(x, decrement)


def count_params(x: Any) -> int:
    """The number of elements."""
    return int(x.shape.num_elements() or 0)


class _Function:
    """A function of placeholders; each call also runs the updates."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any) -> None:
        self._inputs: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        self._several = isinstance(outputs, list | tuple)
        found: list[Any] = list(outputs) if self._several else [outputs]
        self._count = len(found)
        self._graph = found[0].graph if found else tf.get_default_graph()
        with self._graph.as_default():
            ops = [tf.assign(*u) if isinstance(u, tuple) else u for u in updates or ()]
            self._fetches = [*found, *([tf.group(*ops)] if ops else [])]

    def __call__(self, inputs: Any) -> Any:
        given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        feeds = {k: v for k, v in zip(self._inputs, given, strict=True) if tf.is_tensor(k)}
        with self._graph.as_default():
            found = sessions.get_session().run(self._fetches, feeds)[: self._count]
        return list(found) if self._several else found[0]


def function(inputs: Any, outputs: Any, updates: Any = None, name: str | None = None) -> Any:
    """A function of arrays for placeholders, including `learning_phase()`, that returns outputs.

    Args:
        updates: operations to run, or pairs (variable, new value).
    """
    del name
    return _Function(inputs, outputs, updates)
