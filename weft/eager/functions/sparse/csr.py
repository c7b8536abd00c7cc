"""CSR index arrays, and products of CSR matrices: native kernels, whose gradients use the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.tensor.dispatch import recorded
from weft.ir.node import Value
from weft.ops.declaration.fact import Autocast

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["csr_matmul", "csr_order", "csr_rows", "sampled_product"]


@recorded(differentiable=False)
def _ordered(ids: Value, *, size: int) -> tuple[Value, Value]:
    indptr, order = ops.csr_order.all(ids, size=size)
    return indptr, order


def csr_order(ids: Any, size: int) -> tuple[Tensor, Tensor]:
    """Sorts ids, stably, into CSR form: row pointers, and the positions of each id.

    Args:
        ids: (n), integers in [0, size).

    Returns:
        `indptr`, (size + 1), and `order`, (n), int32: ids[order] is sorted, and id `i` is at
        `order[indptr[i]:indptr[i + 1]]`.
    """
    return _ordered(ids, size=int(size))


@recorded(differentiable=False)
def _rows(indptr: Value, *, size: int) -> Value:
    return ops.csr_rows(indptr, size=size)


def csr_rows(indptr: Any, size: int) -> Tensor:
    """The row of each of `size` entries, int32: the ids that `csr_order` sorted."""
    return _rows(indptr, size=int(size))


@recorded(autocast=Autocast.WIDEST)
def _product(indptr: Value, indices: Value, values: Value, x: Value) -> Value:
    heads = max(0, (values.rank or 1) - 1)
    return ops.csr_matmul(indptr, indices, values, x, heads=heads)


def csr_matmul(indptr: Any, indices: Any, values: Any, x: Any) -> Tensor:
    """The matmul of a CSR matrix and a dense one: y[r] = sum of values[e] * x[indices[e]].

    Args:
        indptr: (rows + 1); the entries of row `r` are `indptr[r]` to `indptr[r + 1]`.
        indices: (entries), the column of each.
        values: (entries), or (entries, heads) where x is (columns, heads, ...).
        x: (columns, ...).

    Raises:
        ShapeError: shapes do not match.
        OutOfRangeError: at run time, a column without a row in `x`, or an invalid `indptr`.
    """
    return _product(indptr, indices, values, x)


@recorded(autocast=Autocast.WIDEST)
def sampled_product(indptr: Value, indices: Value, left: Value, right: Value) -> Value:
    """The elements of `left @ right.T` at the entries of a CSR matrix."""
    return ops.csr_sampled_matmul(indptr, indices, left, right)
