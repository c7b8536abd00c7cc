"""Sparse tensors, by coordinates or compressed rows (CSR), and segment reductions.

>>> import weft as wf
>>> edges = wf.tensor([0, 2, 2, 0])  # whom each of four messages goes to
>>> wf.sparse.segment_sum(wf.tensor([1.0, 2.0, 3.0, 4.0]), edges, 3)
tensor([5., 0., 5.])

One thread sums a row, in the order of its entries, so that results are bitwise equal on any number
of threads. Kernels are native, and gradients use the same kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.documentation import named
from weft.eager.functions.creation.constructor import tensor
from weft.eager.functions.linalg import product
from weft.eager.functions.sparse.construct import sparse_coo_tensor as sparse_coo_tensor
from weft.eager.functions.sparse.construct import sparse_csr_tensor as sparse_csr_tensor
from weft.eager.functions.sparse.csr import csr_matmul as csr_matmul
from weft.eager.functions.sparse.csr import csr_order as csr_order
from weft.eager.functions.sparse.csr import csr_rows as csr_rows
from weft.eager.functions.sparse.csr import sampled_product
from weft.eager.functions.sparse.tensor import SparseTensor as SparseTensor
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.shape import normal_axis, show
from weft.ops.declaration.fact import Autocast
from weft.ops.refusal import guard

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "SparseTensor", "addmm", "csr_matmul", "csr_order", "csr_rows", "mm", "sampled_addmm",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_softmax", "segment_sum",
    "softmax", "sparse_coo_tensor", "sparse_csr_tensor", "sum",
]  # fmt: skip

# Segments


_reduced = recorded(ops.reduce_by_ids, autocast=Autocast.WIDEST)
_softmax = recorded(ops.softmax_by_ids, autocast=Autocast.FLOAT32)


def _segments(name: str, data: Any, ids: Any, size: int | None) -> int:
    """The number of segments, after checks of what is known before running."""
    if not lazy_of(ids).type.dtype.is_integer:
        kind = lazy_of(ids).type.dtype
        raise DTypeError.here(f"{name}: expected ids of integers, got {kind}")
    rows = dims_of(data)[:1]
    if not rows or dims_of(ids) != rows:
        raise ShapeError.here(
            f"{name}: expected an id for each row of data, of shape {show(rows)}, got "
            f"{show(dims_of(ids))}"
        )
    if size is not None:
        return int(size)
    return int(tensor(ids).max()) + 1 if rows[0] else 0


def _reduction(name: str, reduce: str, doc: str):
    @named(
        name,
        f"""{doc}

    Args:
        data: (rows, ...).
        segment_ids: (rows), integers.
        num_segments: number of rows of the result; computed from the ids by default.
        indices_are_sorted: whether the ids are sorted, which is faster.

    Raises:
        OutOfRangeError: when computed, an id outside [0, num_segments), or a decrease of ids that
            are said to be sorted.
    """,
    )
    def function(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
    ) -> Tensor:
        size = _segments(name, data, segment_ids, num_segments)
        return _reduced(data, segment_ids, size=size, reduce=reduce, is_sorted=indices_are_sorted)

    return function


segment_sum: Final = _reduction("segment_sum", "sum", "Sums of the rows of each id.")
segment_mean: Final = _reduction(
    "segment_mean", "mean", "Means of the rows of each id; 0 for none."
)
segment_prod: Final = _reduction("segment_prod", "prod", "Products of the rows of each id.")
segment_max: Final = _reduction("segment_max", "max", "The largest of each column; 0 for no row.")
segment_min: Final = _reduction("segment_min", "min", "The smallest of each column; 0 for no row.")


def segment_softmax(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False
) -> Tensor:
    """The softmax of each column over the rows of one id; arguments as in `segment_sum`.

    Example:
        >>> import weft as wf
        >>> wf.sparse.segment_softmax(wf.tensor([1.0, 1.0, 5.0]), wf.tensor([0, 0, 1]), 2)
        tensor([0.5000, 0.5000, 1.0000])
    """
    size = _segments("segment_softmax", data, segment_ids, num_segments)
    return _softmax(data, segment_ids, size=size, is_sorted=indices_are_sorted)


# Sparse matrices


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Tensor:
    """The matmul of a sparse matrix and a dense one, (columns, n) or (columns).

    Args:
        reduce: `sum`.

    Raises:
        ShapeError: the dense matrix has not one row per column of the sparse one.
        ArgumentError: another reduction.
    """
    if reduce != "sum":
        raise ArgumentError.here(f"mm: reduce: expected 'sum', got {reduce!r}")
    return product.matmul(mat1, mat2)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)`, with a sparse `mat1`."""
    return product.matmul(mat1, mat2) * alpha + mat * beta


def sampled_addmm(
    input: SparseTensor, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> SparseTensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the entries of the CSR matrix `input`.

    Args:
        mat1: (rows, n).
        mat2: (n, columns).

    Raises:
        ShapeError: the matrices do not fit.
    """
    if dims_of(mat2)[1:] != input.shape[1:]:
        raise ShapeError.here(
            f"sampled_addmm: expected {input.shape[1]} columns for a matrix of shape "
            f"{show(input.shape)}, got {show(dims_of(mat2))}"
        )
    right = mat2 if hasattr(mat2, "lazy") else tensor(mat2)
    found = sampled_product(input.crow_indices(), input.col_indices(), mat1, right.T)
    return input.with_values(found * alpha + input.values() * beta)


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all entries; or along axes, as a dense tensor."""
    given = input if dtype is None else input.to(dtype)
    return given.entries.sum() if dim is None else given.to_dense().sum(dim)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the entries of each row (`dim=1`) or column of a matrix."""
    whole = (input if dtype is None else input.to(dtype)).coalesce()
    ids = whole.indices()[1 - normal_axis(dim, 2)]
    size = whole.shape[1 - normal_axis(dim, 2)]
    return whole.with_values(_softmax(whole.values(), ids, size=size, is_sorted=False))


guard(globals())
