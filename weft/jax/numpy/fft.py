"""`jax.numpy.fft`: `weft.numpy.fft` with JAX's arrays."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.face import face_of as _face_of
from weft.numpy import fft as _fft

__all__: list[str] = []


_exports.lazy(globals(), {}, _face_of(_fft, "jax.numpy.fft"), lambda: _fft.__all__)
