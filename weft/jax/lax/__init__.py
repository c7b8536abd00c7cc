"""`jax.lax`: operations by their exact names, windows, slices, loops and collectives."""

from __future__ import annotations

from weft import exports as _exports

_exports.lazy_whole(globals(), "weft.jax.lax.api")
