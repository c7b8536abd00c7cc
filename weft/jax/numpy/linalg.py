"""`jax.numpy.linalg`: `weft.numpy.linalg` with JAX's arrays."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.face import face_of as _face_of
from weft.numpy import linalg as _linalg

__all__: list[str] = []


_exports.lazy(globals(), {}, _face_of(_linalg, "jax.numpy.linalg"), lambda: _linalg.__all__)
