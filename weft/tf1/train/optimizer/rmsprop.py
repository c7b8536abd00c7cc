"""RMSProp (Tieleman and Hinton, 2012)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class RMSPropOptimizer(Optimizer):
    """Gradients divided by the root of a running mean of their squares, with momentum.

    With `centered`, by the root of a running variance.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _hyperparameters(self) -> dict[str, Any]:
        return {
            "learning_rate": self._learning_rate, "decay": self._decay,
            "momentum": self._momentum, "epsilon": self._epsilon,
        }  # fmt: skip

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            self.slot(var, "rms", self._name, initializer.ones_initializer())
            if self._centered:
                self.slot(var, "mg", self._name)
            self.slot(var, "momentum", self._name)

    def _apply(self, grad: Any, var: Variable) -> Operation:
        names = ("rms", "mg", "momentum") if self._centered else ("rms", "momentum")
        slots = [self._slots[name][var] for name in names]
        rates = [self.rate(n, var) for n in ("learning_rate", "decay", "momentum", "epsilon")]
        kind = "ApplyCenteredRMSProp" if self._centered else "ApplyRMSProp"
        update = _centered if self._centered else _plain
        return self.emit(kind, grad, var, slots, rates, update, lazy=True)


def _plain(
    g: Value, var: Value, rms: Value, mom: Value,
    rate: Value, decay: Value, momentum: Value, epsilon: Value,
) -> tuple[Value, ...]:  # fmt: skip
    rms = rms + (ops.square(g) - rms) * (1.0 - decay)
    mom = mom * momentum + rate * g * ops.rsqrt(rms + epsilon)
    return var - mom, rms, mom


def _centered(
    g: Value, var: Value, rms: Value, mg: Value, mom: Value,
    rate: Value, decay: Value, momentum: Value, epsilon: Value,
) -> tuple[Value, ...]:  # fmt: skip
    rms = rms + (ops.square(g) - rms) * (1.0 - decay)
    mg = mg + (g - mg) * (1.0 - decay)
    mom = mom * momentum + rate * g * ops.rsqrt(rms - ops.square(mg) + epsilon)
    return var - mom, rms, mg, mom
