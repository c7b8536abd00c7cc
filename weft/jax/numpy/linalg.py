"""`jax.numpy.linalg`: `weft.numpy.linalg` with JAX's arrays."""

from __future__ import annotations

from typing import Any

from weft import exports as _exports
from weft.eager.tensor.dispatch import recorded as _recorded
from weft.jax.array import given as _given
from weft.jax.face import face_of as _face_of
from weft.jax.numpy.common import floating_of as _floating_of
from weft.numpy import linalg as _linalg
from weft.ops.linalg import matrix as _matrix

__all__ = ["cholesky", "eigh", "eigvalsh"]

_symmetric = _recorded(_matrix.symmetric)


def _read(x: Any, symmetrize_input: bool) -> Any:
    return _symmetric(_floating_of(x)) if symmetrize_input else _floating_of(x)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The triangular factor of positive definite matrices: of their symmetric part, or as given."""
    return _given(_linalg.cholesky(_read(a, symmetrize_input), upper=upper))


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> Any:
    """Eigenvalues and eigenvectors of the symmetric part, or as one triangle gives them."""
    return _given(_linalg.eigh(_read(a, symmetrize_input), UPLO or "L"))


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of `eigh`."""
    return _given(_linalg.eigvalsh(_read(a, symmetrize_input), UPLO or "L"))


_exports.lazy(globals(), {}, _face_of(_linalg, "jax.numpy.linalg"), lambda: _linalg.__all__)
