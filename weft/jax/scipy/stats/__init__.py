"""`jax.scipy.stats`: distributions, one a module."""

from __future__ import annotations

from weft import exports as _exports

_NAMES = (
    "bernoulli",
    "beta",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "laplace",
    "logistic",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
    "uniform",
)
_exports.gather(globals(), *_NAMES)
_exports.lazy(globals(), {"weft.jax.scipy.stats": _NAMES})
