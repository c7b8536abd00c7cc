"""Sparse tensors: coordinates (COO) or compressed rows (CSR), with gradients of their values.

A sparse tensor is a view of its values. What has no sparse form here, such as `torch.exp(x)`, reads
it as a dense tensor, which is computed then. Gradients are those of the stored entries.
"""

from __future__ import annotations

from typing import Any, Final

from weft.eager.functions.linalg.product import matmul
from weft.eager.functions.shape.joining import cat
from weft.eager.functions.sparse.csr import csr_matmul
from weft.eager.functions.sparse.pattern import Pattern, Scattered, dense
from weft.eager.record.pending.lazy import Lazy, begun
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view.memory_format import layout, sparse_coo, sparse_csr, strided
from weft.eager.tensor.view.view import View
from weft.errors import ShapeError, StateError
from weft.ir.node import TensorType
from weft.ir.shape import show
from weft.ops.declaration.fact import Autocast
from weft.ops.sparse.segment import reduce_by_ids

_sums: Final = recorded(reduce_by_ids, autocast=Autocast.WIDEST)


class _Result(Tensor):
    """The class of what operations without a sparse form make of a sparse tensor: a dense one.

    It differs from `Tensor`, so that calls are not taken for those on dense tensors.
    """

    __slots__ = ()
    __module__ = "weft"


_Result.kind = Tensor
_Result.__name__ = _Result.__qualname__ = "Tensor"


class SparseTensor(Tensor):
    """A sparse tensor, as made by `sparse_coo_tensor`, `sparse_csr_tensor` or `x.to_sparse()`."""

    __slots__ = ("entries", "form", "pattern")
    entries: Any  # the values, coalesced or not
    form: layout
    pattern: Pattern

    # -- parts

    @property
    def layout(self) -> layout:
        """`sparse_coo` or `sparse_csr`."""
        return self.form

    @property
    def is_sparse(self) -> bool:
        """Whether it has coordinates."""
        return self.form is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it has compressed rows."""
        return self.form is sparse_csr

    def _indices(self) -> Any:
        return self.pattern.indices

    def _values(self) -> Any:
        return self.entries

    def _nnz(self) -> int:
        return dims_of(self.entries)[0]

    def indices(self) -> Any:
        """The coordinates, (axes, entries).

        Raises:
            StateError: it is not coalesced.
        """
        self._check_coalesced("indices")
        return self.pattern.indices

    def values(self) -> Any:
        """The entries.

        Raises:
            StateError: it has coordinates and is not coalesced.
        """
        self._check_coalesced("values")
        return self.entries

    def crow_indices(self) -> Any:
        """The row pointers: where each row begins, and the end of the last one."""
        return self.pattern.csr[0].long()

    def col_indices(self) -> Any:
        """The column of each entry."""
        return self.pattern.csr[1].long()

    def sparse_dim(self) -> int:
        """The number of sparse axes, which come first."""
        return len(self.pattern.shape)

    def dense_dim(self) -> int:
        """The number of dense axes: those of an entry."""
        return self.ndim - self.sparse_dim()

    def is_coalesced(self) -> bool:
        """Whether the entries are in order, each place once."""
        return self.pattern.is_coalesced

    def _check_coalesced(self, name: str) -> None:
        if self.form is sparse_coo and not self.pattern.is_coalesced:
            raise StateError.here(f"{name}: expected a coalesced tensor: call coalesce() first")

    # -- other forms

    def coalesce(self) -> Any:
        """The tensor with each place once, in order: entries at one place are added."""
        if self.pattern.is_coalesced:
            return self
        pattern, which = self.pattern.coalesced
        count = dims_of(pattern.indices)[1]
        return sparse_of(pattern, _sums(self.entries, which, size=count, reduce="sum"))

    def to_dense(self, dtype: Any = None) -> Any:
        """The dense tensor; entries at one place are added."""
        found = dense(self.pattern.indices, self.entries, shape=tuple(self.shape))
        return found if dtype is None else found.to(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> Any:
        """The tensor by coordinates, or in another layout."""
        del sparse_dim
        return self._in(sparse_coo if layout is None else layout)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> Any:
        """The tensor by compressed rows."""
        return self._in(sparse_csr)

    def _in(self, kind: layout) -> Any:
        if kind is self.form:
            return self
        if kind is strided:
            return self.to_dense()
        whole = self.coalesce() if kind is sparse_csr else self
        return sparse_of(whole.pattern, whole.entries, kind)

    def to(self, *what: Any, **options: Any) -> Any:
        """The tensor with values of another dtype, or on another device."""
        moved = self.entries.to(*what, **options)
        return self if moved is self.entries else self.with_values(moved)

    def clone(self, *, memory_format: Any = None) -> Any:
        """A copy; gradients flow through."""
        return self.with_values(self.entries.clone(memory_format=memory_format))

    def detach(self) -> Any:
        """The tensor without gradients."""
        return self.with_values(self.entries.detach())

    def t(self) -> Any:
        """The transposed matrix, by coordinates."""
        self._check_matrix("t")
        return sparse_of(self.pattern.transposed, self.entries)

    def transpose(self, dim0: int, dim1: int) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The transposed matrix, by coordinates."""
        return self.t() if dim0 % 2 != dim1 % 2 else self

    @property
    def T(self) -> Any:
        """The transposed matrix, by coordinates."""
        return self.t()

    def with_values(self, data: Any) -> Any:
        """The tensor with other values at the same places."""
        return sparse_of(self.pattern, data, self.form)

    def _check_matrix(self, name: str) -> None:
        if self.ndim != 2 or self.dense_dim():
            raise ShapeError.here(f"{name}: expected a sparse matrix, got shape {show(self.shape)}")

    # -- gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through its values."""
        return self.entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.entries.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether its values require grad."""
        self.entries.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether its values are a leaf."""
        return self.entries.is_leaf

    @property
    def grad(self) -> Any:
        """The gradient of the values, as a sparse tensor; `None` if there is none."""
        return None if self.entries.grad is None else self.with_values(self.entries.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self.entries.grad = None if value is None else value.entries

    @grad.deleter
    def grad(self) -> None:
        del self.entries.grad

    # -- operations

    def multiplied(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The matmul with a dense or sparse matrix, or a vector."""
        self._check_matrix("matmul")
        x = other.to_dense() if isinstance(other, SparseTensor) else other
        dims = dims_of(x)
        if dims[:1] != self.shape[1:] or len(dims) > 2:
            raise ShapeError.here(
                f"matmul: expected {self.shape[1]} rows for a matrix of shape {show(self.shape)}, "
                f"got {show(dims)}"
            )
        if not self.dtype.is_floating:
            return matmul(self.to_dense(), x)
        indptr, columns, order = self.pattern.csr
        values = self.entries if order is None else self.entries[order]
        return csr_matmul(indptr, columns, values, x)

    matmul = __matmul__ = multiplied

    def mm(self, mat2: Any) -> Any:
        """The matmul with a dense or sparse matrix."""
        return self.multiplied(mat2)

    def mv(self, vec: Any) -> Any:
        """The matmul with a vector."""
        return self.multiplied(vec)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self.to_dense())

    def mul(self, other: Any) -> Any:
        """The product with a number, or element by element; it has this tensor's entries."""
        if isinstance(other, Handle) and other.lazy.type.shape != ():
            whole = self.coalesce()
            given: Any = other
            at = tuple(whole.pattern.indices.unbind(0))
            return whole.with_values(whole.entries * given.to_dense().expand(self.shape)[at])
        return self.with_values(self.entries * other)

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Any:
        """The quotient by a number, or a tensor with one element."""
        whole = self.coalesce() if rounding_mode else self
        return whole.with_values(whole.entries.div(other, rounding_mode=rounding_mode))

    def neg(self) -> Any:
        """The tensor with the other sign."""
        return self.with_values(-self.entries)

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """The sum: sparse with a sparse tensor, dense with a dense one."""
        other = other if alpha == 1 else other * alpha
        if not isinstance(other, SparseTensor):
            return self.to_dense() + other
        indices = cat([self.pattern.indices, other.pattern.indices], 1)
        return sparse_of(
            Pattern(self.pattern.shape, indices), cat([self.entries, other.entries])
        )._in(self.form)

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        """The difference: sparse with a sparse tensor, dense with a dense one."""
        return self.add(-other * alpha)

    __mul__ = __rmul__ = mul
    __truediv__ = div
    __neg__ = neg
    __add__ = __radd__ = add
    __sub__ = sub

    # -- as Python

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return sparse_of, (self.pattern, self.entries, self.form)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone().detach().requires_grad_(self.requires_grad)

    def __repr__(self) -> str:
        where = {"indices": self.pattern.indices}
        if self.form is sparse_csr:
            where = {"crow_indices": self.crow_indices(), "col_indices": self.col_indices()}
        parts = [f"{name}={part}" for name, part in {**where, "values": self.entries}.items()]
        size = f"size={show(self.shape)}, nnz={self._nnz()}, layout={self.form}"
        return f"tensor({', '.join(parts)}, {size})"

    __str__ = __repr__


SparseTensor.kind = _Result


def sparse_of(pattern: Pattern, values: Any, kind: layout = sparse_coo) -> SparseTensor:
    """The sparse tensor of a pattern with these values."""
    shape = (*pattern.shape, *dims_of(values)[1:])
    found: SparseTensor = handle_of(SparseTensor, begun(Lazy(), TensorType(values.dtype, shape)))
    found.pattern, found.entries, found.form = pattern, values, kind
    found.window = View(values, Scattered(pattern, shape), version=-1)  # read when it is needed
    return found
