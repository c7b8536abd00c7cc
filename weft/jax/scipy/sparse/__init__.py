"""`jax.scipy.sparse`: solvers that only multiply by a matrix."""

from __future__ import annotations

from weft import exports as _exports

_exports.gather(globals(), "linalg")
_exports.lazy(globals(), {"weft.jax.scipy.sparse": ("linalg",)})
