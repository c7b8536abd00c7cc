"""Adagrad, Adadelta and RMSprop: steps divided by the root of squared gradients."""

from __future__ import annotations

import functools

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.optimizer.rule import Hyper, Update, averaged, over_root


def adagrad(
    p: Value, g: Value, total: Value, *, lr: Value, eps: Value | float | None = None,
    rate_first: bool = False, reciprocal: bool = False,
) -> Update:  # fmt: skip
    """p -= lr * g / (sqrt(sum of all g * g) + eps).

    Args:
        rate_first: lr * g is divided, as in TensorFlow; else the quotient is multiplied by lr, as
            in PyTorch.
        reciprocal: see `over_root`.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
    """
    total = total + g * g
    change = over_root(lr * g if rate_first else g, total, eps, reciprocal=reciprocal)
    return Update(p - (change if rate_first else lr * change), (total,))


def _over_kept_root(g: Value, total: Value) -> Value:
    """g / sqrt(total); 0 where nothing has been added up yet."""
    none = catalogue.less_equal(total, 0.0)
    found = g * (1.0 / catalogue.sqrt(catalogue.select(none, 1.0, total)))
    return catalogue.select(none, 0.0, found)


def adagrad_momentum(
    p: Value, g: Value, total: Value, moved: Value, *, lr: Value, momentum: Value, rest: Value
) -> Update:
    """p -= lr * m, with m the running mean of g / sqrt(sum of all g * g).

    Args:
        rest: 1 - momentum.
    """
    total = total + g * g
    moved = averaged(moved, _over_kept_root(g, total), rest, momentum)
    return Update(p - lr * moved, (total, moved))


def sm3(
    p: Value, g: Value, moved: Value, *rows: Value, lr: Value, momentum: Value, rest: Value
) -> Update:
    """Adagrad with momentum, whose sums are kept as their largest along each axis.

    Args:
        rows: a vector for each axis of p.
        rest: 1 - momentum.

    Source: Anil et al., "Memory-Efficient Adaptive Optimization", 2019, algorithm SM3-II.
    """
    rank = len(rows)
    lifted = [
        catalogue.reshape(row, shape=tuple([-1 if i == axis else 1 for i in range(rank)]))
        for axis, row in enumerate(rows)
    ]
    total = functools.reduce(catalogue.minimum, lifted) + g * g
    moved = averaged(moved, _over_kept_root(g, total), rest, momentum)
    others = [tuple([b for b in range(rank) if b != axis]) for axis in range(rank)]
    kept = [catalogue.max(total, axes=axes) if axes else total for axes in others]
    return Update(p - lr * moved, (moved, *kept))


def adadelta(
    p: Value, g: Value, square: Value, moved: Value, *, lr: Value, rho: Value, rest: Value,
    eps: Value | float, gradient_first: bool = False,
) -> Update:  # fmt: skip
    """p -= lr * g * sqrt(u + eps) / sqrt(v + eps), u and v running means of their squares.

    Args:
        rest: 1 - rho.
        gradient_first: the gradient times the first root is divided by the other, as in Keras; else
            it is multiplied by the quotient of the roots, as in PyTorch.

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1.
    """
    square = averaged(square, g * g, rest, rho)
    top, bottom = catalogue.sqrt(moved + eps), catalogue.sqrt(square + eps)
    change = g * top / bottom if gradient_first else top / bottom * g
    return Update(p - lr * change, (square, averaged(moved, change * change, rest, rho)))


def rmsprop(
    p: Value, g: Value, *slots: Value, lr: Value, rest: Value, eps: Value | float,
    momentum: Value, alpha: Value | None = None, mean_alpha: Value | None = None,
    centered: bool = False, rate_first: bool = False, inside: bool = False,
    reciprocal: bool = False,
) -> Update:  # fmt: skip
    """p -= lr * g / (sqrt(v) + eps), with v the running mean of g * g.

    Args:
        slots: the mean of squares; the mean of gradients, where `centered`; then the sum of steps,
            where there is momentum.
        rest: 1 - alpha.
        alpha, mean_alpha: the factor in the mean of squares, and of gradients; see `averaged` for
            what is rounded without them.
        centered: v is the variance: the mean of g * g less the square of the mean of g.
        rate_first: lr * g is divided, and steps are summed, as in TensorFlow; else the quotient or
            the sum of quotients is multiplied by lr, as in PyTorch.
        inside, reciprocal: see `over_root`.

    Source: Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012;
    Graves, "Generating Sequences With Recurrent Neural Networks", 2013.
    """
    square = averaged(slots[0], g * g, rest, alpha)
    spread, new = square, [square]
    if centered:
        mean = averaged(slots[1], g, rest, mean_alpha)
        spread = square - mean * mean
        new.append(mean)
    step = lr * g if rate_first else g
    step = over_root(step, spread, eps, inside=inside, reciprocal=reciprocal)
    if len(slots) > len(new):
        step = slots[-1] * momentum + step
        new.append(step)
    return Update(p - (step if rate_first else lr * step), tuple(new))


def adafactor(p: Value, g: Value, *slots: Value, hyper: Hyper, maximize: bool) -> Update:
    """p = p * shrink - max(floor, rms(p)) * rate * u / max(1, rms(u) / clip), with u g / sqrt(v).

    Args:
        slots: running means of squares, of rows and of columns, whose product estimates v; or v.

    Source: Shazeer and Stern, "Adafactor", 2018, algorithms 4 and 5.
    """
    g = -g if maximize else g
    rest, least, square = hyper["rest"], hyper["least"], g * g
    if len(slots) == 1:
        slots = (averaged(slots[0], square, rest),)
        v = slots[0]
    else:
        rows, columns = [
            averaged(mean, catalogue.mean(square, axes=(axis,), keepdims=True), rest)
            for mean, axis in zip(slots, (-1, -2), strict=True)
        ]
        slots = (rows, columns)
        whole = catalogue.mean(rows, axes=(-2,), keepdims=True)
        v = catalogue.matmul(rows, columns) / catalogue.maximum(whole, least)
    step = g * catalogue.rsqrt(catalogue.maximum(v, least * least))
    size = catalogue.maximum(_root_mean_square(p), hyper["floor"]) * hyper["rate"]
    over = catalogue.maximum(_root_mean_square(step) / hyper["clip"], 1.0)
    return Update(p * hyper["shrink"] - step * (size / over), slots)


def _root_mean_square(x: Value) -> Value:
    return catalogue.sqrt(catalogue.mean(x * x))
