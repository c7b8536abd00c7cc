"""Adam (Kingma and Ba, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.tf1.control import dependency
from weft.tf1.framework.graph import control_dependencies
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable import Variable


class AdamOptimizer(Optimizer):
    """Adam as TensorFlow has it: epsilon is added to the root of the uncorrected second moment."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _hyperparameters(self) -> dict[str, Any]:
        return {
            "learning_rate": self._lr, "beta1": self._beta1, "beta2": self._beta2,
            "epsilon": self._epsilon,
        }  # fmt: skip

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda v: v.name)
        for name, value in (("beta1_power", self._beta1), ("beta2_power", self._beta2)):
            self.extra(name, value() if callable(value) else value, first)
        for var in var_list:
            self.slot(var, "m", self._name)
            self.slot(var, "v", self._name)

    def _powers(self, var: Variable) -> list[Variable]:
        return [self._extra[(name, var.graph)] for name in ("beta1_power", "beta2_power")]

    def _apply(self, grad: Any, var: Variable) -> Operation:
        rates = [self.rate(n, var) for n in ("learning_rate", "beta1", "beta2", "epsilon")]
        kind = var.dtype.base_dtype.ir

        def power(variable: Variable) -> Value:
            value = ops.read(variable.handle)
            return value if value.dtype is kind else ops.cast(value, dtype=kind)

        def update(g: Value, w: Value, m: Value, v: Value, *rest: Value) -> tuple[Value, ...]:
            rate, beta1, beta2, epsilon = rest
            power1, power2 = (power(p) for p in self._powers(var))
            step = rate * ops.sqrt(1.0 - power2) / (1.0 - power1)
            m = m + (g - m) * (1.0 - beta1)
            v = v + (ops.square(g) - v) * (1.0 - beta2)
            return w - m * step / (ops.sqrt(v) + epsilon), m, v

        slots = [self._slots["m"][var], self._slots["v"][var]]
        return self.emit("ApplyAdam", grad, var, slots, rates, update)

    def _finish(self, update_ops: list[Operation], name_scope: str) -> Operation:
        """Update the powers of the betas after all updates have used them."""
        first, second = self._powers(_variable_in(self._slots["m"]))
        with control_dependencies(update_ops):
            moved = [
                power.assign(power.value() * self.rate(name, power)).op
                for power, name in ((first, "beta1"), (second, "beta2"))
            ]
        return dependency.group(*update_ops, *moved, name=name_scope)


def _variable_in(slots: dict[Any, Variable]) -> Variable:
    return next(reversed(slots.values()))
