"""Descent of matrices along orthogonalized means of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.dtype import bfloat16, float32
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.optimizer.rule import Hyper, Update, averaged


def _original(rows: int, columns: int) -> float:
    return math.sqrt(max(1.0, rows / columns))


RATIOS: Final[dict[str | None, Callable[[int, int], float]]] = {
    None: _original, "original": _original,
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}  # fmt: skip
"""By what the learning rate is multiplied, from rows and columns."""


def orthogonalized(x: Value, a: Value, b: Value, c: Value, eps: Value, steps: int) -> Value:
    """A matrix with its singular vectors and singular values of about 1, of bfloat16's precision.

    Each of the steps maps singular values s to a s + b s^3 + c s^5.
    """
    rows, columns = known(x.shape)
    turned = rows > columns
    turn = (1, 0)

    def short(x: Value) -> Value:  # a value of bfloat16, which is multiplied in float32
        return catalogue.cast(catalogue.cast(x, dtype=bfloat16), dtype=float32)

    a, b, c, eps, x = (catalogue.cast(v, dtype=float32) for v in (a, b, c, eps, x))
    x = short(catalogue.transpose(x, perm=turn) if turned else x)
    x = short(x / catalogue.maximum(short(catalogue.norm(x)), eps))
    for _ in range(steps):
        gram = short(catalogue.matmul(x, catalogue.transpose(x, perm=turn)))
        change = short(b * gram + c * catalogue.matmul(gram, gram))
        x = short(a * x + catalogue.matmul(change, x))
    return catalogue.transpose(x, perm=turn) if turned else x


def muon(
    p: Value, g: Value, m: Value, *, hyper: Hyper, nesterov: bool, steps: int, ratio: str | None
) -> Update:
    """p = p * shrink - lr * ratio * orthogonalized(m), m a running mean of gradients.

    Args:
        nesterov: the mean of g and m instead of m.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
    """
    lr, momentum = hyper["lr"], hyper["momentum"]
    rows, columns = known(p.shape)
    m = averaged(m, g, hyper["rest"])
    step = averaged(g, m, momentum) if nesterov else m
    a, b, c, eps = [hyper[name] for name in ("a", "b", "c", "eps")]
    step = orthogonalized(step, a, b, c, eps, steps)
    step = catalogue.cast(step, dtype=p.dtype) * (lr * RATIOS[ratio](rows, columns))
    return Update(p * hyper["shrink"] - step, (m,))
