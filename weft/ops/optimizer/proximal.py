"""Steps that also shrink: followed by the proximal map of l1 |p| + l2 p ** 2 / 2."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.optimizer.rule import Update


def shrunk(p: Value, by: Value) -> Value:
    """p moved towards 0 by so much, and not beyond."""
    zero = constant_of(0, p.dtype)
    return catalogue.sign(p) * catalogue.maximum(catalogue.abs(p) - by, zero)


def proximal_descent(p: Value, g: Value, *, lr: Value, l1: Value, l2: Value) -> Update:
    """A step of gradient descent, then the proximal map.

    Source: Duchi and Singer, "Efficient Learning using Forward-Backward Splitting", 2009.
    """
    return Update(shrunk(p - lr * g, lr * l1) / (1.0 + lr * l2), ())


def proximal_adagrad(
    p: Value, g: Value, total: Value, *, lr: Value, l1: Value, l2: Value
) -> Update:
    """A step of Adagrad, then the proximal map with its rates; the slot sums g * g."""
    total = total + g * g
    rate = lr * catalogue.rsqrt(total)
    return Update(shrunk(p - rate * g, rate * l1) / (1.0 + rate * l2), (total,))


def dual_averaging(
    p: Value, g: Value, gradients: Value, squares: Value, *, lr: Value, l1: Value, l2: Value,
    step: Value,
) -> Update:  # fmt: skip
    """p from the sums of gradients and of their squares alone, sparse with l1.

    Args:
        step: the number of this step, from 1.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011, section 5.
    """
    del p
    gradients, squares = gradients + g, squares + g * g
    new = shrunk(gradients, l1 * step) * -lr / (l2 * step * lr + catalogue.sqrt(squares))
    return Update(new, (gradients, squares))


def ftrl(
    p: Value, g: Value, total: Value, linear: Value, *, lr: Value, l1: Value, l2: Value,
    power: Value, shrinkage: Value,
) -> Update:  # fmt: skip
    """p is the minimum of the linear model of all losses so far, regularized.

    Args:
        total: the slot that sums g * g.
        linear: the slot of the linear model.
        power: of the totals in the learning rates; -1/2 or 0 to decay them by the root or not.
        shrinkage: times 2 p is added to the gradient in the linear model only.

    Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, algorithm 1.
    """
    new = total + g * g
    before, after = (catalogue.power(x, -power) for x in (total, new))
    slope = g + 2.0 * shrinkage * p
    linear = linear + slope - (after - before) / lr * p
    curvature = after / lr + 2.0 * l2
    low, high = -l1, l1
    clipped = catalogue.minimum(catalogue.maximum(linear, low), high)
    return Update((clipped - linear) / curvature, (new, linear))
