"""`tf.keras.constraints`: projections of weights, applied after each update."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import weft.tf1 as tf
from weft.ops.reduction.norm import norms_between
from weft.tf1.framework.graph import emit
from weft.tf1.keras.storage.serialization import Configured, getter, serialize, table_of

__all__ = [
    "Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "deserialize", "get", "max_norm",
    "min_max_norm", "non_neg", "serialize", "unit_norm",
]  # fmt: skip


class Constraint(Configured):
    """Base class: `constraint(w)` returns the constrained weights."""

    def __call__(self, w: Any) -> Any:
        """The constrained weights."""
        raise NotImplementedError


def _between(w: Any, axis: Any, low: float, high: float, rate: float = 1.0) -> Any:
    """Weights rescaled so that their norms over axes lie between bounds."""
    axes = tuple(axis) if isinstance(axis, list | tuple) else axis
    limits = {"low": float(low), "high": float(high), "rate": float(rate)}
    build = partial(norms_between, axes=axes, **limits)
    return emit("Mul", [tf.convert_to_tensor(w)], build, name="constrained")


class MaxNorm(Constraint):
    """Limits norms along `axis` to `max_value`.

    Args:
        max_value: the largest norm.
        axis: along which norms are taken, or several.
    """

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Any:
        """The constrained weights."""
        return _between(w, self.axis, 0.0, self.max_value)


class NonNeg(Constraint):
    """Makes weights non-negative."""

    def __call__(self, w: Any) -> Any:
        """The constrained weights."""
        return tf.nn.relu(w)


class UnitNorm(Constraint):
    """Makes norms along `axis` 1.

    Args:
        axis: along which norms are taken, or several.
    """

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        """The constrained weights."""
        return _between(w, self.axis, 1.0, 1.0)


class MinMaxNorm(Constraint):
    """Moves norms along `axis` into bounds, by `rate` of the way.

    Args:
        min_value, max_value: the bounds.
        rate: the part of the way, from 0 to 1.
        axis: along which norms are taken, or several.
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Any:
        """The constrained weights."""
        return _between(w, self.axis, self.min_value, self.max_value, self.rate)


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm
NAMES: Final = table_of(globals(), "Constraint")


get = deserialize = getter("constraint", NAMES)
