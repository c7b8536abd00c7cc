"""The names of `jax.nn`, which imports them on first use."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.nn.activation import *

_exports.gather(globals(), "initializers")
_exports.lazy(globals(), {"weft.jax.nn": ("initializers",)})
