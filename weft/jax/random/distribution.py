"""Distributions that are made of uniform, normal and gamma-distributed numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.eager.functions import api
from weft.eager.tensor.dispatch import recorded
from weft.ir.dtype import float32
from weft.jax.array import Array, canonical, given
from weft.jax.host import hosted
from weft.jax.numpy import api as _numpy
from weft.jax.random.draw import (
    checked,
    exponential,
    floating,
    normal,
    rademacher,
    shape_of,
    split,
    uniform,
)
from weft.ops.random import threefry, transform

jnp: Any = _numpy
_rayleigh, _trials, _triangular, _wald, _share, _student, _chi_square, _ratio = map(
    recorded,
    (
        transform.rayleigh, transform.trials, transform.triangular, transform.wald,
        transform.first_share, transform.student, transform.chi_square, transform.ratio,
    ),
)  # fmt: skip
_maxwell, _signed, _weibull, _generalized, _in_ball, _rotation = map(
    recorded,
    (
        transform.maxwell, transform.signed, transform.weibull, transform.generalized_normal,
        transform.in_ball, transform.rotation,
    ),
)  # fmt: skip

__all__ = [
    "ball", "beta", "binomial", "chisquare", "dirichlet", "double_sided_maxwell", "f", "gamma",
    "generalized_normal", "geometric", "loggamma", "lognormal", "maxwell", "orthogonal",
    "pareto", "poisson", "rayleigh", "t", "triangular", "wald", "weibull_min",
]  # fmt: skip


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Logarithms of gamma numbers."""
    return _gammas(key, a, shape, dtype)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Gamma numbers of a shape parameter, with its gradient."""
    return jnp.exp(_gammas(key, a, shape, dtype))


def _gammas(key: Any, a: Any, shape: Any, dtype: Any) -> Any:
    kind = floating(dtype, "gamma")
    alpha = jnp.asarray(a, kind)
    dims = alpha.shape if shape is None else shape_of(shape)
    alpha = jnp.broadcast_to(alpha, dims)
    keys = split(key, math.prod(dims))

    def draw(keys: Any, alpha: Any) -> Any:
        return threefry.log_gamma(keys, alpha.reshape(-1)).reshape(alpha.shape)

    return hosted(draw, keys, alpha, kind=(kind, dims))


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Poisson numbers of a rate."""
    rate = jnp.asarray(lam, float32)
    dims = rate.shape if shape is None else shape_of(shape)
    kind = canonical(dtype or int)
    return hosted(threefry.poisson, checked(key), jnp.broadcast_to(rate, dims), kind=(kind, dims))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Beta numbers."""
    kind = floating(dtype, "beta")
    a, b = jnp.asarray(a, kind), jnp.asarray(b, kind)
    dims = np.broadcast_shapes(a.shape, b.shape) if shape is None else shape
    logs = [loggamma(k, x, dims, kind) for k, x in zip(split(key), (a, b), strict=True)]
    return _share(*logs)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Dirichlet numbers."""
    alpha = jnp.asarray(alpha, floating(dtype, "dirichlet"))
    dims = alpha.shape[:-1] if shape is None else shape_of(shape)
    return given(api.softmax(loggamma(key, alpha, (*dims, alpha.shape[-1]), dtype), -1))


def t(key: Any, df: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Student's t numbers."""
    df = jnp.asarray(df, floating(dtype, "t"))
    first, second = split(key)
    n = normal(first, shape or df.shape, dtype)
    half = df / 2
    return _student(n, gamma(second, half, n.shape, dtype), half)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Chi-square numbers."""
    return _chi_square(_halved(key, df, shape, dtype, "chisquare"))


def _halved(key: Any, df: Any, shape: Any, dtype: Any, name: str) -> Any:
    return gamma(key, jnp.asarray(df, floating(dtype, name)) / 2, shape, dtype)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Array:
    """F numbers."""
    den, num = split(key)
    drawn = [_halved(k, x, shape, dtype, "f") for k, x in ((num, dfnum), (den, dfden))]
    return _ratio(*drawn, *[jnp.asarray(x, drawn[0].dtype) for x in (dfnum, dfden)])


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Maxwell numbers."""
    return _maxwell(normal(key, (*shape_of(shape), 3), dtype))


def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None
) -> Array:
    """Maxwell numbers with random signs."""
    first, second = split(key)
    dims = np.broadcast_shapes(np.shape(loc), np.shape(scale))
    dims = (*(shape_of(shape) or dims), *dims)
    x = maxwell(first, dims, dtype)
    signs = rademacher(second, dims, x.dtype)
    return _signed(signs, x, *[jnp.asarray(v, x.dtype) for v in (loc, scale)])


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Array:
    """Weibull numbers."""
    e = exponential(key, shape, dtype)
    return _weibull(e, *[jnp.asarray(v, e.dtype) for v in (scale, concentration)])


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Pareto numbers."""
    b = jnp.asarray(b, floating(dtype, "pareto"))
    return jnp.exp(exponential(key, b.shape if shape is None else shape, dtype) / b)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """Exponentials of normal numbers."""
    sigma = jnp.asarray(sigma, floating(dtype, "lognormal"))
    return jnp.exp(normal(key, sigma.shape if shape is None else shape, dtype) * sigma)


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Rayleigh numbers."""
    scale = jnp.asarray(scale, floating(dtype, "rayleigh"))
    u = uniform(key, scale.shape if shape is None else shape, dtype)
    return _rayleigh(u, scale)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """How many trials of probability `p` it takes until the first success."""
    p = jnp.asarray(p, float)
    u = uniform(key, p.shape if shape is None else shape)
    return _trials(u, p).astype(canonical(dtype or int))


def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None
) -> Array:
    """Triangular numbers."""
    kind = floating(dtype, "triangular")
    a, c, b = (jnp.asarray(x, kind) for x in (left, mode, right))
    dims = np.broadcast_shapes(a.shape, c.shape, b.shape) if shape is None else shape
    return _triangular(uniform(key, dims, kind), a, c, b)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Inverse Gaussian numbers."""
    mean = jnp.asarray(mean, floating(dtype, "wald"))
    first, second = split(key)
    y = jnp.square(normal(first, mean.shape if shape is None else shape, dtype))
    return _wald(y, uniform(second, y.shape, dtype), mean)


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers with density exp(-|x|**p)."""
    first, second = split(key)
    g = gamma(first, 1 / p, shape, dtype)
    return _generalized(rademacher(second, shape, g.dtype), g, jnp.asarray(p, g.dtype))


def ball(key: Any, d: int, p: float = 2, shape: Any = (), dtype: Any = None) -> Array:
    """Points in the unit ball of the p-norm in `d` dimensions."""
    first, second = split(key)
    g = generalized_normal(first, p, (*shape_of(shape), d), dtype)
    e = exponential(second, shape, dtype)
    return _in_ball(g, e, jnp.asarray(p, e.dtype))


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Array:
    """Orthogonal matrices, uniformly distributed."""
    m = n if m is None else m
    q, r = jnp.linalg.qr(normal(key, (*shape_of(shape), max(n, m), min(n, m)), dtype))
    x = _rotation(q, r)
    return x.mT if n < m else x


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of successes in `n` trials of probability `p`; not JAX's numbers for a key."""
    n, p = jnp.asarray(n, float), jnp.asarray(p, float)
    dims = np.broadcast_shapes(n.shape, p.shape) if shape is None else shape_of(shape)
    kind = floating(dtype, "binomial")

    def draw(key: Any, n: Any, p: Any) -> Any:
        return np.random.default_rng(key).binomial(n.astype(np.int64), p, dims)

    return hosted(draw, checked(key), n, p, kind=(kind, dims))
