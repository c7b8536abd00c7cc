"""Linear algebra under PyTorch's names; `weft.numpy.linalg` has NumPy's.

>>> import weft as wf
>>> wf.linalg.det(wf.tensor([[2.0, 1.0], [1.0, 2.0]]))
tensor(3.)
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.linalg.factorization import cholesky as cholesky
from weft.eager.functions.linalg.factorization import cholesky_ex as cholesky_ex
from weft.eager.functions.linalg.factorization import eig as eig
from weft.eager.functions.linalg.factorization import eigh as eigh
from weft.eager.functions.linalg.factorization import eigvals as eigvals
from weft.eager.functions.linalg.factorization import eigvalsh as eigvalsh
from weft.eager.functions.linalg.factorization import ldl_factor as ldl_factor
from weft.eager.functions.linalg.factorization import ldl_factor_ex as ldl_factor_ex
from weft.eager.functions.linalg.factorization import lu_factor as lu_factor
from weft.eager.functions.linalg.factorization import lu_factor_ex as lu_factor_ex
from weft.eager.functions.linalg.factorization import lu_of as lu
from weft.eager.functions.linalg.factorization import orgqr as householder_product
from weft.eager.functions.linalg.factorization import qr_of as qr
from weft.eager.functions.linalg.factorization import svd_of as svd
from weft.eager.functions.linalg.factorization import svdvals as svdvals
from weft.eager.functions.linalg.product import cross_of
from weft.eager.functions.linalg.product import matmul as matmul
from weft.eager.functions.linalg.product import vecdot as vecdot
from weft.eager.functions.linalg.solve import det as det
from weft.eager.functions.linalg.solve import inv_ex as inv_ex
from weft.eager.functions.linalg.solve import inverse as inv
from weft.eager.functions.linalg.solve import ldl_solve as ldl_solve
from weft.eager.functions.linalg.solve import lstsq as lstsq
from weft.eager.functions.linalg.solve import lu_solve_of as lu_solve
from weft.eager.functions.linalg.solve import matrix_exp as matrix_exp
from weft.eager.functions.linalg.solve import matrix_power as matrix_power
from weft.eager.functions.linalg.solve import matrix_rank as matrix_rank
from weft.eager.functions.linalg.solve import pinv as pinv
from weft.eager.functions.linalg.solve import slogdet as slogdet
from weft.eager.functions.linalg.solve import solve as solve
from weft.eager.functions.linalg.solve import solve_ex as solve_ex
from weft.eager.functions.linalg.solve import solve_triangular as solve_triangular
from weft.eager.functions.out_argument import Out, with_outlet
from weft.eager.functions.reduction.norm import cond as cond
from weft.eager.functions.reduction.norm import matrix_norm as matrix_norm
from weft.eager.functions.reduction.norm import norm_of as norm
from weft.eager.functions.reduction.norm import vector_norm as vector_norm
from weft.eager.functions.shape.diagonal import vander as columns_of_powers
from weft.eager.functions.shape.permutation import diagonal as any_diagonal
from weft.eager.functions.shape.permutation import movedim
from weft.eager.functions.shape.reshape import reshape
from weft.eager.tensor.argument import axis_of, dims_of, integer
from weft.eager.tensor.dispatch import lazy_of
from weft.errors import DTypeError, ShapeError
from weft.ops.boundary.state import LinAlgError

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex",
    "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip


def cross(input: Any, other: Any, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along an axis; other axes broadcast.

    Raises:
        OutOfRangeError: no such axis.
        ShapeError: other sizes, or tensors of different ranks.
    """
    ranks = len(dims_of(input)), len(dims_of(other))
    if ranks[0] != ranks[1]:
        raise ShapeError.here(f"cross: expected tensors of one rank, got {ranks[0]} and {ranks[1]}")
    axis_of("cross", dim, ranks[0])
    return cross_of(input, other, dim)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The `offset`-th diagonals of matrices, as a view."""
    return any_diagonal(A, offset, dim1, dim2)


def vander(x: Any, N: Any = None) -> Tensor:
    """Powers of each element from 0 on, along a new last axis; `N` of them, or one per element."""
    dims = dims_of(x) or (1,)
    count = dims[-1] if N is None else integer("vander", N)
    found = columns_of_powers(reshape(x, -1), count, increasing=True)
    return reshape(found, *dims, count)


def multi_dot(tensors: Sequence[Any]) -> Tensor:
    """The matrix product of a chain, in the order with the fewest multiplications.

    Raises:
        DTypeError: matrices of several dtypes.
        ShapeError: fewer than two, or wrong ranks: only the first and last may be vectors.
    """
    kinds = {lazy_of(x).type.dtype: None for x in tensors}
    if len(kinds) > 1:
        raise DTypeError.here(f"multi_dot: expected one dtype, got {', '.join(map(str, kinds))}")
    ranks = [len(dims_of(x)) for x in tensors]
    inner = builtins.all([r == 2 for r in ranks[1:-1]])
    if len(ranks) < 2 or not inner or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ShapeError.here(
            "multi_dot: expected two or more matrices, of which only the first and last may be "
            f"vectors, got ranks {ranks}"
        )
    dims = [dims_of(x) for x in tensors]
    first = 1 if ranks[0] == 1 else dims[0][0]
    last = 1 if ranks[-1] == 1 else dims[-1][1]
    sizes = (first, *[d[0] for d in dims[1:]], last)
    return _in_order(tensors, _cheapest(sizes), 0, len(tensors) - 1)


def _cheapest(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to split each part of a chain (Cormen et al., "Algorithms", 15.2)."""
    count = len(sizes) - 1
    cost: dict[tuple[int, int], float] = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length, i in itertools.product(range(1, count), range(count)):
        j = i + length
        if j < count:
            costs = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            }
            cuts[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[cuts[i, j]]
    return cuts


def _in_order(tensors: Sequence[Any], cuts: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return tensors[i]
    k = cuts[i, j]
    return matmul(_in_order(tensors, cuts, i, k), _in_order(tensors, cuts, k + 1, j))


def tensorinv(A: Any, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a map from its last axes to its first `ind` ones."""
    dims = dims_of(A)
    rows, columns = math.prod(dims[:ind]), math.prod(dims[ind:])
    if not 0 < ind < len(dims) or rows != columns:
        raise ShapeError.here(
            f"tensorinv: expected as many elements before axis {ind} as after it, got shape {dims}"
        )
    return reshape(inv(reshape(A, rows, columns)), *dims[ind:], *dims[:ind])


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Tensor:
    """`x` such that `tensordot(A, x, x.ndim)` is `B`.

    Args:
        dims: axes of `A` that are moved to the end first.
    """
    rank = len(dims_of(A))
    axes = [axis_of("tensorsolve", d, rank) for d in dims or ()]
    whole = movedim(A, axes, list(range(rank - len(axes), rank)))
    rest = dims_of(whole)[len(dims_of(B)) :]
    count = math.prod(rest)
    if math.prod(dims_of(B)) != count:
        raise ShapeError.here(f"tensorsolve: expected {count} right sides, got shape {dims_of(B)}")
    return reshape(solve(reshape(whole, count, count), reshape(B, -1)), *rest)


_OUT: Final = {
    "diagonal": Out.EXACT, "eig": Out.CASTABLE, "matrix_norm": Out.OWN_TYPE,
    "multi_dot": Out.EXACT, "norm": Out.OWN_TYPE, "vector_norm": Out.OWN_TYPE,
}  # fmt: skip
for _name in __all__:
    _rule = _OUT.get(_name, Out.SAME_KIND)
    globals()[_name] = with_outlet(globals()[_name], __name__, _name, _rule)
