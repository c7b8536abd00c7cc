"""`jax.experimental`: ODEs and sparse matrices."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.config import enable_x64 as enable_x64

_exports.gather(globals())
_exports.lazy(
    globals(),
    {
        "weft.jax.experimental": ("ode", "sparse"),
        "weft.jax.example_libraries": ("optimizers", "stax"),
        "weft.jax.device": ("io_callback",),
    },
)
