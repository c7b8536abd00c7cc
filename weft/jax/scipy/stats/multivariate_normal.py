"""`jax.scipy.stats.multivariate_normal`."""

from __future__ import annotations

from weft.jax.scipy.stats import distribution as _distribution

globals().update(vars(_distribution.of_scipy("multivariate_normal")))
