"""Adafactor: squared gradients are kept as means of rows and of columns."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from weft.eager.functions.api import Tensor
from weft.eager.tensor.dtype.dtype_info import finfo
from weft.errors import OptimizerError
from weft.ops.optimizer.root import adafactor
from weft.optim.optimizer import Group, Optimizer, Shapes
from weft.optim.option import hint, nonnegative, option


def _check_decay(owner: str, name: str, value: float) -> float:
    if value > 0:
        raise OptimizerError.here(f"{owner}: expected {name} <= 0, got {value}")
    return value


def _check_floors(owner: str, name: str, value: Any) -> tuple[float | None, float]:
    least, floor = value
    if (least is not None and least < 0) or floor < 0:
        raise OptimizerError.here(f"{owner}: expected numbers of at least 0 as {name}, got {value}")
    return least, floor


def _check_clip(owner: str, name: str, value: float) -> float:
    if value < 1:
        raise OptimizerError.here(f"{owner}: expected {name} >= 1, got {value}")
    return value


class Adafactor(Optimizer):
    """p -= max(eps[1], rms(p)) * min(lr, 1 / sqrt(step)) * u / max(1, rms(u) / d).

    u is g / sqrt(v), with v the running mean of g * g, of matrices the product of the means of its
    rows and of its columns: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear
    Memory Cost", 2018, algorithms 4 and 5.

    Args:
        lr: the largest relative step.
        beta2_decay: a squared gradient counts as step ** beta2_decay of the running mean.
        eps: the least root of v, of which `None` is the dtype's eps; the least norm of p.
        d: the root mean square of u above which it is scaled down.
        weight_decay: what part of lr * p is taken from the parameters.
        maximize: ascend instead of descending.
        foreach: accepted as in PyTorch; all updates are always one program.
    """

    rule = adafactor
    elementwise = False

    lr: float = nonnegative(default=1e-2)
    beta2_decay: float = option(default=-0.8, check=_check_decay)
    eps: tuple[float | None, float] = option(default=(None, 1e-3), check=_check_floors)
    d: float = option(default=1.0, check=_check_clip)
    weight_decay: float = nonnegative(default=0.0)
    _: KW_ONLY
    foreach: bool | None = hint(default=None)
    maximize: bool = option(default=False)

    def _check(self, p: Any, known: set[int]) -> None:
        super()._check(p, known)
        if not p.dtype.is_floating_point:
            raise OptimizerError.here(f"Adafactor: expected real numbers, got {p.dtype}")

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"row_var": 0.0, "col_var": 0.0, "variance": 0.0}

    def shapes(self, p: Tensor) -> Shapes:
        """Of rows and columns of matrices; of elements of vectors."""
        shape = tuple(p.shape)
        if len(shape) < 2:
            return (("variance", shape),)
        return ("row_var", (*shape[:-1], 1)), ("col_var", (*shape[:-2], 1, shape[-1]))

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        least, floor = group["eps"]
        return {
            "rate": min(group["lr"], step**-0.5), "rest": step ** group["beta2_decay"],
            "least": finfo(group["params"][0].dtype).eps if least is None else least,
            "floor": floor, "clip": group["d"], "shrink": 1 - group["lr"] * group["weight_decay"],
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """The gradient's sign."""
        return {"maximize": bool(group["maximize"])}
