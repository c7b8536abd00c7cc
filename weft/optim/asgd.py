"""ASGD: stochastic gradient descent with the average of all parameters so far."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.ops.optimizer.descent import asgd
from weft.ops.optimizer.rule import begun
from weft.optim.carried import rounded
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import hint, nonnegative, option


class ASGD(Descent):
    """p -= eta * (g + lambd * p), with a decreasing eta; `state[p]["ax"]` is the average of p.

    As in PyTorch, a step uses the `eta` and the weight of the average, `mu`, that the step before
    left in the state: a change of the learning rate takes effect one step later.

    Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

    Args:
        lambd, alpha: eta is lr / (1 + lambd * lr * t) ** alpha.
        t0: the step at which averaging begins.
    """

    rule = begun(asgd)
    carries = ("eta", "mu")

    lr: float = nonnegative(default=1e-2)
    lambd: float = option(default=1e-4)
    alpha: float = option(default=0.75)
    t0: float = option(default=1e6)
    weight_decay: float = nonnegative(default=0.0)
    _: KW_ONLY
    capturable: bool = hint(default=False)

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
        numbers = {"step": size, "shrink": 1 - group["lambd"] * size, "part": group["mu"]}
        return {**numbers, **super().numbers(group, step)}
