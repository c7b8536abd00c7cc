"""Keras's session, and the values of its variables in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.graph_state import graph_state


class _Own:
    """The session that Keras created, or was given."""

    session: Any = None


def get_session() -> Any:
    """The default session; otherwise Keras's own, with its variables initialized."""
    session = _current()
    _initialize(session)
    return session


def _current() -> Any:
    eager = tf.get_default_graph().at_once
    if eager is not None:
        return eager.session
    session = tf.get_default_session()
    if session is None or session.graph is not tf.get_default_graph():
        session = _Own.session
        if session is None or session.graph is not tf.get_default_graph():
            session = _Own.session = tf.Session()
    return session


def take_waiting() -> None:
    """Give variables that are new now the values of a checkpoint that was read before."""
    eager = tf.get_default_graph().at_once
    if eager is not None:
        eager.take_waiting()


def set_session(session: Any) -> None:
    """Use this session from now on."""
    _Own.session = session


def forget_session() -> None:
    """Let the next use create another session."""
    if _Own.session is not None:
        _Own.session.close()
    _Own.session = None


def _initialize(session: Any) -> None:
    """Initialize those of Keras's variables that are not."""
    state = graph_state(session.graph)
    mark = (session, len(state.variables))
    if state.initialized == mark:
        return
    new = [v for v in state.variables if v.key not in session.state]
    if new:
        session.run([v.initializer for v in new])
    state.initialized = mark


def values_of(variables: Sequence[Any]) -> list[Any]:
    """Copies of the values of variables."""
    session = get_session()
    return [np.array(session.value_of(v)) for v in variables]


def assign_values(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Set the values of variables; all of them or, on an error, none.

    Raises:
        ShapeError: a value has another shape.
    """
    session = _current()  # a variable that is set needs no initialization
    made: list[tuple[str, Any]] = []
    for variable, value in pairs:
        array = np.array(value, variable.dtype.base_dtype.ir.numpy)
        if not variable.shape.is_compatible_with(array.shape):
            raise fail(
                ShapeError,
                f"set_value: expected a value of shape {variable.shape} for {variable.name}, got "
                f"{array.shape}",
            )
        made.append((variable.key, array))
    for key, array in made:
        session.state[key] = array
