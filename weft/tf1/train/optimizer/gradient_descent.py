"""Gradient descent."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable import Variable


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient"""

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _hyperparameters(self) -> dict[str, Any]:
        return {"learning_rate": self._learning_rate}

    def _apply(self, grad: Any, var: Variable) -> Operation:
        rate = self.rate("learning_rate", var)
        if isinstance(grad, IndexedSlices):
            return _rows(grad, var, rate)
        return self.emit("ApplyGradientDescent", grad, var, (), [rate], _update)


def _update(g: Value, var: Value, rate: Value) -> tuple[Value]:
    return (var - rate * g,)


def _rows(grad: IndexedSlices, var: Variable, rate: Any) -> Operation:
    def build(_: Value, step: Value, rows: Value, indices: Value) -> Value:
        old = ops.read(var.handle, latest=True)
        return ops.assign(var.handle, ops.scatter_add(old, indices, -(step * rows)))

    inputs = [var._ref(), rate, grad.values, grad.indices]  # pyright: ignore[reportPrivateUsage]
    return var.graph.emit("ScatterSub", inputs, build, name="ScatterSub")
