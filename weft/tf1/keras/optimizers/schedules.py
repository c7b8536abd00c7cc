"""`tf.keras.optimizers.schedules`: learning rates as functions of the update count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.documentation import arguments_of
from weft.tf1.keras.storage.serialization import Configured


class LearningRateSchedule(Configured):
    """Base class: `schedule(step)` returns the rate of a step."""

    def __call__(self, step: Any) -> Any:
        """The rate of a step."""
        raise NotImplementedError


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate * decay_rate ** (step / decay_steps)

    Args:
        initial_learning_rate: the rate of the first step.
        decay_steps: the steps after which the decay is `decay_rate`.
        decay_rate: how much the rate falls.
        staircase: whether it falls in jumps, one after each `decay_steps`.
        name: kept in the configuration.
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, decay_rate: float,
        staircase: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step: Any) -> Any:
        """The rate of a step."""
        return tf.train.exponential_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase
        )


@arguments_of(ExponentialDecay)
class InverseTimeDecay(ExponentialDecay):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps)"""

    def __call__(self, step: Any) -> Any:
        """The rate of a step."""
        return tf.train.inverse_time_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase
        )


@arguments_of(ExponentialDecay)
class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to boundaries[i], then the last value.

    Args:
        boundaries: the last step of each value but the last.
        values: the rates, one more than boundaries.
    """

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], name: str | None = None
    ) -> None:
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def __call__(self, step: Any) -> Any:
        """The rate of a step."""
        return tf.train.piecewise_constant(step, self.boundaries, self.values)


@arguments_of(ExponentialDecay)
class PolynomialDecay(LearningRateSchedule):
    """From the initial rate to the end rate in `decay_steps` steps.

    Args:
        decay_steps: the steps of the way.
        end_learning_rate: the last rate.
        power: the exponent; 1 is a straight line.
        cycle: go on after `decay_steps`, from a lower rate each time.
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, end_learning_rate: float = 0.0001,
        power: float = 1.0, cycle: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power = end_learning_rate, power
        self.cycle, self.name = cycle, name

    def __call__(self, step: Any) -> Any:
        """The rate of a step."""
        return tf.train.polynomial_decay(
            self.initial_learning_rate, step, self.decay_steps, self.end_learning_rate, self.power,
            self.cycle,
        )  # fmt: skip


TABLE = {cls.__name__: cls for cls in (
    ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay, PolynomialDecay,
)}  # fmt: skip
"""Schedules by the names of configurations."""
