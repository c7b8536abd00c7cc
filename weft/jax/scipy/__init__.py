"""`jax.scipy`: SciPy's functions on JAX's arrays."""

from __future__ import annotations

from weft import exports as _exports

_exports.gather(
    globals(), "integrate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"
)
_exports.lazy(
    globals(),
    {
        "weft.jax.scipy": (
            "integrate",
            "linalg",
            "ndimage",
            "optimize",
            "signal",
            "sparse",
            "special",
            "stats",
        )
    },
)
