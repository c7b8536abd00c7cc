"""`jax.example_libraries`: layers and optimizers as pairs and triples of functions."""

from __future__ import annotations

from weft import exports as _exports

_exports.gather(globals(), "optimizers", "stax")
_exports.lazy(globals(), {"weft.jax.example_libraries": ("optimizers", "stax")})
