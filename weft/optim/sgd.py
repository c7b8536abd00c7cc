"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from weft.eager.functions.api import Tensor
from weft.errors import OptimizerError
from weft.ir.node import Value
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.optimizer.descent import sgd, sgd_rows
from weft.ops.optimizer.rule import Hyper, Update, begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import hint, nonnegative, option

_dense = begun(sgd)


def _rule(p: Value, g: Any, *slots: Value, hyper: Hyper, **flags: bool) -> Update:
    if isinstance(g, RowSparse):
        if not (slots or flags["decay"]):
            lr = -hyper["lr"] if flags["maximize"] else hyper["lr"]
            return Update(sgd_rows(p, g.indices, g.values, lr), ())
        g = g.dense()
    return _dense(p, g, *slots, hyper=hyper, **flags)


class SGD(Descent):
    """p -= lr * v, where v = momentum * v + (1 - dampening) * (g + weight_decay * p).

    The first v is the gradient itself, as in PyTorch. Row-sparse gradients (of embeddings) touch
    only their rows where there is neither momentum nor weight decay.

    Args:
        momentum: the part of v that stays; 0 goes without v.
        dampening: the part of the gradient that v leaves out.
        nesterov: step along g + momentum * v instead.

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

    lr: float = nonnegative(default=1e-3)
    momentum: float = nonnegative(default=0.0)
    dampening: float = option(default=0.0)
    weight_decay: float = nonnegative(default=0.0)
    nesterov: bool = option(default=False)
    _: KW_ONLY
    fused: bool | None = hint(default=None)

    def __post_init__(self) -> None:
        options = self.defaults
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise OptimizerError.here("SGD: nesterov expects a momentum above 0 and no dampening")

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
        numbers = {"lr": group["lr"], "momentum": group["momentum"]}
        return {**numbers, "rest": 1 - group["dampening"], **super().numbers(group, step)}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {
            **super().flags(group, step),
            "first": step == 1 and group["dampening"] != 0,
            "nesterov": group["nesterov"],
        }
