"""`jax.scipy`: SciPy's functions on JAX's arrays."""

from __future__ import annotations

from weft import exports as _exports

_exports.gather(globals(), "linalg", "optimize", "signal", "special", "stats")
_exports.lazy(globals(), {"weft.jax.scipy": ("linalg", "optimize", "signal", "special", "stats")})
