"""Adam and its variants: steps scaled by running moments of the gradient."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.optimizer.rule import Update, averaged, over_root
from weft.ops.shape.creation import ones_like


def adam(
    p: Value, g: Value, m: Value, v: Value, *largest: Value, step: Value, rest1: Value,
    rest2: Value, eps: Value | float, beta1: Value | None = None, beta2: Value | None = None,
    scale: Value | None = None,
) -> Update:  # fmt: skip
    """p -= step * m / (sqrt(v) + eps), with m and v running means of g and g * g.

    Args:
        largest: the largest v so far, which stands in its place (AMSGrad).
        step: the learning rate, with the bias corrections that `scale` leaves.
        rest1, rest2: 1 - beta1 and 1 - beta2.
        beta1, beta2: the factors of the means; see `averaged` for what is rounded without them.
        scale: the bias correction of sqrt(v), which leaves eps uncorrected. With it the step is
            step * (m / root), as PyTorch rounds; without it step * m / root, as TensorFlow does.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1; Reddi et
    al., "On the Convergence of Adam and Beyond", 2018.
    """
    m, v = averaged(m, g, rest1, beta1), averaged(v, g * g, rest2, beta2)
    most = [catalogue.maximum(top, v) for top in largest]
    bound = most[0] if most else v
    if scale is None:
        change = over_root(m * step, bound, eps)
    else:
        change = step * (m / (catalogue.sqrt(bound) * scale + eps))
    return Update(p - change, (m, v, *most))


def bias(beta: Value, count: Value) -> Value:
    """What a running mean that began with 0 has of the true one: 1 - beta**count."""
    return 1.0 - catalogue.power(beta, count)


def corrected(rate: Value, power1: Value, power2: Value) -> Value:
    """Adam's learning rate with both bias corrections, from the powers of the betas."""
    return rate * catalogue.sqrt(1.0 - power2) / (1.0 - power1)


def adamax(
    p: Value, g: Value, m: Value, largest: Value, *, step: Value, rest1: Value, beta2: Value,
    eps: Value | float, beta1: Value | None = None, eps_in_largest: bool = True,
) -> Update:  # fmt: skip
    """p -= step * m / u, with u the largest |g| so far, which decays by beta2.

    Args:
        eps_in_largest: eps is added to |g|, and the step is step * (m / u), as in PyTorch; else it
            is added to u, and the step is step * m / u, as in Keras.

    Source: Kingma and Ba, 2015, algorithm 2.
    """
    m = averaged(m, g, rest1, beta1)
    size = catalogue.abs(g)
    if eps_in_largest:
        largest = catalogue.maximum(largest * beta2, size + eps)
        return Update(p - step * (m / largest), (m, largest))
    largest = catalogue.maximum(largest * beta2, size)
    return Update(p - step * m / (largest + eps), (m, largest))


def nadam(
    p: Value, g: Value, m: Value, v: Value, *, now: Value, ahead: Value, rest1: Value, rest2: Value,
    beta2: Value, eps: Value | float, correction: Value, beta1: Value | None = None,
    divides: bool = False,
) -> Update:  # fmt: skip
    """p -= (now * g + ahead * m) / (sqrt(v, corrected) + eps): Adam with Nesterov's look-ahead.

    Args:
        now, ahead: the learning rate times the parts of this gradient and of the mean.
        correction: the bias correction of v: 1 / (1 - beta2 ** t), or its reciprocal.
        divides: divide by the correction, as Keras does, instead of multiplying.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016, algorithm 2.
    """
    m, v = averaged(m, g, rest1, beta1), averaged(v, g * g, rest2, beta2)
    corrected = v / correction if divides else v * correction
    return Update(p - over_root(g * now + m * ahead, corrected, eps), (m, v))


def momentum_at(beta1: float, decay: float, step: int) -> float:
    """The momentum of a step of NAdam, which grows towards beta1."""
    return beta1 * (1 - 0.5 * 0.96 ** (step * decay))


def momentum_product(beta1: float, decay: float, steps: int) -> float:
    """The product of the momenta of the first steps."""
    return math.prod([momentum_at(beta1, decay, step) for step in range(1, steps + 1)])


def radam(
    p: Value, g: Value, m: Value, v: Value, *, step: Value, rest1: Value, rest2: Value,
    beta2: Value, eps: Value, scale: Value, rectified: bool,
) -> Update:  # fmt: skip
    """p -= step * m * scale / (sqrt(v) + eps), or step * m until v is known well enough.

    Args:
        scale: the factor that rectifies the variance.
        rectified: whether it is known.

    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020,
    algorithm 2.
    """
    m, v = averaged(m, g, rest1), averaged(v, g * g, rest2, beta2)
    change = m * step
    if rectified:
        change = change * over_root(scale, v, eps)
    return Update(p - change, (m, v))


def lamb(
    p: Value, g: Value, m: Value, v: Value, *, lr: Value, rest1: Value, rest2: Value, beta2: Value,
    eps: Value, correct: Value, scale: Value, weight_decay: Value,
) -> Update:  # fmt: skip
    """p -= lr * (|p| / |u|) * u, with u Adam's step plus weight_decay * p.

    Args:
        correct, scale: the bias corrections of m and of sqrt(v).

    Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
    2020, algorithm 2, with the ratio 1 where either norm is 0.
    """
    m, v = averaged(m, g, rest1), averaged(v, g * g, rest2, beta2)
    change = (m * correct) / (catalogue.sqrt(v) * scale + eps) + p * weight_decay
    size, length = catalogue.norm(p), catalogue.norm(change)
    usable = catalogue.greater(size * length, 0.0)
    one = ones_like(length)
    trust = catalogue.select(usable, size, one) / catalogue.select(usable, length, one)
    return Update(p - lr * trust * change, (m, v))
