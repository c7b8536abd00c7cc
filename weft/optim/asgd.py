"""ASGD: stochastic gradient descent with the average of all parameters so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.optim.carried import rounded
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update
from weft.optim.start import start


def _rule(p: Value, g: Value, mean: Value, *, hyper: Hyper, decay: bool, maximize: bool) -> Update:
    p, g = start(p, g, hyper, decay, maximize)
    p = p * hyper["shrink"] - hyper["step"] * g
    return Update(p, (mean + (p - mean) * hyper["part"],))


class ASGD(Optimizer):
    """p -= eta * (g + lambd * p), with a decreasing eta; `state[p]["ax"]` is the average of p.

    As in PyTorch, a step uses the `eta` and the weight of the average, `mu`, that the step before
    left in the state: a change of the learning rate takes effect one step later.

    Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

    Args:
        lambd, alpha: eta is lr / (1 + lambd * lr * t) ** alpha.
        t0: the step at which averaging begins.
    """

    rule = _rule
    carries = ("eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        nonnegative("ASGD", lr=lr, weight_decay=weight_decay)
        self.differentiable = differentiable
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The average."""
        return {"ax": 0.0}

    def scalars(self, group: Group, step: int) -> dict[str, float]:
        """The next step's size, and the weight of its new value in the average."""
        size = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
        return {"eta": rounded(size), "mu": rounded(1 / max(1.0, step - group["t0"]))}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The step size and the weight that the step before left."""
        size = group["eta"]
        return {
            "step": size, "shrink": 1 - group["lambd"] * size, "part": group["mu"],
            "weight_decay": group["weight_decay"],
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {"decay": group["weight_decay"] != 0, "maximize": group["maximize"]}
