"""`jax.scipy.stats.laplace`."""

from __future__ import annotations

from weft.jax.scipy.stats import distribution as _distribution

globals().update(vars(_distribution.laplace))
