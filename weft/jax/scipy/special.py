"""`jax.scipy.special`: `weft.scipy.special` on JAX's arrays."""

from __future__ import annotations

from typing import Any

from weft import exports as _exports
from weft.jax.array import jaxed as _jaxed
from weft.jax.nn.activation import log_softmax, logsumexp, softmax
from weft.scipy import special as _special

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _face(name: str) -> Any:
    found = None if name.startswith("_") else getattr(_special, name, None)
    if found is None:
        raise AttributeError(f"module 'jax.scipy.special' has no attribute {name!r}")
    return _jaxed(found)


_exports.lazy(globals(), {}, _face, lambda: _special.__all__)
