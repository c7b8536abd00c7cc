"""Adam (Kingma and Ba, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.ops.optimizer.adam import adam, corrected
from weft.tf1.control import dependency
from weft.tf1.framework.default_graph import colocate_with, control_dependencies
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable.variable import Variable

_POWERS = {"beta1_power": "beta1", "beta2_power": "beta2"}
"""The variables that hold powers of the betas."""


class AdamOptimizer(Optimizer):
    """Adam as TensorFlow has it: epsilon is added to the root of the uncorrected second moment.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        beta1, beta2: the factors of the running means of the gradient and of its square.
        epsilon: added to the denominator, so that it is not 0.
    """

    _kind = "ApplyAdam"

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        use_locking: bool = False, name: str = "Adam",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(lr=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        self._fresh = {"m": None, "v": None}

    def _hyperparameters(self) -> dict[str, Any]:
        rates = super()._hyperparameters()
        return {"learning_rate": rates.pop("lr"), **rates}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda v: v.name)
        for name, beta in _POWERS.items():
            value = self._hyperparameters()[beta]
            self.extra(name, value() if callable(value) else value, first)
        super()._create_slots(var_list)

    def _update_of(self, var: Variable) -> Update:
        powers = [self._extra[name, var.graph] for name in _POWERS]

        def power(held: Variable) -> Value:
            value, dtype = ops.read(held.handle), var.dtype.base_dtype.ir
            return value if value.dtype is dtype else ops.cast(value, dtype=dtype)

        def update(g: Value, w: Value, m: Value, v: Value, *rates: Value) -> tuple[Value, ...]:
            rate, beta1, beta2, epsilon = rates
            step = corrected(rate, *map(power, powers))
            rests = {"rest1": 1.0 - beta1, "rest2": 1.0 - beta2}
            return adam(w, g, m, v, step=step, eps=epsilon, **rests).values

        return update

    def _finish(self, update_ops: list[Operation], name_scope: str) -> Operation:
        """Update the powers of the betas after all updates have used them."""
        graph = next(reversed(self._slots["m"].values())).graph
        powers = [(self._extra[name, graph], beta) for name, beta in _POWERS.items()]
        with control_dependencies(update_ops):
            moved = [self._moved(power, beta) for power, beta in powers]
        return dependency.group(*update_ops, *moved, name=name_scope)

    def _get_beta_accumulators(self) -> tuple[Variable | None, Variable | None]:
        """The powers of the betas in the default graph, as old programs ask for them."""
        graph = get_default_graph()
        return self._extra.get(("beta1_power", graph)), self._extra.get(("beta2_power", graph))

    def _moved(self, power: Variable, beta: str) -> Operation:
        with colocate_with(power):
            return power.assign(power.value() * self.rate(beta, power)).op
