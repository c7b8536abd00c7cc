"""Rprop: a step size for each element; only the gradient's sign counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.errors import OptimizerError
from weft.ir.node import Value, at_user_line
from weft.ops.declaration import catalogue
from weft.optim.check import nonnegative
from weft.optim.optimizer import Group, Hyper, Optimizer, Update


def _rule(
    p: Value, g: Value, before: Value, size: Value, *, hyper: Hyper, maximize: bool
) -> Update:
    if maximize:
        g = -g
    turn = catalogue.sign(g * before)
    none = turn * 0
    larger = catalogue.minimum(size * hyper["grow"], hyper["most"])
    smaller = catalogue.maximum(size * hyper["shrink"], hyper["least"])
    size = catalogue.select(
        catalogue.greater(turn, none),
        larger,
        catalogue.select(catalogue.less(turn, none), smaller, size),
    )
    g = catalogue.select(catalogue.less(turn, none), none, g)
    return Update(p - catalogue.sign(g) * size, (g, size))


class Rprop(Optimizer):
    """p -= size * sign(g); the size grows while the sign stays and shrinks when it flips.

    Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP
    Algorithm", 1993.

    Args:
        etas: factors by which sizes shrink and grow.
        step_sizes: the smallest and the largest size.
    """

    rule = _rule
    may_lag = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise OptimizerError(
                f"Rprop: expected 0 < etas[0] < 1 < etas[1], got {etas}{at_user_line()}"
            )
        nonnegative("Rprop", lr=lr, step_size=step_sizes[0])
        self.differentiable = differentiable
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": tuple(etas),
                "step_sizes": tuple(step_sizes),
                "maximize": maximize,
            },
        )

    def slots(self, group: Group) -> dict[str, float]:
        """The previous gradient, and the step sizes."""
        return {"prev": 0.0, "step_size": group["lr"]}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """Factors and bounds of the step sizes."""
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        return {"shrink": shrink, "grow": grow, "least": least, "most": most}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """Which terms the rule has."""
        return {"maximize": group["maximize"]}
