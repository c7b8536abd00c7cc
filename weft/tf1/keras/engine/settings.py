"""Settings of `keras.backend`: element type, epsilon, image data format."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import acts_in_order, fail
from weft.tf1.keras.engine.graph_state import graph_state, known_state

_FORMATS = ("channels_last", "channels_first")


class _Settings:
    floatx = "float32"
    epsilon = 1e-7
    image_data_format = "channels_last"


def floatx() -> str:
    """The element type of new weights and inputs."""
    return _Settings.floatx


def set_floatx(value: str) -> None:
    """Set the element type of new weights and inputs."""
    if value not in ("float16", "float32", "float64"):
        raise fail(
            ArgumentError, f"set_floatx: expected float16, float32 or float64, got {value!r}"
        )
    _Settings.floatx = value


def epsilon() -> float:
    """The small number that keeps denominators from zero."""
    return _Settings.epsilon


def set_epsilon(value: float) -> None:
    """Set the small number."""
    _Settings.epsilon = float(value)


def image_data_format() -> str:
    """`channels_last` or `channels_first`."""
    return _Settings.image_data_format


def set_image_data_format(data_format: str) -> None:
    """Set the default data format of layers."""
    _Settings.image_data_format = data_format_of(data_format)


def data_format_of(given: str | None) -> str:
    """The data format of a layer, by default the global one.

    Raises:
        ArgumentError: it is neither of the two.
    """
    if given is None:
        return image_data_format()
    if given not in _FORMATS:
        raise fail(ArgumentError, f"data_format: expected {' or '.join(_FORMATS)}, got {given!r}")
    return given


# learning phase
def learning_phase() -> Any:
    """Whether this is training: a placeholder that `fit` feeds with true, or the set value."""
    state = graph_state()
    if acts_in_order():
        return state.fixed_phase or 0
    return state.phase if state.fixed_phase is None else state.fixed_phase


def set_learning_phase(value: int) -> None:
    """Build everything from now on for training (1) or not (0).

    Raises:
        ArgumentError: the value is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise fail(ArgumentError, f"set_learning_phase: expected 0 or 1, got {value!r}")
    graph_state().fixed_phase = int(value)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` in training, else `alt`; both may be functions that return a tensor.

    Args:
        training: a boolean, or a tensor; the learning phase by default.
    """
    flag = learning_phase() if training is None else training
    if not tf.is_tensor(flag):
        chosen = x if flag else alt
        return chosen() if callable(chosen) else chosen
    state = known_state()
    if state is not None and flag is state.phase:
        flag = state.is_training
    first, second = (part() if callable(part) else part for part in (x, alt))
    return tf.where(tf.cast(flag, tf.bool), first, second)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` outside of training, else `alt`."""
    return in_train_phase(alt, x, training)
