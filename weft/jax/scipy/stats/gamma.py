"""`jax.scipy.stats.gamma`."""

from __future__ import annotations

from weft.jax.scipy.stats import distribution as _distribution

globals().update(vars(_distribution.of_scipy("gamma")))
