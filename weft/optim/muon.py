"""Muon: momentum of a matrix, stepped along with all its singular values about 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.errors import OptimizerError
from weft.ops.optimizer.orthogonal import RATIOS, muon
from weft.optim.optimizer import Group, Optimizer
from weft.optim.option import nonnegative, option


def _check_adjustment(owner: str, name: str, value: str | None) -> str | None:
    if value not in RATIOS:
        raise OptimizerError.here(
            f"{owner}: expected {name} 'original', 'match_rms_adamw' or None, got {value!r}"
        )
    return value


class Muon(Optimizer):
    """p -= lr * (ratio * orthogonalized(m) + weight_decay * p), of matrices.

    Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024. Singular values
    become about 1 by Newton-Schulz iterations in bfloat16, as in PyTorch.

    Args:
        lr: the learning rate.
        weight_decay: what part of lr * p is taken from the parameters.
        momentum: the part of the running mean m of gradients that stays.
        nesterov: step along the mean of g and m instead of m.
        ns_coefficients: of x, of x^3 and of x^5 in an iteration.
        eps: the least norm that a matrix is divided by.
        ns_steps: the number of iterations.
        adjust_lr_fn: `"original"`: a matrix of more rows than columns has a ratio of
            sqrt(rows / columns); `"match_rms_adamw"`: of 0.2 * sqrt(the longer of them), as large
            as AdamW's steps.

    Raises:
        OptimizerError: a parameter is no matrix.
    """

    rule = muon
    elementwise = False

    params: Iterable[Any]
    lr: float = nonnegative(default=1e-3)
    weight_decay: float = nonnegative(default=0.1)
    momentum: float = nonnegative(default=0.95)
    nesterov: bool = option(default=True)
    ns_coefficients: tuple[float, float, float] = option(default=(3.4445, -4.7750, 2.0315))
    eps: float = nonnegative(default=1e-7)
    ns_steps: int = option(default=5)
    adjust_lr_fn: str | None = option(default=None, check=_check_adjustment)

    def _check(self, p: Any, known: set[int]) -> None:
        super()._check(p, known)
        if p.ndim != 2 or not p.dtype.is_floating_point:
            raise OptimizerError.here(
                f"Muon: expected matrices of real numbers, got {p.dtype} of shape {tuple(p.shape)}"
            )

    def slots(self, group: Group) -> dict[str, float]:
        """The running mean of gradients."""
        return {"momentum_buffer": 0.0}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters that the rule takes as numbers."""
        a, b, c = group["ns_coefficients"]
        return {
            "lr": group["lr"], "momentum": group["momentum"], "rest": 1 - group["momentum"],
            "shrink": 1 - group["lr"] * group["weight_decay"], "eps": group["eps"],
            "a": a, "b": b, "c": c,
        }  # fmt: skip

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """What the rule's structure depends on."""
        return {
            "nesterov": group["nesterov"], "steps": group["ns_steps"],
            "ratio": group["adjust_lr_fn"],
        }  # fmt: skip
