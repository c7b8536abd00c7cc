"""Gradient descent."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.ops.optimizer.descent import sgd, sgd_rows
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable.variable import Variable


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
    """

    _kind = "ApplyGradientDescent"

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._keep(learning_rate=learning_rate)

    def _apply(self, grad: Any, var: Variable) -> Operation:
        if isinstance(grad, IndexedSlices):
            return _rows(grad, var, self.rate("learning_rate", var))
        return super()._apply(grad, var)

    def _update_of(self, var: Variable) -> Update:
        return lambda g, w, rate: sgd(w, g, lr=rate).values


def _rows(grad: IndexedSlices, var: Variable, rate: Any) -> Operation:
    def build(_: Value, step: Value, rows: Value, indices: Value) -> Value:
        old = ops.read(var.handle, latest=True)
        return ops.assign(var.handle, sgd_rows(old, indices, rows, step))

    inputs = [var._ref(), rate, grad.values, grad.indices]  # pyright: ignore[reportPrivateUsage]
    return var.graph.emit("ScatterSub", inputs, build, name="ScatterSub")
