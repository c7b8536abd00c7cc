"""`jax.scipy.integrate`: integrals of samples."""

from __future__ import annotations

from typing import Any

from weft.jax.numpy import api as _numpy

__all__ = ["trapezoid"]

_jnp: Any = _numpy
trapezoid = _jnp.trapezoid
