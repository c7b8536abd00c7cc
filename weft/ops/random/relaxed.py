"""Differentiable random draws."""

from __future__ import annotations

from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import known, normal_axis
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.elementwise.piecewise_activation import prelu
from weft.ops.random.counter_based import SEED, random_uniform
from weft.ops.random.distribution import gumbel


def rrelu(x: Value, counter: Value, *, lower: float, upper: float) -> Value:
    """`x`, times a random slope in [lower, upper] where it is not positive."""
    slope = random_uniform(counter, SEED, known(x.shape), float32, lower, upper)
    return prelu(x, catalogue.cast(slope, dtype=x.dtype))


def one_hot_of_largest(y: Value, *, dim: int) -> Value:
    """One-hot rows of the largest element, with the gradient of `y`."""
    dims = known(y.shape)
    axis = normal_axis(dim, len(dims))
    hot = catalogue.one_hot(catalogue.argmax(y, axis=axis), depth=dims[axis], dtype=y.dtype)
    order = [*range(len(dims) - 1)]
    order.insert(axis, len(dims) - 1)
    hot = catalogue.transpose(hot, perm=tuple(order))
    return hot + (y - catalogue.stop_gradient(y))


@autocasting(Autocast.FLOAT32)
def gumbel_softmax(x: Value, counter: Value, *, tau: float, dim: int) -> Value:
    """A Gumbel-softmax draw from a categorical distribution (Jang et al., 2016)."""
    noise = gumbel(counter, shape=known(x.shape), dtype=x.dtype)
    return catalogue.softmax((x + noise) / tau, axis=dim)
