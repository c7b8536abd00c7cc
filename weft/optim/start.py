"""The start of a step: the gradient's sign and weight decay, the same in most optimizers."""

from __future__ import annotations

from weft.ir.node import Value
from weft.optim.optimizer import Hyper


def start(
    p: Value, g: Value, hyper: Hyper, decay: bool, maximize: bool, decoupled: bool = False
) -> tuple[Value, Value]:
    """The parameter and the gradient that the rule works on.

    Args:
        decay: add weight_decay * p to the gradient, or shrink p directly where it is `decoupled`.
        maximize: ascend instead of descending.
    """
    if maximize:
        g = -g
    if decay and decoupled:
        p = p * hyper["shrink"]
    elif decay:
        g = g + p * hyper["weight_decay"]
    return p, g
