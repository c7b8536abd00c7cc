"""Functions and methods that make sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.eager.functions.creation.constructor import tensor
from weft.eager.functions.sparse.pattern import Pattern
from weft.eager.functions.sparse.tensor import SparseTensor, sparse_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.device import check_device
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.memory_format import layout, sparse_csr
from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.shape import show

__all__ = ["sparse_coo_tensor", "sparse_csr_tensor"]


def _given(x: Any, dtype: Any = None) -> Any:
    """An argument as a tensor."""
    found: Any = x if isinstance(x, Handle) else tensor(x)
    return found if dtype is None else found.to(dtype)


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A sparse tensor by coordinates.

    Args:
        indices: (axes, entries), integers; or the size of a tensor without entries.
        values: (entries, ...).
        size: all axes; by default as many as the indices need.
        device: there is one.
        check_invariants: no effect: places are checked when the tensor is used.
        is_coalesced: whether the entries are in order, each place once.

    Raises:
        ShapeError: arguments do not match.

    Example:
        >>> import weft as wf
        >>> a = wf.sparse_coo_tensor([[0, 1, 1], [2, 0, 1]], [1.0, 2.0, 3.0], (2, 3))
        >>> a @ wf.eye(3)
        tensor([[0., 0., 1.],
                [2., 3., 0.]])
    """
    del check_invariants
    check_device(device)
    if values is None:
        size = tuple(indices if size is None else size)
        indices, values = np.zeros((len(size), 0), np.int64), tensor(np.zeros(0, np.float32))
    where, data = _given(indices, int64), _given(values, dtype)
    axes = dims_of(where)
    if len(axes) != 2 or dims_of(data)[:1] != axes[1:]:
        raise ShapeError.here(
            f"sparse_coo_tensor: expected indices of shape (axes, entries) and a value an entry, "
            f"got {show(axes)} and {show(dims_of(data))}"
        )
    if size is None:
        size = (*(where.amax(1) + 1).tolist(), *dims_of(data)[1:])
    whole = tuple([int(n) for n in size])
    if whole[axes[0] :] != dims_of(data)[1:]:
        raise ShapeError.here(
            f"sparse_coo_tensor: expected a size of {axes[0]} axes, then those of an entry, "
            f"{show(dims_of(data)[1:])}, got {show(whole)}"
        )
    pattern = Pattern(whole[: axes[0]], where, is_coalesced=bool(is_coalesced))
    return _leaf(sparse_of(pattern, data), requires_grad)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A sparse CSR matrix.

    Args:
        crow_indices: (rows + 1), where each row begins, then the number of entries.
        col_indices: (entries), the column of each.
        values: (entries), of a floating type.
        size: rows and columns; by default as many columns as the indices need.
        device: there is one.
        check_invariants: no effect: places are checked when the matrix is used.

    Raises:
        ShapeError: arguments do not match.

    Example:
        >>> import weft as wf
        >>> a = wf.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0], size=(2, 3))
        >>> a @ wf.eye(3)
        tensor([[0., 0., 1.],
                [2., 3., 0.]])
    """
    del check_invariants
    check_device(device)
    indptr, columns, data = _given(crow_indices), _given(col_indices), _given(values, dtype)
    if size is None:
        size = (dims_of(indptr)[0] - 1, int(columns.max()) + 1)
    rows, width = [int(n) for n in size]
    if dims_of(indptr) != (rows + 1,) or dims_of(data) != dims_of(columns):
        raise ShapeError.here(
            f"sparse_csr_tensor: expected crow_indices of shape ({rows + 1},) and a value a column "
            f"index, got {show(dims_of(indptr))}, {show(dims_of(data))} and "
            f"{show(dims_of(columns))}"
        )
    pattern = Pattern((rows, width), rows=(indptr, columns))
    return _leaf(sparse_of(pattern, data, sparse_csr), requires_grad)


def _leaf(found: SparseTensor, requires_grad: bool) -> SparseTensor:
    """A new sparse tensor; gradients flow to values of its own if it requires grad."""
    if not requires_grad:
        return found
    whole = found.coalesce() if found.is_sparse else found  # so that each place has one gradient
    return whole.with_values(whole.entries.detach().requires_grad_())


class Methods:
    """Conversions of dense tensors."""

    is_sparse_csr: Final = False

    def to_dense(self, dtype: Any = None) -> Any:
        """The tensor itself, which is dense."""
        own: Any = self
        return own if dtype is None else own.to(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> Any:
        """The tensor by coordinates of its elements that are not 0.

        Args:
            sparse_dim: the number of sparse axes, by default all; or a layout.
        """
        own: Any = self
        kind = sparse_dim if isinstance(sparse_dim, _Layout) else layout
        count = sparse_dim if isinstance(sparse_dim, int) else own.ndim
        full = own.detach() != 0
        full = full if count == own.ndim else full.flatten(count).any(-1)
        indices = full.nonzero().T
        found = sparse_of(
            Pattern(tuple(own.shape[:count]), indices, is_coalesced=True),
            own[tuple(indices.unbind(0))],
        )
        return found if kind is None else found.to_sparse(layout=kind)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> Any:
        """The matrix by compressed rows of its elements that are not 0."""
        return Methods.to_sparse(self).to_sparse_csr()

    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the entries of a sparse tensor, with that one's layout."""
        own: Any = self
        return mask.with_values(own[tuple(mask.pattern.indices.unbind(0))])


_Layout: Final[type[Any]] = layout
