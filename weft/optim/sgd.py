"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.eager.functions.api import Tensor
from weft.errors import OptimizerError
from weft.ir.node import Value, at_user_line
from weft.ops.declaration import catalogue
from weft.ops.indexing.row_sparse import RowSparse
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(
    p: Value,
    g: Any,
    *slots: Value,
    hyper: Hyper,
    decay: bool,
    first: bool,
    nesterov: bool,
    maximize: bool,
) -> Update:
    if isinstance(g, RowSparse):
        if not (slots or decay):
            sign = hyper["lr"] if maximize else -hyper["lr"]
            return Update(catalogue.scatter_add(p, g.indices, g.values * sign), ())
        g = g.dense()
    p, g = start(p, g, hyper, decay, maximize)
    if not slots:
        return Update(p - hyper["lr"] * g, ())
    buffer = g if first else slots[0] * hyper["momentum"] + g * hyper["rest"]
    direction = g + buffer * hyper["momentum"] if nesterov else buffer
    return Update(p - hyper["lr"] * direction, (buffer,))


class SGD(Optimizer):
    """p -= lr * v, where v = momentum * v + (1 - dampening) * (g + weight_decay * p).

    The first v is the gradient itself, as in PyTorch. Row-sparse gradients (of embeddings) touch
    only their rows where there is neither momentum nor weight decay.

    Args:
        nesterov: step along g + momentum * v instead.
        maximize: ascend.

    >>> import weft as wf
    >>> w = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.800000011920929, 1.600000023841858]
    """

    rule = _rule
    may_lag = True
    takes_rows = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        nonnegative("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise OptimizerError(
                f"SGD: nesterov expects a momentum above 0 and no dampening{at_user_line()}"
            )
        self.differentiable = differentiable
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        })  # fmt: skip

    def slots(self, group: Group) -> dict[str, float]:
        """The running sum of gradients, with momentum."""
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def _begin(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        """A momentum buffer without a step count, as PyTorch saves it, is not the first one."""
        known = "momentum_buffer" in state
        super()._begin(p, group, state)
        state["step"] = int(known)

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """Learning rate, weight decay and momentum."""
        return {
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "momentum": group["momentum"],
            "rest": 1 - group["dampening"],
        }

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            "decay": group["weight_decay"] != 0,
            "first": step == 1 and group["dampening"] != 0,
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }
