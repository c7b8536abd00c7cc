"""`jax.nn`: activations, normalizations, attention, and initializers."""

from __future__ import annotations

from weft import exports as _exports

_exports.lazy_whole(globals(), "weft.jax.nn.api")
