"""Distributions with a location and a scale, and those of `weft.scipy.stats`."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from weft.jax import numpy as _numpy
from weft.jax.array import jaxed
from weft.jax.nn.activation import log_sigmoid, sigmoid
from weft.jax.scipy import special as _special

jnp: Any = _numpy
special: Any = _special

__all__ = ["bernoulli", "cauchy", "expon", "laplace", "logistic", "norm", "uniform"]


def _standard(
    logpdf: Callable[[Any], Any], cdf: Callable[[Any], Any], ppf: Callable[[Any], Any]
) -> Any:
    """A distribution with a location and a scale, from its standard form."""

    def log_density(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x, float) - loc) / scale
        return logpdf(z) - jnp.log(jnp.asarray(scale, float))

    def cumulative(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return cdf((jnp.asarray(x, float) - loc) / scale)

    return SimpleNamespace(
        logpdf=log_density,
        pdf=lambda x, loc=0, scale=1: jnp.exp(log_density(x, loc, scale)),
        cdf=cumulative,
        sf=lambda x, loc=0, scale=1: 1 - cumulative(x, loc, scale),
        logcdf=lambda x, loc=0, scale=1: jnp.log(cumulative(x, loc, scale)),
        logsf=lambda x, loc=0, scale=1: jnp.log1p(-cumulative(x, loc, scale)),
        ppf=lambda q, loc=0, scale=1: ppf(jnp.asarray(q, float)) * scale + loc,
        isf=lambda q, loc=0, scale=1: ppf(1 - jnp.asarray(q, float)) * scale + loc,
    )


laplace = _standard(
    lambda z: -jnp.abs(z) - math.log(2),
    lambda z: jnp.where(z < 0, jnp.exp(z) / 2, 1 - jnp.exp(-z) / 2),
    lambda q: -jnp.sign(q - 0.5) * jnp.log1p(-2 * jnp.abs(q - 0.5)),
)
logistic = _standard(
    lambda z: log_sigmoid(z) + log_sigmoid(-z), sigmoid, lambda q: jnp.log(q) - jnp.log1p(-q)
)
cauchy = _standard(
    lambda z: -jnp.log1p(z * z) - math.log(math.pi),
    lambda z: jnp.arctan(z) / math.pi + 0.5,
    lambda q: jnp.tan(math.pi * (q - 0.5)),
)
expon = _standard(
    lambda z: jnp.where(z < 0, -jnp.inf, -z),
    lambda z: jnp.where(z < 0, 0, -jnp.expm1(-z)),
    lambda q: -jnp.log1p(-q),
)
uniform = _standard(
    lambda z: jnp.where((z < 0) | (z > 1), -jnp.inf, jnp.zeros_like(z)),
    lambda z: jnp.clip(z, 0, 1),
    lambda q: q,
)


def _bernoulli(k: Any, p: Any, loc: Any = 0) -> Any:
    x, p = jnp.asarray(k) - loc, jnp.asarray(p, float)
    found = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
    return jnp.where((x != 0) & (x != 1), -jnp.inf, found)


bernoulli = SimpleNamespace(
    logpmf=_bernoulli, pmf=lambda k, p, loc=0: jnp.exp(_bernoulli(k, p, loc))
)
norm = SimpleNamespace(
    **{
        name: jaxed(getattr(importlib.import_module("weft.scipy.stats.norm"), name))
        for name in ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")
    },
    ppf=lambda q, loc=0, scale=1: special.ndtri(jnp.asarray(q, float)) * scale + loc,
    isf=lambda q, loc=0, scale=1: -special.ndtri(jnp.asarray(q, float)) * scale + loc,
)


def of_scipy(name: str) -> Any:
    """A distribution of `weft.scipy.stats` on JAX's arrays."""
    module = importlib.import_module(f"weft.scipy.stats.{name}")
    return SimpleNamespace(**{n: jaxed(getattr(module, n)) for n in module.__all__})
