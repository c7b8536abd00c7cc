"""Norms of vectors, matrices, tensors and differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.elementwise.declared import subtract
from weft.eager.functions.indexing.gather import where
from weft.eager.functions.linalg.factorization import svdvals
from weft.eager.functions.linalg.matrix import matrices, numbers
from weft.eager.functions.linalg.solve import inv_ex
from weft.eager.functions.reduction.reduce import floating, rank_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import axes_of, axis_of, dims_of, either, kept
from weft.eager.tensor.dispatch import kind_of, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.errors import DTypeError, ShapeError
from weft.ir.shape import show
from weft.ops.reduction import norm as formulas
from weft.ops.reduction.norm import MATRIX_NORMS

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["dist", "frobenius_norm", "norm", "nuclear_norm", "renorm"]

_vector_norm = recorded(ops.vector_norm)
_matrix_norm = recorded(ops.matrix_norm)


def vector_norm(
    x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`sum(abs(x) ** ord) ** (1 / ord)` over `dim`, all axes if none are given.

    Args:
        ord: a number, `inf`, `-inf`, or 0, which counts nonzero elements.
        dtype: to compute in.

    Raises:
        DTypeError: elements that are not floating-point.
        ShapeError: no elements, for an `ord` that needs some.
    """
    return _of_vectors("vector_norm", numbers("vector_norm", x, dtype), x, ord, dim, keepdim)


def _of_vectors(name: str, lazy: Lazy, x: Any, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    if not isinstance(ord, int | float):
        raise DTypeError.here(f"{name}: expected a number, got {ord!r}")
    axes = axes_of(name, dim, rank_of(lazy))
    sizes: Any = lazy.type.shape
    if (ord < 0 or ord == math.inf) and not all([sizes[a] for a in axes]):
        raise ShapeError.here(
            f"{name}: no elements have no {ord}-norm; expected some in shape {show(sizes)}"
        )
    return _vector_norm.on(kind_of(x), lazy, ord=float(ord), axes=axes, keepdims=keepdim)


def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of matrices: `"fro"`, `"nuc"`, 1, 2, `inf`; -1, -2 or `-inf` take the minimum.

    Args:
        dim: the axes of their rows and columns.
        dtype: to compute in.

    Raises:
        DTypeError: another `ord`, or elements that are not floating-point.
        ShapeError: not two axes.
    """
    return _of_matrices("matrix_norm", numbers("matrix_norm", A, dtype), A, ord, dim, keepdim)


def _of_matrices(name: str, lazy: Lazy, x: Any, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    if ord not in MATRIX_NORMS:
        known = ", ".join(map(str, MATRIX_NORMS))
        raise DTypeError.here(f"{name}: expected ord of {known}, got {ord!r}")
    rank = rank_of(lazy)
    axes = tuple([axis_of(name, a, rank) for a in dim])
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ShapeError.here(
            f"{name}: expected two different dims of shape {show(lazy.type.shape)}, got {dim}"
        )
    return _matrix_norm.on(kind_of(x), lazy, ord=ord, axes=axes, keepdims=keepdim)


def norm_of(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of vectors (one axis) or matrices (two axes); without `ord`, of all elements.

    Raises:
        ShapeError: an `ord` without `dim` for a tensor that is neither a vector nor a matrix; three
            axes or more.
    """
    lazy = numbers("norm", A, dtype)
    rank = rank_of(lazy)
    if dim is not None and not isinstance(dim, int) and len(dim) > 2:
        raise ShapeError.here(f"norm: expected one or two dims, got {tuple(dim)}")
    if ord is None:
        return _of_vectors("norm", lazy, A, 2, dim, keepdim)
    if dim is None and not 1 <= rank <= 2:
        raise ShapeError.here(f"norm: expected dim beside ord for a tensor of rank {rank}")
    axes = range(rank) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) == 2:
        return _of_matrices("norm", lazy, A, ord, axes, keepdim)
    return _of_vectors("norm", lazy, A, ord, axes, keepdim)


def norm(
    x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, *,
    ord: Any = None, axis: Any = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The `p`-norm over `dim`, flattened to a vector: `sum(abs(x) ** p) ** (1 / p)`.

    Args:
        p: a number, `inf`, `-inf`, 0 (counts nonzero elements), `"fro"` for 2, or `"nuc"` for the
            sum of singular values of matrices.

    Raises:
        DTypeError: another `p`.
    """
    power = either("norm", None if p == "fro" else p, ord, 2)
    over, keep = either("norm", dim, axis), kept("norm", keepdim, keepdims)
    lazy = floating(x, dtype)
    if power == "nuc":
        return _of_matrices("norm", lazy, x, power, (0, 1) if over is None else over, keep)
    power = 2 if power == "fro" else power
    if not isinstance(power, int | float):
        raise DTypeError.here(f"norm: expected a number, 'fro' or 'nuc', got {power!r}")
    return _of_vectors("norm", lazy, x, power, over, keep)


def frobenius_norm(x: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares over `dim`."""
    return norm(x, 2, dim, keepdim)


def nuclear_norm(x: Any, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of singular values of matrices."""
    return norm(x, "nuc", dim, keepdim)


def dist(x: Any, other: Any, p: float = 2) -> Tensor:
    """The `p`-norm of the difference."""
    a, b = promoted(x, other, floats=True)
    like = kind_of(x, other)
    return norm(subtract(wrap(a, like), wrap(b, like)), p)


_renorm = recorded(formulas.renorm)


def renorm(x: Any, p: float, dim: Any, maxnorm: float) -> Tensor:
    """Slices along `dim`, scaled down to a `p`-norm of at most `maxnorm`.

    Raises:
        DTypeError: a `p` or a norm that is not above 0.
    """
    if not p > 0 or maxnorm < 0:
        raise DTypeError.here(
            f"renorm: expected p above 0 and maxnorm of at least 0, got {p} and {maxnorm}"
        )
    lazy = numbers("renorm", x)
    if rank_of(lazy) < 2:
        raise ShapeError.here(f"renorm: expected rank 2 or more, got {rank_of(lazy)}")
    at = axis_of("renorm", dim, rank_of(lazy))
    return _renorm.on(kind_of(x), *promoted(x, float(maxnorm)), p=float(p), axis=at)


def cond(A: Any, p: Any = None) -> Tensor:
    """The condition number: the norm of matrices times that of their inverses; infinite if
    singular.

    It is 0 for empty matrices.

    Args:
        p: as `ord` of `matrix_norm`; 2 by default.
    """
    shape = dims_of(matrices("cond", A))
    if 0 in shape[-2:]:
        return matrix_norm(A).new_zeros(shape[:-2])
    if p in (None, 2, -2):
        s = svdvals(A)
        most, least = s[..., 0], s[..., -1]
        return least / most if p == -2 else most / least
    matrices("cond", A, square=True)
    inverse, info = inv_ex(A)
    found = matrix_norm(A, p) * matrix_norm(inverse, p)
    return where(info == 0, found, math.inf)
