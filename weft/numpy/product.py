"""Matmul, dot products and their relatives."""

# pyright: reportReturnType=false
# Functions of tensors return arrays for arrays, which type checkers do not see.

from __future__ import annotations

import operator
import string
from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.linalg import product
from weft.eager.functions.shape import joining, movement
from weft.eager.tensor.dispatch import recorded
from weft.errors import ShapeError
from weft.ir.dtype import int64, uint64
from weft.ir.shape import show
from weft.numpy.convert import alike, typed
from weft.numpy.elementwise import conj
from weft.numpy.manipulation import axis_within, moveaxis, ravel

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "block_diag", "cross", "dot", "einsum", "inner", "kron", "matmul", "outer", "tensordot",
    "trace", "vdot", "vecdot",
]  # fmt: skip


def matmul(x1: Any, x2: Any, /) -> ndarray:
    """The matrix product; leading axes broadcast, vectors count as a row or a column.

    Raises:
        ShapeError: a scalar, or inner dimensions that differ.
    """
    return product.matmul(*alike(x1, x2))


def dot(a: Any, b: Any) -> ndarray:
    """The sum of products over the last axis of `a` and the second last of `b`.

    Raises:
        ShapeError: these dimensions differ.
    """
    x, y = alike(a, b)
    if not x.ndim or not y.ndim:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((-1,), (max(y.ndim - 2, 0),)))


def inner(a: Any, b: Any) -> ndarray:
    """The sum of products over the last axes."""
    x, y = alike(a, b)
    return tensordot(x, y, axes=((-1,), (-1,))) if x.ndim and y.ndim else x * y


def vdot(a: Any, b: Any) -> ndarray:
    """The sum of products of all elements, with the first array conjugated."""
    return dot(conj(ravel(a)), ravel(b))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The sum of products along an axis, with the first array conjugated.

    Raises:
        ShapeError: the axes are of different lengths.
    """
    x, y = alike(x1, x2)
    a, b = (axis_within("vecdot", axis, v.ndim) for v in (x, y))
    if x.shape[a] != y.shape[b]:
        raise ShapeError.here(
            f"vecdot: expected vectors of one length, got {x.shape[a]} and {y.shape[b]}"
        )
    return product.vecdot(moveaxis(x, a, -1), moveaxis(y, b, -1))


def outer(x1: Any, x2: Any, /) -> ndarray:
    """The outer product of two flattened arrays."""
    return product.outer(*[ravel(x) for x in alike(x1, x2)])


def kron(a: Any, b: Any) -> ndarray:
    """The Kronecker product."""
    return product.kron(*alike(a, b))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> ndarray:
    """The cross product of vectors of 3 elements along an axis.

    Raises:
        ShapeError: vectors of another length.
    """
    x, y = alike(a, b)
    places = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = moveaxis(x, places[0], -1), moveaxis(y, places[1], -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError.here(
            f"cross: expected vectors of 3 elements, got shapes {show(x.shape)} and {show(y.shape)}"
        )
    found: Any = product.cross(*movement.broadcast_tensors(x, y), dim=-1)
    return moveaxis(found, -1, places[2])


def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> ndarray:
    """Products summed over axes: the last of `x1` with the first of `x2`, or given pairs."""
    x, y = alike(x1, x2)
    found: Any = product.tensordot(x, y, axes)
    return typed(found, x.dtype)


def einsum(subscripts: Any, /, *operands: Any) -> ndarray:
    """Einstein summation: products of elements, summed over letters missing in the result.

    `einsum(x, [0, 1], y, [1, 2], [0, 2])` is the same as `einsum("ab,bc->ac", x, y)`.

    Raises:
        GraphError, ShapeError: an equation that is malformed, or does not fit the operands.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _lettered((subscripts, *operands))
    factors = alike(*operands)
    found: Any = product.einsum(subscripts, *factors)
    return typed(found, factors[0].dtype)


def _lettered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of a call with lists of axis numbers."""
    pairs = [*zip(given[0::2], given[1::2], strict=False)]
    terms = ["".join(["..." if i is ... else _LETTERS[i] for i in axes]) for _, axes in pairs]
    arrow = ""
    if len(given) % 2:
        arrow = "->" + "".join(["..." if i is ... else _LETTERS[i] for i in given[-1]])
    return ",".join(terms) + arrow, tuple([x for x, _ in pairs])


_LETTERS = string.ascii_letters


_trace = recorded(ops.trace)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> ndarray:
    """The sum of a diagonal; int64 for integers."""
    x = typed(a, dtype)
    if dtype is None and not x.dtype.is_inexact:
        x = typed(x, uint64 if x.dtype.kind == "u" else int64)
    return _trace(x, offset=operator.index(offset), axis1=axis1, axis2=axis2)


def block_diag(*arrays: Any) -> ndarray:
    """A block-diagonal matrix."""
    return joining.block_diag(*alike(*arrays))
