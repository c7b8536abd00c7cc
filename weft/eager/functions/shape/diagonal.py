"""Triangles and diagonals of matrices, and matrices built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.reduction.reduce import counted
from weft.eager.functions.shape.reshape import reshape
from weft.eager.tensor.argument import axis_of, dims_of, integer
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["diag", "diag_embed", "diagflat", "tril", "triu", "vander"]


# Parts of matrices


@recorded
def _band(x: Value, *, diagonal: int, lower: bool) -> Value:
    return ops.tril(x, diagonal) if lower else ops.triu(x, diagonal)


def check_matrices(name: str, x: Any) -> None:
    """Require a matrix, or several.

    Raises:
        ShapeError: a rank below 2.
    """
    if len(dims_of(x)) < 2:
        raise ShapeError.here(f"{name}: expected a matrix, got shape {show(dims_of(x))}")


def tril(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Matrices with zeros above a diagonal."""
    shift = integer("tril", diagonal if k is None else k)
    check_matrices("tril", x)
    return _band.on(kind_of(x), lazy_of(x), diagonal=shift, lower=True)


def triu(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Matrices with zeros below a diagonal."""
    shift = integer("triu", diagonal if k is None else k)
    check_matrices("triu", x)
    return _band.on(kind_of(x), lazy_of(x), diagonal=shift, lower=False)


_diag = recorded(ops.diag)


def diag(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """A diagonal of a matrix; for a vector, the matrix with this diagonal."""
    return _diag.on(kind_of(x), lazy_of(x), k=diagonal if k is None else k)


def diagflat(x: Any, offset: int = 0) -> Tensor:
    """A matrix with the flattened tensor on its diagonal."""
    return diag(reshape(x, -1), offset)


@recorded
def _diag_embed(x: Value, *, offset: int, axes: tuple[int, int]) -> Value:
    return ops.moveaxis(ops.diag_embed(x, offset), (-2, -1), axes)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis of `x` on their diagonals.

    Raises:
        OutOfRangeError: an axis outside the rank of the result.
        ShapeError: one axis twice.
    """
    rank = len(dims_of(x)) + 1
    axes = (axis_of("diag_embed", dim1, rank), axis_of("diag_embed", dim2, rank))
    if axes[0] == axes[1]:
        raise ShapeError.here(f"diag_embed: expected two axes, got {dim1} twice")
    return _diag_embed.on(kind_of(x), lazy_of(x), offset=offset, axes=axes)


_vander = recorded(ops.vander)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector, highest power first unless `increasing`; int64 for
    integers.

    Raises:
        ShapeError: no vector, or a negative `N`.
    """
    if len(dims_of(x)) != 1 or (N is not None and N < 0):
        raise ShapeError.here(f"vander: expected a vector and N >= 0, got {dims_of(x)} and {N}")
    return _vander.on(kind_of(x), counted(x), columns=N, increasing=increasing)
