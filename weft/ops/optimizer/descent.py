"""Gradient descent: plain, with momentum, averaged, and along signs."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.optimizer.rule import Update, averaged


def sgd(
    p: Value, g: Value, *slots: Value, lr: Value, momentum: Value | None = None,
    rest: Value | None = None, first: bool = False, nesterov: bool = False,
    rate_first: bool = False,
) -> Update:  # fmt: skip
    """p -= lr * v, where v = momentum * v + rest * g; p -= lr * g without a slot.

    Args:
        rest: 1 - dampening; 1 if left out.
        first: the first v is the gradient itself.
        nesterov: step along g + momentum * v instead.
        rate_first: Nesterov's step is lr * g + lr * momentum * v, as TensorFlow rounds, instead of
            lr * (g + momentum * v).

    Source: Sutskever et al., "On the Importance of Initialization and Momentum in Deep Learning",
    2013.
    """
    if not slots or momentum is None:
        return Update(p - lr * g, ())
    v = g if first else slots[0] * momentum + (g if rest is None else g * rest)
    if nesterov and rate_first:
        return Update(p - (lr * g + lr * momentum * v), (v,))
    return Update(p - lr * (g + v * momentum if nesterov else v), (v,))


def sgd_rows(p: Value, indices: Value, rows: Value, lr: Value) -> Value:
    """The table p after a step along a row-sparse gradient, which touches only its rows."""
    return catalogue.scatter_add(p, indices, rows * -lr)


def velocity(
    p: Value, g: Value, v: Value, *, lr: Value, momentum: Value, nesterov: bool = False
) -> Update:
    """p += v, where v = momentum * v - lr * g: momentum whose slot holds steps, as Keras keeps it.

    Args:
        nesterov: p += momentum * v - lr * g instead.
    """
    step = lr * g
    v = v * momentum - step
    return Update(p + (v * momentum - step if nesterov else v), (v,))


def asgd(p: Value, g: Value, mean: Value, *, step: Value, shrink: Value, part: Value) -> Update:
    """p = p * shrink - step * g; the slot is the average of p, in which a new one is `part`.

    Source: Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.
    """
    p = p * shrink - step * g
    return Update(p, (averaged(mean, p, part),))


def lion(
    p: Value, g: Value, m: Value, *, lr: Value, beta1: Value, rest1: Value, beta2: Value,
    rest2: Value, shrink: Value,
) -> Update:  # fmt: skip
    """p = p * shrink - lr * sign(beta1 * m + rest1 * g); then m moves towards g.

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, program 1.
    """
    direction = catalogue.sign(averaged(m, g, rest1, beta1))
    return Update(p * shrink - lr * direction, (averaged(m, g, rest2, beta2),))


def rprop(
    p: Value, g: Value, before: Value, size: Value, *, shrink: Value, grow: Value, least: Value,
    most: Value,
) -> Update:  # fmt: skip
    """p -= size * sign(g); the size grows while the sign stays and shrinks when it flips.

    Args:
        before: the previous gradient, 0 where its sign flipped.

    Source: Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The
    RPROP Algorithm", 1993.
    """
    turn = catalogue.sign(g * before)
    none = turn * 0
    flipped = catalogue.less(turn, none)
    larger = catalogue.minimum(size * grow, most)
    smaller = catalogue.maximum(size * shrink, least)
    same = catalogue.select(flipped, smaller, size)
    size = catalogue.select(catalogue.greater(turn, none), larger, same)
    g = catalogue.select(flipped, none, g)
    return Update(p - catalogue.sign(g) * size, (g, size))
