"""Factorizations by LAPACK as graph nodes, with gradients.

A cotangent `g` of `z` is paired with a change `dz` as the real part of `sum(g * dz)`, so that rules
of holomorphic functions have plain transposes. Other rules conjugate the incoming cotangents, work
with adjoints, and conjugate the outgoing ones.

Sources: Giles, "Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic
Differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Townsend,
"Differentiating the Singular Value Decomposition" (2016); Walter and Lehmann, "Algorithmic
Differentiation of Linear Algebra Functions" (2010); Roberts and Roberts, "QR and LQ Decomposition
Matrix Backpropagation Algorithms" (2020); Boeddeker et al., "On the Computation of Complex-valued
Gradients" (2017).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.errors import GraphError
from weft.ir.dtype import complex64, complex128, float32, int32
from weft.ir.node import Value
from weft.ops.boundary.routine import routine
from weft.ops.declaration import catalogue
from weft.ops.linalg.fault import lower_nan
from weft.ops.linalg.inversion import call, inv_where_possible, solve
from weft.ops.linalg.matrix import (
    H,
    T,
    column,
    conj,
    constant,
    diagonal,
    dims,
    eye,
    like,
    mm,
    row,
    symmetric,
)
from weft.ops.shape.creation import tril
from weft.ops.shape.diagonal import diag_embed

# Symmetric matrices


_CHOLESKY: Final = routine(np.linalg.cholesky)


def cholesky(a: Value) -> Value:
    """The lower triangular `l` with `l @ l.T == a` for positive definite matrices."""
    kind = (a.dtype, dims(a))
    return call(
        _CHOLESKY, a, types_of=[kind], gradient=_of_cholesky, title="cholesky",
        instead=lower_nan,
    )[0]  # fmt: skip


def cholesky_where_possible(a: Value) -> tuple[Value, ...]:
    """`cholesky`, and as int32 the order of the first minor that is not positive, or 0."""
    kinds = [(a.dtype, dims(a)), (int32, dims(a)[:-2])]
    return call(_cholesky_where_possible, a, types_of=kinds, gradient=_of_cholesky)


@routine
def _of_cholesky(g: Any, y: Any, a: Value) -> list[Value]:
    factor = y[0]
    inner = tril(mm(H(factor), conj(g[0])))
    half = inner - diag_embed(diagonal(inner)) * constant(0.5, a.dtype)
    inverse = inv_where_possible(factor)
    return [conj(symmetric(mm(H(inverse), half, inverse)))]


@routine
def _cholesky_where_possible(a: Any) -> tuple[Any, Any]:
    factors, faults = np.zeros_like(a), np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(*a.shape[:-2]):
        faults[at] = _first_fault(a[at])
        if not faults[at]:
            factors[at] = np.linalg.cholesky(a[at])
    return factors, faults


def _first_fault(a: Any) -> int:
    for k in (len(a), *range(1, len(a))):  # usually all succeed
        try:
            np.linalg.cholesky(a[:k, :k])
        except np.linalg.LinAlgError:
            if k < len(a):
                return k
        else:
            if k == len(a):
                return 0
    return len(a)


def eigh(a: Value, uplo: Any, whole: bool = False) -> tuple[Value, ...]:
    """Eigenvalues in ascending order, and eigenvectors as columns.

    Args:
        uplo: which triangle is read, `"L"` or `"U"`.
        whole: the gradient is symmetric instead of only in the triangle that is read.
    """
    kinds = [(a.dtype.real, dims(a)[:-1]), (a.dtype, dims(a))]
    return call(_eigh.of(uplo), a, types_of=kinds, gradient=_of_eigh.of(uplo, whole))


@routine
def _of_eigh(uplo: Any, whole: bool, g: Any, y: Any, a: Value) -> list[Value]:
    w, v = y
    by_vectors = mm(H(v), conj(g[1]))
    inner = by_vectors * like(_reciprocal(row(w) - column(w)), a)
    found = mm(v, inner + diag_embed(like(g[0], a)), H(v))
    found = _of_phases("eigh", diagonal(by_vectors), found)
    return [conj(symmetric(found)) if whole else _triangle(found, uplo)]


def eigvalsh(a: Value, uplo: Any, whole: bool = False) -> Value:
    """Eigenvalues in ascending order; arguments as for `eigh`."""
    kinds = [(a.dtype.real, dims(a)[:-1])]
    return call(_eigvalsh.of(uplo), a, types_of=kinds, gradient=_of_eigvalsh.of(uplo, whole))[0]


@routine
def _of_eigvalsh(uplo: Any, whole: bool, g: Any, y: Any, a: Value) -> list[Value]:
    v = eigh(a, uplo, whole)[1]
    found = mm(v * row(like(g[0], a)), H(v))
    return [conj(found) if whole else _triangle(found, uplo)]


@routine
def _eigh(uplo: Any, a: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.eigh(a, uplo))


@routine
def _eigvalsh(uplo: Any, a: Any) -> Any:
    return np.linalg.eigvalsh(a, uplo)


def _triangle(x: Value, uplo: str) -> Value:
    """The cotangent of the triangle that is read, from that of a Hermitian matrix."""
    both = x + H(x)
    half = tril(both) if uplo == "L" else T(tril(T(both)))
    return conj(half - diag_embed(diagonal(both)) * constant(0.5, x.dtype))


def _of_phases(name: str, x: Value, found: Value) -> Value:
    """A gradient through vectors that are unique up to phases; `x` is the gradient of the phases.

    Raises:
        ValueError: when run, the result depends on the phases, so there is no gradient.
    """
    if not x.dtype.is_complex:
        return found

    kind = (found.dtype, dims(found))
    return call(_checked, x, found, types_of=[kind], gradient=_second, title=name)[0]


MOST_BY_PHASE: Final = 1e-2
"""Gradients of phases up to this count as 0; PyTorch's limit."""


@routine
def _second(g: Any, *_: Any) -> list[Any]:
    return [None, g[0]]


@routine
def _checked(x: Any, found: Any) -> Any:
    if x.size and np.abs(x.imag).max() > MOST_BY_PHASE:
        raise ValueError(
            "the result depends on the phases of vectors, which are arbitrary, so it has no "
            "gradient"
        )
    return found


def _reciprocal(x: Value) -> Value:
    """1 / x off the diagonal, 0 on it."""
    n = dims(x)[-1]
    return constant(1 - np.eye(n), x.dtype) / (x + eye(n, x.dtype))


# Other matrices


def eig(a: Value) -> tuple[Value, ...]:
    """Eigenvalues and eigenvectors of square matrices, complex."""
    dtype = complex64 if a.dtype in (float32, complex64) else complex128

    kinds = [(dtype, dims(a)[:-1]), (dtype, dims(a))]
    return call(_eig, a, types_of=kinds, gradient=_of_eig)


@routine
def _of_eig(g: Any, y: Any, a: Value) -> list[Value]:
    w, v = y
    to_w, to_v = conj(g[0]), conj(g[1])
    inner = by_vectors = mm(H(v), to_v)
    # Vectors have length 1, so only changes orthogonal to them count.
    along = like(catalogue.real(diagonal(inner)), inner)
    inner = inner - mm(H(v), v) * row(along)
    inner = inner * conj(_reciprocal(row(w) - column(w))) + diag_embed(to_w)
    found = conj(solve(H(v), mm(inner, H(v))))
    found = _of_phases("eig", diagonal(by_vectors), found)
    return [found if a.dtype.is_complex else catalogue.cast(catalogue.real(found), dtype=a.dtype)]


@routine
def _eig(a: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.eig(a))


def svd(a: Value, full_matrices: bool) -> tuple[Value, ...]:
    """`u, s, vh` with `a == u * s @ vh`; gradients of `u` and `vh` need `full_matrices` false."""
    *lead, m, n = dims(a)
    k = min(m, n)
    wide = (m, n) if full_matrices else (k, k)
    kinds = [
        (a.dtype, (*lead, m, wide[0])),
        (a.dtype.real, (*lead, k)),
        (a.dtype, (*lead, wide[1], n)),
    ]
    return call(_svd.of(full_matrices), a, types_of=kinds, gradient=_of_svd)


@routine
def _of_svd(g: Any, y: Any, a: Value) -> list[Value]:
    u, s, vh = y
    k = dims(s)[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    to_u, to_s, to_v = conj(g[0])[..., :, :k], g[1], H(conj(g[2])[..., :k, :])
    return [conj(_svd_vjp(u, s, H(vh), to_u, to_s, to_v))]


@routine
def _svd(full_matrices: bool, a: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.svd(a, full_matrices))


def polar(a: Value, left: bool) -> tuple[Value, ...]:
    """The unitary factor of a matrix, and the positive semidefinite one on the left or right."""
    u, s, vh = svd(a, full_matrices=False)
    v = H(vh)
    return mm(u, vh), mm(u * row(s), H(u)) if left else mm(v * row(s), vh)


def _svd_vjp(u: Value, s: Value, v: Value, to_u: Value, to_s: Value, to_v: Value) -> Value:
    k, dtype = dims(s)[-1], u.dtype
    sizes = like(s, u)
    gaps = like(_reciprocal((row(s) - column(s)) * (row(s) + column(s))), u)
    left, right = mm(H(u), to_u), mm(H(v), to_v)
    inner = (left - H(left)) * gaps * row(sizes) + column(sizes) * (right - H(right)) * gaps
    middle = like(to_s, u)
    if dtype.is_complex:
        turned = diagonal(left)
        middle = middle + (turned - conj(turned)) / (sizes + sizes)
    found = mm(u, inner + diag_embed(middle), H(v))
    if dims(u)[-2] > k:
        scaled = to_u / row(sizes)
        found = found + mm(scaled - mm(u, H(u), scaled), H(v))
    if dims(v)[-2] > k:
        scaled = to_v / row(sizes)
        found = found + mm(u, H(scaled - mm(v, H(v), scaled)))
    return _of_phases("svd", diagonal(left + right), found)


def svdvals(a: Value) -> Value:
    """Singular values in descending order."""
    *lead, m, n = dims(a)
    return call(_svdvals, a, types_of=[(a.dtype.real, (*lead, min(m, n)))], gradient=_of_svdvals)[0]


@routine
def _of_svdvals(g: Any, y: Any, a: Value) -> list[Value]:
    u, _, vh = svd(a, False)
    return [conj(mm(u * row(like(g[0], a)), vh))]


@routine
def _svdvals(a: Any) -> Any:
    return np.linalg.svd(a, compute_uv=False)


def qr(a: Value, mode: str) -> tuple[Value, ...]:
    """`q, r` with `a == q @ r`; for tall matrices, gradients need the mode `reduced`."""
    *lead, m, n = dims(a)
    k = m if mode == "complete" else min(m, n)
    kinds = [(a.dtype, (*lead, m, k)), (a.dtype, (*lead, k, n))]
    return call(_qr.of(mode), a, types_of=kinds, gradient=_of_qr.of(mode))


@routine
def _of_qr(mode: str, g: Any, y: Any, a: Value) -> list[Value]:
    (q, r), to_q, to_r = y, conj(g[0]), conj(g[1])
    m, n = dims(a)[-2:]
    if m > n and mode == "complete":
        raise GraphError(
            "qr: no gradient of mode 'complete' for matrices of more rows than columns, got "
            f"{m} rows and {n} columns; use mode 'reduced'"
        )
    if m >= n:
        return [conj(_qr_vjp(q, r, to_q, to_r))]
    rest = a[..., :, m:]
    found = _qr_vjp(q, r[..., :, :m], to_q + mm(rest, H(to_r[..., :, m:])), to_r[..., :, :m])
    return [conj(catalogue.concatenate(found, mm(q, to_r[..., :, m:]), axis=-1))]


@routine
def _qr(mode: Any, a: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.qr(a, mode))


def reflections(a: Value) -> tuple[Value, ...]:
    """Householder reflectors below the diagonal of an upper triangular matrix, and their scales."""
    *lead, m, n = dims(a)
    kinds = [(a.dtype, (*lead, m, n)), (a.dtype, (*lead, min(m, n)))]
    return call(_reflections, a, types_of=kinds)


@routine
def _reflections(a: Any) -> tuple[Any, Any]:
    found, scale = np.linalg.qr(a, "raw")
    return np.swapaxes(found, -1, -2), scale


def _qr_vjp(q: Value, r: Value, to_q: Value, to_r: Value) -> Value:
    inner = mm(r, H(to_r)) - mm(H(to_q), q)
    under = tril(inner, -1)
    level = (
        like(catalogue.real(diagonal(inner)), inner) if inner.dtype.is_complex else diagonal(inner)
    )
    whole = under + H(under) + diag_embed(level)
    return H(solve(r, H(to_q + mm(q, whole))))
