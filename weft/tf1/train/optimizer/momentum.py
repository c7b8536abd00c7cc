"""Gradient descent with momentum (Polyak), or Nesterov's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.node import Value
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable import Variable


class MomentumOptimizer(Optimizer):
    """a = momentum * a + gradient; var -= learning_rate * a

    With `use_nesterov`, var -= learning_rate * (gradient + momentum * a) (Sutskever et al., 2013).
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _hyperparameters(self) -> dict[str, Any]:
        return {"learning_rate": self._learning_rate, "momentum": self._momentum}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            self.slot(var, "momentum", self._name)

    def _apply(self, grad: Any, var: Variable) -> Operation:
        rates = [self.rate("learning_rate", var), self.rate("momentum", var)]
        slots = [self.slot(var, "momentum", self._name)]
        update = _nesterov if self._use_nesterov else _update
        return self.emit("ApplyMomentum", grad, var, slots, rates, update, lazy=True)


def _update(g: Value, var: Value, a: Value, rate: Value, momentum: Value) -> tuple[Value, Value]:
    a = a * momentum + g
    return var - rate * a, a


def _nesterov(g: Value, var: Value, a: Value, rate: Value, momentum: Value) -> tuple[Value, Value]:
    a = a * momentum + g
    return var - (rate * g + rate * momentum * a), a
