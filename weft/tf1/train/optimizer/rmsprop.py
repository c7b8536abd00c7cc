"""RMSProp (Tieleman and Hinton, 2012)."""

from __future__ import annotations

from typing import Any

from weft.ir.node import Value
from weft.ops.optimizer.root import rmsprop
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class RMSPropOptimizer(Optimizer):
    """Gradients divided by the root of a running mean of their squares, with momentum.

    With `centered`, by the root of a running variance.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        decay: the factor of the running means.
        momentum: the factor of the running sum of steps.
        epsilon: added to the mean before its root is taken.
        centered: subtract the square of the gradients' running mean.
    """

    _lazy = True

    def __init__(
        self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0, epsilon: Any = 1e-10,
        use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        rates = {"learning_rate": learning_rate, "decay": decay, "momentum": momentum}
        self._keep(**rates, epsilon=epsilon)
        self._centered = centered
        means = {"rms": initializer.ones_initializer(), **({"mg": None} if centered else {})}
        self._fresh = {**means, "momentum": None}
        self._kind = "ApplyCenteredRMSProp" if centered else "ApplyRMSProp"

    def _update_of(self, var: Variable) -> Update:
        centered = self._centered

        def update(g: Value, w: Value, *rest: Value) -> tuple[Value, ...]:
            *slots, rate, decay, momentum, epsilon = rest
            return rmsprop(
                w, g, *slots, lr=rate, rest=1.0 - decay, eps=epsilon, momentum=momentum,
                centered=centered, rate_first=True, inside=True, reciprocal=True,
            ).values  # fmt: skip

        return update
