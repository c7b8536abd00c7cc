"""Argument checks of functions of matrices."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import cast, lazy_of
from weft.eager.tensor.elementwise import promoted
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype, float32, float64
from weft.ir.shape import show

_REAL: Final = (float32, float64)


def numbers(name: str, x: Any, dtype: Any = None) -> Lazy:
    """A floating-point or complex tensor, converted to `dtype` if given.

    Raises:
        DTypeError: integers or booleans.
    """
    lazy = lazy_of(x)
    if not lazy.type.dtype.is_inexact:
        raise DTypeError.here(
            f"{name}: expected floating elements, got {lazy.type.dtype}; convert the tensor with "
            f"float() first"
        )
    return lazy if dtype is None else cast(lazy, as_dtype(dtype))


def matrices(name: str, x: Any, square: bool = False) -> Lazy:
    """Check that matrices are such as LAPACK takes.

    Raises:
        DTypeError: neither single nor double precision.
        ShapeError: no matrices, or not square if they have to be.
    """
    lazy = numbers(name, x)
    dtype = lazy.type.dtype
    if not dtype.is_complex and dtype not in _REAL:
        raise DTypeError.here(
            f"{name}: expected float32 or float64, got {dtype}; convert the tensor with float() "
            f"first"
        )
    dims = dims_of(lazy)
    if len(dims) < 2 or (square and dims[-1] != dims[-2]):
        kind = "square matrices" if square else "matrices"
        raise ShapeError.here(f"{name}: expected {kind}, got shape {show(dims)}")
    return lazy


def equations(name: str, a: Any, b: Any, vector: bool, left: bool = True) -> tuple[Lazy, Lazy]:
    """Both sides of linear equations, promoted to one dtype.

    Args:
        vector: whether `b` is one vector for each matrix, and not a matrix.

    Raises:
        ShapeError: they do not fit each other.
    """
    matrices(name, a)
    left_side, right_side = promoted(a, b)
    rows, dims = dims_of(left_side)[-2 if left else -1], dims_of(right_side)
    at = -1 if vector or not left else -2
    if len(dims) < -at or dims[at] != rows:
        raise ShapeError.here(
            f"{name}: expected right sides of {rows} {'rows' if left else 'columns'}, got shape "
            f"{show(dims)}"
        )
    return left_side, right_side


def are_vectors(a: Any, b: Any) -> bool:
    """Whether right sides are one vector for each matrix, by the rule of NumPy and PyTorch."""
    left, right = dims_of(a), dims_of(b)
    return len(right) == 1 or (len(left) - 1 == len(right) and right == left[:-1])
