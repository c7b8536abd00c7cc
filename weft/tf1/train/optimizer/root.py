"""Steps divided by roots of sums or means of squares: Adagrad, Adadelta, RMSProp."""

from __future__ import annotations

from typing import Any

from weft.errors import GraphError
from weft.ir.node import Value
from weft.ops.optimizer.root import adadelta, adagrad, rmsprop
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable import initializer

__all__ = ["AdadeltaOptimizer", "AdagradOptimizer", "RMSPropOptimizer"]


class AdagradOptimizer(Optimizer):
    """Duchi et al. (2011): a += gradient ** 2; var -= learning_rate * gradient / sqrt(a)

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        initial_accumulator_value: a before the first step, above 0.

    Raises:
        GraphError: it is not above 0.
    """

    _kind = "ApplyAdagrad"
    _lazy = True

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:  # fmt: skip
        if initial_accumulator_value <= 0.0:
            raise GraphError(
                f"initial_accumulator_value: expected > 0, got {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._keep(learning_rate=learning_rate)
        self._fresh = {"accumulator": initializer.constant_initializer(initial_accumulator_value)}

    @staticmethod
    def _rule(g: Value, w: Value, a: Value, rate: Value) -> tuple[Value, ...]:
        return adagrad(w, g, a, lr=rate, rate_first=True, reciprocal=True).values


class AdadeltaOptimizer(Optimizer):
    """Zeiler (2012): steps in units of the parameters: gradients times a quotient of running roots.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        rho: the factor of the running means.
        epsilon: added to the means before their roots are taken.
    """

    _kind = "ApplyAdadelta"
    _lazy = True

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8,
        use_locking: bool = False, name: str = "Adadelta",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(lr=learning_rate, rho=rho, epsilon=epsilon)
        self._fresh = {"accum": None, "accum_update": None}

    @staticmethod
    def _rule(
        g: Value, w: Value, square: Value, moved: Value, rate: Value, rho: Value, eps: Value
    ) -> tuple[Value, ...]:
        return adadelta(w, g, square, moved, lr=rate, rho=rho, rest=1.0 - rho, eps=eps).values


class RMSPropOptimizer(Optimizer):
    """Tieleman and Hinton (2012): gradients over the root of a mean of squares, with momentum.

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
        self._options = {"centered": centered}
        means = {"rms": initializer.ones_initializer(), **({"mg": None} if centered else {})}
        self._fresh = {**means, "momentum": None}
        self._kind = "ApplyCenteredRMSProp" if centered else "ApplyRMSProp"

    @staticmethod
    def _rule(g: Value, w: Value, *rest: Value, centered: bool) -> tuple[Value, ...]:
        *slots, rate, decay, momentum, epsilon = rest
        return rmsprop(
            w, g, *slots, lr=rate, rest=1.0 - decay, eps=epsilon, momentum=momentum,
            centered=centered, rate_first=True, inside=True, reciprocal=True,
        ).values  # fmt: skip
