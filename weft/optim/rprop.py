"""Rprop: a step size for each element; only the gradient's sign counts."""

from __future__ import annotations

from dataclasses import KW_ONLY

from weft.errors import OptimizerError
from weft.ops.optimizer.descent import rprop
from weft.ops.optimizer.rule import begun
from weft.optim.descent import Descent
from weft.optim.optimizer import Group
from weft.optim.option import check_nonnegative, hint, nonnegative, option


def _check_etas(owner: str, name: str, value: tuple[float, float]) -> tuple[float, ...]:
    if not 0 < value[0] < 1 < value[1]:
        raise OptimizerError.here(f"{owner}: expected 0 < {name}[0] < 1 < {name}[1], got {value}")
    return tuple(value)


def _check_sizes(owner: str, name: str, value: tuple[float, float]) -> tuple[float, ...]:
    check_nonnegative(owner, "step_size", value[0])
    return tuple(value)


class Rprop(Descent):
    """p -= size * sign(g); the size grows while the sign stays and shrinks when it flips.

    Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP
    Algorithm", 1993.

    Args:
        lr: the first size.
        etas: factors by which sizes shrink and grow.
        step_sizes: the smallest and the largest size.
    """

    rule = begun(rprop)
    may_lag = True

    lr: float = nonnegative(default=1e-2)
    etas: tuple[float, float] = option(default=(0.5, 1.2), check=_check_etas)
    step_sizes: tuple[float, float] = option(default=(1e-6, 50.0), check=_check_sizes)
    _: KW_ONLY
    capturable: bool = hint(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The previous gradient, and the step sizes."""
        return {"prev": 0.0, "step_size": group["lr"]}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """Factors and bounds of the step sizes."""
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        return {"shrink": shrink, "grow": grow, "least": least, "most": most}
