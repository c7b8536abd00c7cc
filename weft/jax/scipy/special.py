"""`jax.scipy.special`: `weft.scipy.special` on JAX's arrays."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.face import face_of as _face_of
from weft.jax.nn.activation import log_softmax, logsumexp, softmax
from weft.scipy import special as _special

__all__ = ["log_softmax", "logsumexp", "softmax"]


_exports.lazy(globals(), {}, _face_of(_special, "jax.scipy.special"), lambda: _special.__all__)
