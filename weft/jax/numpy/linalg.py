"""`jax.numpy.linalg`: `weft.numpy.linalg` with JAX's arrays."""

from __future__ import annotations

from typing import Any

from weft import exports as _exports
from weft.jax.array import jaxed as _jaxed
from weft.numpy import linalg as _linalg

__all__: list[str] = []


def _face(name: str) -> Any:
    found = None if name.startswith("_") else getattr(_linalg, name, None)
    if found is None:
        raise AttributeError(f"module 'jax.numpy.linalg' has no attribute {name!r}")
    return _jaxed(found)


_exports.lazy(globals(), {}, _face, lambda: _linalg.__all__)
