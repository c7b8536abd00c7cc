"""`tf.sparse`: operations of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.sparse.segment import softmax_by_ids
from weft.tf1.control.py_func import host_function
from weft.tf1.framework.graph import emit, fail
from weft.tf1.framework.sparse_tensor import SparseTensor as SparseTensor

__all__ = [
    "SparseTensor", "add", "concat", "from_dense", "matmul", "placeholder", "reduce_sum",
    "reorder", "reshape", "retain", "softmax", "sparse_add", "sparse_concat",
    "sparse_dense_matmul", "sparse_reduce_sum", "sparse_reorder", "sparse_reshape",
    "sparse_retain", "sparse_slice", "sparse_softmax", "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense", "sparse_to_dense", "sparse_to_indicator", "sparse_transpose",
    "to_dense", "transpose",
]  # fmt: skip

placeholder = tf.sparse_placeholder


def sparse_to_dense(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0,
    validate_indices: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """A tensor with values at indices and a default elsewhere.

    Args:
        sparse_indices: [number, rank], or [number] of a vector, or a scalar.
        output_shape: of the tensor.
        sparse_values: [number], or one for all.
        default_value: of the others.
        validate_indices: accepted.
        name: of the operations.
    """
    del validate_indices
    with tf.name_scope(name, "SparseToDense", [sparse_indices, sparse_values]):
        at = tf.convert_to_tensor(sparse_indices)
        values = tf.convert_to_tensor(sparse_values)
        if at.shape.ndims == 0:
            at = at[None]
        if at.shape.ndims == 1:
            at = at[:, None]
        count = tf.shape(at)[0]
        if values.shape.ndims == 0:
            values = tf.fill(count[None], values)
        dims = tf.cast(output_shape, at.dtype)
        if values.dtype.base_dtype == tf.string:
            return _texts(at, values, dims, default_value)
        base = tf.cast(tf.convert_to_tensor(default_value), values.dtype.base_dtype)
        found = tf.scatter_nd(at, values - base, dims)
        return found + base


def _texts(at: Any, values: Any, dims: Any, default: Any) -> Any:
    def spread(places: Any, texts: Any, shape: Any) -> Any:
        found = np.full(tuple(int(d) for d in shape), default or b"", object)
        found[tuple(places.T)] = texts
        return found

    rank = at.shape.as_list()[1]
    return host_function("SparseToDense", spread, [at, values, dims], [tf.string],
                         [(None,) * rank], None, alike=False).outputs[0]  # fmt: skip


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor as a dense one.

    Args:
        sp_input: a sparse tensor.
        default_value: where there is no value; 0 or an empty text by default.
        validate_indices: accepted.
        name: of the operations.
    """
    default = 0 if default_value is None else default_value
    if sp_input.dtype.base_dtype == tf.string and default_value is None:
        default = ""
    return sparse_to_dense(
        sp_input.indices, sp_input.dense_shape, sp_input.values, default, validate_indices, name
    )


sparse_tensor_to_dense = to_dense


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a tensor that are not 0."""
    with tf.name_scope(name, "dense_to_sparse", [tensor]):
        x = tf.convert_to_tensor(tensor)
        at = tf.where(tf.not_equal(x, tf.zeros_like(x)))
        return SparseTensor(at, tf.gather_nd(x, at), tf.cast(tf.shape(x), tf.int64))


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """A sparse matrix times a dense one.

    Args:
        sp_a: a sparse matrix.
        b: a dense matrix.
        adjoint_a, adjoint_b: transpose it before.
        name: of the operations.
    """
    with tf.name_scope(name, "SparseTensorDenseMatMul", [b]):
        dense = tf.convert_to_tensor(b)
        dense = tf.transpose(dense) if adjoint_b else dense
        rows, columns = (1, 0) if adjoint_a else (0, 1)
        parts = tf.gather(dense, sp_a.indices[:, columns]) * sp_a.values[:, None]
        count = sp_a.dense_shape[rows]
        found = tf.math.unsorted_segment_sum(parts, sp_a.indices[:, rows], tf.cast(count, tf.int32))
        known = tf.get_static_value(sp_a.dense_shape)
        height = None if known is None else int(known[rows])
        found.set_shape([height, dense.shape.as_list()[1]])
        return found


sparse_tensor_dense_matmul = matmul = sparse_dense_matmul


def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """The values at which a mask is true."""
    where = tf.where(to_retain)[:, 0]
    return SparseTensor(
        tf.gather(sp_input.indices, where), tf.gather(sp_input.values, where), sp_input.dense_shape
    )


def _rank(x: SparseTensor) -> int:
    """The number of axes.

    Raises:
        ArgumentError: it is not known.
    """
    found = x.indices.shape.as_list()[1]
    if found is None:
        raise fail(ArgumentError, "sparse: expected a known number of axes")
    return found


def _flat_index(indices: Any, dims: Any) -> Any:
    """Row-major numbers of indices."""
    strides = tf.cumprod(dims, exclusive=True, reverse=True)
    return tf.reduce_sum(indices * strides, 1)


def _indices_of(flat: Any, dims: Any) -> Any:
    """Indices of row-major numbers."""
    strides = tf.cumprod(dims, exclusive=True, reverse=True)
    return (flat[:, None] // strides[None]) % dims[None]


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Values in row-major order."""
    with tf.name_scope(name, "SparseReorder"):
        order = tf.argsort(_flat_index(sp_input.indices, sp_input.dense_shape), stable=True)
        return SparseTensor(tf.gather(sp_input.indices, order), tf.gather(sp_input.values, order),
                            sp_input.dense_shape)  # fmt: skip


def transpose(sp_input: SparseTensor, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The axes in another order; reversed by default."""
    rank = _rank(sp_input)
    order = list(perm) if perm is not None else list(range(rank))[::-1]
    with tf.name_scope(name, "SparseTranspose"):
        moved = SparseTensor(tf.gather(sp_input.indices, order, axis=1), sp_input.values,
                             tf.gather(sp_input.dense_shape, order))  # fmt: skip
        return reorder(moved)


def reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """The same values in another shape, of which one size may be -1."""
    with tf.name_scope(name, "SparseReshape"):
        flat = _flat_index(sp_input.indices, sp_input.dense_shape)
        wanted = tf.cast(shape, tf.int64)
        known = tf.reduce_prod(tf.where(wanted < 0, tf.ones_like(wanted), wanted))
        total = tf.reduce_prod(sp_input.dense_shape)
        dims = tf.where(wanted < 0, tf.zeros_like(wanted) + total // known, wanted)
        return SparseTensor(_indices_of(flat, dims), sp_input.values, dims)


def reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None,
    reduction_axes: Any = None, keep_dims: bool | None = None,
) -> Any:  # fmt: skip
    """The sum over axes, dense.

    Args:
        sp_input: a sparse tensor.
        axis, reduction_axes: of the sum; all by default.
        keepdims, keep_dims: keep the axes with size 1.
    """
    chosen = axis if reduction_axes is None else reduction_axes
    return tf.reduce_sum(to_dense(sp_input), chosen, keepdims=bool(keepdims or keep_dims))


def add(a: Any, b: Any, thresh: Any = 0) -> Any:
    """The sum of two tensors; sparse if both are.

    Args:
        a, b: tensors, of which one is sparse at least.
        thresh: values nearer to 0 are left out of a sparse sum.
    """
    if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
        first, second = (to_dense(x) if isinstance(x, SparseTensor) else x for x in (a, b))
        return first + second
    with tf.name_scope(None, "SparseAdd"):
        at = tf.concat([a.indices, b.indices], 0)
        flat, place = tf.unique(_flat_index(at, a.dense_shape))
        order = tf.argsort(flat)
        total = tf.math.unsorted_segment_sum(
            tf.concat([a.values, b.values], 0), place, tf.size(flat)
        )
        indices = _indices_of(tf.gather(flat, order), a.dense_shape)
        found = SparseTensor(indices, tf.gather(total, order), a.dense_shape)
        return found if thresh == 0 else retain(found, tf.abs(found.values) >= thresh)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Softmax over the values of each row; what is absent counts as minus infinity.

    Args:
        sp_input: a sparse tensor of two axes or more; rows lie along the last.
        name: of the operations.
    """
    with tf.name_scope(name, "SparseSoftmax"):
        leading, count = sp_input.dense_shape[:-1], tf.reduce_prod(sp_input.dense_shape[:-1])
        rows = _flat_index(sp_input.indices[:, :-1], leading)
        given = [sp_input.values, rows, tf.cast(count, tf.int32)]
        found = emit("SparseSoftmax", given, softmax_by_ids, name="SparseSoftmax")
        return SparseTensor(sp_input.indices, found, sp_input.dense_shape)


def concat(axis: int, sp_inputs: Sequence[SparseTensor], name: str | None = None) -> SparseTensor:
    """Sparse tensors one after another along an axis."""
    with tf.name_scope(name, "SparseConcat"):
        rank = _rank(sp_inputs[0])
        at = axis % rank
        unit = tf.one_hot(at, rank, dtype=tf.int64)
        offset: Any = tf.constant(0, tf.int64)
        indices: list[Any] = []
        for part in sp_inputs:
            indices.append(part.indices + offset * unit)
            offset = offset + part.dense_shape[at]
        dims = sp_inputs[0].dense_shape * (1 - unit) + offset * unit
        whole = SparseTensor(
            tf.concat(indices, 0), tf.concat([p.values for p in sp_inputs], 0), dims
        )
        return reorder(whole)


def sparse_slice(sp_input: SparseTensor, start: Any, size: Any, name: str | None = None) -> Any:
    """The block that begins at `start` and has at most `size`."""
    with tf.name_scope(name, "SparseSlice"):
        low, count = tf.cast(start, tf.int64), tf.cast(size, tf.int64)
        inside = tf.logical_and(sp_input.indices >= low, sp_input.indices < low + count)
        part = retain(sp_input, tf.reduce_all(inside, 1))
        dims = tf.maximum(tf.minimum(count, sp_input.dense_shape - low), 0)
        return SparseTensor(part.indices - low, part.values, dims)


def sparse_to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Any:
    """Booleans [..., vocab_size], true at the values.

    Raises:
        ArgumentError: it is not a matrix.
    """
    if sp_input.indices.shape.as_list()[1] != 2:
        raise fail(ArgumentError, "sparse_to_indicator: expected a sparse matrix")
    with tf.name_scope(name, "SparseToIndicator"):
        at = tf.stack([sp_input.indices[:, 0], tf.cast(sp_input.values, tf.int64)], 1)
        dims = tf.stack([sp_input.dense_shape[0], tf.constant(vocab_size, tf.int64)])
        return tf.scatter_nd(at, tf.ones_like(sp_input.values, tf.int32), dims) > 0


sparse_add, sparse_concat, sparse_reorder, sparse_reshape = add, concat, reorder, reshape
sparse_retain, sparse_transpose, sparse_reduce_sum = retain, transpose, reduce_sum
sparse_softmax = softmax
