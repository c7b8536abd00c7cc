"""Sparse CSR matrices (compressed sparse row), and segment reductions.

>>> import weft as wf
>>> edges = wf.tensor([0, 2, 2, 0])  # whom each of four messages goes to
>>> wf.sparse.segment_sum(wf.tensor([1.0, 2.0, 3.0, 4.0]), edges, 3)
tensor([5., 0., 5.])

One thread sums a row, in the order of its entries, so that results are bitwise equal on any number
of threads. Kernels are native, and gradients use the same kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft import ops
from weft.documentation import named
from weft.eager.functions.creation.constructor import tensor
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration.fact import Autocast
from weft.ops.refusal import guard

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "SparseCSR", "csr_matmul", "csr_order", "csr_rows", "mm", "sampled_addmm", "segment_max",
    "segment_mean", "segment_min", "segment_prod", "segment_softmax", "segment_sum",
    "sparse_csr_tensor",
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


# CSR matrices


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
def _sampled(indptr: Value, indices: Value, left: Value, right: Value) -> Value:
    return ops.csr_sampled_matmul(indptr, indices, left, right)


class SparseCSR(NamedTuple):
    """A sparse CSR matrix, as made by `sparse_csr_tensor`."""

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]

    def crow_indices(self) -> Any:
        """The row pointers: where each row begins, and the end of the last one."""
        return self.indptr

    def col_indices(self) -> Any:
        """The column of each entry."""
        return self.indices

    def values(self) -> Any:
        """The entries."""
        return self.data

    def to_dense(self) -> Tensor:
        """The dense matrix; duplicate entries are added."""
        rows, columns = self.shape
        places = csr_rows(self.indptr, dims_of(self.indices)[0]).long() * columns + self.indices
        return _reduction("to_dense", "sum", "")(self.data, places, rows * columns).reshape(
            rows, columns
        )

    def __matmul__(self, x: Any) -> Tensor:
        return mm(self, x)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: tuple[int, int]
) -> SparseCSR:
    """A sparse CSR matrix.

    Args:
        crow_indices: (rows + 1), where each row begins, then the number of entries.
        col_indices: (entries), the column of each.
        values: (entries), of a floating type.
        size: rows and columns.

    Raises:
        ShapeError: arguments do not match.

    Example:
        >>> import weft as wf
        >>> a = wf.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0], size=(2, 3))
        >>> a @ wf.eye(3)
        tensor([[0., 0., 1.],
                [2., 3., 0.]])
    """
    indptr, indices, data = map(tensor_of, (crow_indices, col_indices, values))
    rows, columns = (int(n) for n in size)
    if dims_of(indptr) != (rows + 1,) or dims_of(data) != dims_of(indices):
        raise ShapeError.here(
            f"sparse_csr_tensor: expected crow_indices of shape ({rows + 1},) and a value a column "
            f"index, got {show(dims_of(indptr))}, {show(dims_of(data))} and "
            f"{show(dims_of(indices))}"
        )
    return SparseCSR(indptr, indices, data, (rows, columns))


def tensor_of(x: Any) -> Any:
    """`x` as a tensor."""
    return x if hasattr(x, "lazy") else tensor(x)


def mm(sparse: SparseCSR, dense: Any) -> Tensor:
    """The matmul of a sparse matrix and a dense one, (columns, n) or (columns).

    Raises:
        ShapeError: the dense matrix has not one row per column of the sparse one.
    """
    _check_columns("mm", sparse, dims_of(dense))
    return csr_matmul(sparse.indptr, sparse.indices, sparse.data, dense)


def _check_columns(name: str, sparse: SparseCSR, dims: tuple[int, ...]) -> None:
    if dims[:1] != sparse.shape[1:]:
        raise ShapeError.here(
            f"{name}: expected {sparse.shape[1]} rows for a matrix of shape {sparse.shape}, got "
            f"{show(dims)}"
        )


def sampled_addmm(
    input: SparseCSR, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> SparseCSR:
    """`beta * input + alpha * (mat1 @ mat2)` at the entries of `input`.

    Args:
        mat1: (rows, n).
        mat2: (n, columns).
    """
    _check_columns("sampled_addmm", input, dims_of(mat2)[1:])
    found = _sampled(input.indptr, input.indices, mat1, tensor_of(mat2).T)
    return input._replace(data=found * alpha + input.data * beta)


guard(globals())
