"""Adagrad (Duchi et al., 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.errors import GraphError
from weft.ir.node import Value
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class AdagradOptimizer(Optimizer):
    """a += gradient ** 2; var -= learning_rate * gradient / sqrt(a)"""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise GraphError(
                f"initial_accumulator_value: expected > 0, got {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_accumulator_value

    def _hyperparameters(self) -> dict[str, Any]:
        return {"learning_rate": self._learning_rate}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            make = initializer.constant_initializer(self._initial)
            self.slot(var, "accumulator", self._name, make)

    def _apply(self, grad: Any, var: Variable) -> Operation:
        slots = [self._slots["accumulator"][var]]
        return self.emit(
            "ApplyAdagrad", grad, var, slots, [self.rate("learning_rate", var)], _update
        )


def _update(g: Value, var: Value, a: Value, rate: Value) -> tuple[Value, Value]:
    a = a + ops.square(g)
    return var - rate * g * ops.rsqrt(a), a
