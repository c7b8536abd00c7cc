"""FTRL: follow the regularized leader, for sparse linear models."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.optimizer.rule import Update


def ftrl(
    p: Value, g: Value, total: Value, linear: Value, *, lr: Value, l1: Value, l2: Value,
    power: float = -0.5, shrinkage: Value | None = None,
) -> Update:  # fmt: skip
    """p = (sign(z) * l1 - z) / (n ** -power / lr + 2 * l2) where |z| > l1, else 0.

    n is the sum of all g * g; z is the sum of all g less what p is moved by the change of the
    learning rate: p * (n ** -power - (n before) ** -power) / lr.

    Args:
        total, linear: n and z.
        power: how the learning rate falls with n.
        shrinkage: times 2 p is added to g in z only.

    Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, algorithm 1.
    """
    new = total + g * g
    before, after = (_raised(x, -power) for x in (total, new))
    slope = g if shrinkage is None else g + shrinkage * 2.0 * p
    linear = linear + slope - (after - before) / lr * p
    moved = (catalogue.sign(linear) * l1 - linear) / (after / lr + l2 * 2.0)
    return Update(
        catalogue.select(catalogue.greater(catalogue.abs(linear), l1), moved, p * 0.0),
        (new, linear),
    )


def _raised(x: Value, power: float) -> Value:
    return catalogue.sqrt(x) if power == 0.5 else catalogue.power(x, power)
