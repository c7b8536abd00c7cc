"""Linear algebra under SciPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.linalg.lapack import by_lapack
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.numpy.convert import alike
from weft.numpy.creation import eye, tril, triu
from weft.numpy.elementwise import conj
from weft.numpy.linalg import cholesky, det, eigh, inv, norm, pinv, solve, svd
from weft.numpy.manipulation import matrix_transpose
from weft.numpy.product import block_diag, kron
from weft.numpy.searching import where
from weft.ops.linalg import inversion
from weft.ops.refusal import guard

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "block_diag", "cholesky", "det", "eigh", "inv", "norm", "pinv", "solve", "solve_banded",
    "solve_sylvester", "solve_triangular", "svd",
]  # fmt: skip


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> ndarray:
    """Solve `a @ x == b` for triangular `a`; the other triangle is ignored.

    Args:
        trans: 1 or `"T"` takes the transposed matrix, 2 or `"C"` its conjugate.
        unit_diagonal: the diagonal counts as ones.
    """
    x, y = alike(a, b)
    part: Any = tril(x, k=-1 if unit_diagonal else 0) if lower else triu(x, k=int(unit_diagonal))
    if unit_diagonal:
        part = part + eye(x.shape[-1], dtype=x.dtype)
    turned = trans in (1, "T", 2, "C")
    if turned:
        part = matrix_transpose(conj(part) if trans in (2, "C") else part)
    found = _triangle(part, y[:, None] if y.ndim == 1 else y, upper=lower == turned)
    return found[..., 0] if y.ndim == 1 else found


@by_lapack
def _triangle(a: Value, b: Value, *, upper: bool) -> Value:
    return inversion.solve(a, b, upper)


def solve_sylvester(a: Any, b: Any, q: Any) -> ndarray:
    """Solve `a @ x + x @ b == q`, as one linear system."""
    x, y, z = alike(a, b, q)
    m, n = x.shape[-1], y.shape[-1]
    ones_m, ones_n = (eye(k, dtype=x.dtype) for k in (m, n))
    whole: Any = kron(x, ones_n)
    found: Any = solve(whole + kron(ones_m, matrix_transpose(y)), z.reshape((m * n,)))
    return found.reshape((m, n))


def solve_banded(l_and_u: Sequence[int], ab: Any, b: Any) -> ndarray:
    """Solve `a @ x == b` for a banded matrix.

    Args:
        l_and_u: the numbers of diagonals below and above the main one.
        ab: the diagonals, the uppermost first: `ab[u + i - j, j]` is `a[i, j]`.

    Raises:
        ShapeError: another number of diagonals.

    >>> import weft.numpy as wnp
    >>> ab = wnp.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    >>> solve_banded((0, 1), ab, wnp.array([3.0, 3.0, 2.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    below, above = l_and_u
    bands, right = alike(ab, b)
    if bands.ndim != 2 or bands.shape[0] != below + above + 1:
        raise ShapeError.here(
            f"solve_banded: expected {below + above + 1} diagonals, got shape {show(bands.shape)}"
        )
    n = bands.shape[1]
    i, j = np.indices((n, n))
    offset = above + i - j
    inside = (offset >= 0) & (offset <= below + above)
    return solve(where(inside, bands[np.where(inside, offset, 0), j], 0), right)


guard(globals())
