"""Gradient descent, also with momentum (Polyak) or Nesterov's."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ir.node import Value
from weft.ops.optimizer.descent import sgd, sgd_rows
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable import Variable

__all__ = ["GradientDescentOptimizer", "MomentumOptimizer"]


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

    @staticmethod
    def _rule(g: Value, w: Value, rate: Value) -> tuple[Value, ...]:
        return sgd(w, g, lr=rate).values


def _rows(grad: IndexedSlices, var: Variable, rate: Any) -> Operation:
    def build(_: Value, step: Value, rows: Value, indices: Value) -> Value:
        old = ops.read(var.handle, latest=True)
        return ops.assign(var.handle, sgd_rows(old, indices, rows, step))

    inputs = [var._ref(), rate, grad.values, grad.indices]  # pyright: ignore[reportPrivateUsage]
    return var.graph.emit("ScatterSub", inputs, build, name="ScatterSub")


class MomentumOptimizer(Optimizer):
    """a = momentum * a + gradient; var -= learning_rate * a

    With `use_nesterov`, var -= learning_rate * (gradient + momentum * a) (Sutskever et al., 2013).

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        momentum: the part of a that stays.
        use_nesterov: whether to look ahead.
    """

    _kind = "ApplyMomentum"
    _lazy = True

    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(learning_rate=learning_rate, momentum=momentum)
        self._fresh = {"momentum": None}
        self._options = {"nesterov": use_nesterov}

    @staticmethod
    def _rule(
        g: Value, w: Value, a: Value, rate: Value, part: Value, *, nesterov: bool
    ) -> tuple[Value, ...]:
        return sgd(w, g, a, lr=rate, momentum=part, nesterov=nesterov, rate_first=True).values
