"""`jax.random`: keys of Threefry-2x32, and numbers that are the same as JAX's."""

from __future__ import annotations

from weft import exports as _exports

_exports.lazy_whole(globals(), "weft.jax.random.api")
