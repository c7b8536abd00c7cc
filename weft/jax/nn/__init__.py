"""`jax.nn`: activations, normalizations, attention, and initializers."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.nn.activation import *

_exports.gather(globals(), "initializers")
_exports.lazy(globals(), {"weft.jax.nn": ("initializers",)})
