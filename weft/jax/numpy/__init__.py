"""`jax.numpy`: `weft.numpy` with JAX's arrays: immutable, 32 bits by default, with weak types.

>>> import weft.jax.numpy as jnp
>>> jnp.arange(3) + 0.5
Array([0.5, 1.5, 2.5], dtype=float32)
"""

from __future__ import annotations

from weft import exports as _exports

_exports.lazy_whole(globals(), "weft.jax.numpy.api")
