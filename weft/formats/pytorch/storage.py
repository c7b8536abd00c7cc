"""Storages, and the arrays that tensors of any kind become: views, quantized, float8, sparse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

import ml_dtypes
import numpy as np

from weft.formats.pytorch.pickle_reader import Name, Unpicklable
from weft.ir.dtype import NAMED

Array = np.ndarray[Any, Any]
MOST_EXPANDED: Final = 1 << 20  # elements of a tensor with more of them than its storage
MOST_DIMENSIONS: Final = 64  # as NumPy has it
HALVES: Final = np.dtype([("real", np.float16), ("imag", np.float16)])
_ELEMENTS: Final = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "QInt8": "int8", "QUInt8": "uint8", "QInt32": "int32",
}  # fmt: skip
_NARROW: Final = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
}  # fmt: skip


class Storage(NamedTuple):
    """The bytes under tensors, which are views.

    Attributes:
        elements: the type of its elements; `None` if only the tensors know it.
    """

    content: Array
    elements: np.dtype[Any] | None


class Sparse(NamedTuple):
    """A sparse matrix: row pointers, the column and the value of each entry, rows and columns."""

    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int, int]


def storage_elements(name: Any) -> np.dtype[Any] | None:
    """The type of the elements of a storage's class.

    Raises:
        Unpicklable: there is no such class, or its elements are packed.
    """
    if name == Name("torch.storage", "UntypedStorage"):
        return None
    kind = name.name.removesuffix("Storage") if isinstance(name, Name) else ""
    if kind not in _ELEMENTS:
        raise Unpicklable(f"a storage of {name}")
    return NAMED[_ELEMENTS[kind]].numpy


def elements_of(dtype: Any) -> np.dtype[Any]:
    """The type in a file of the elements of a tensor of this type.

    Raises:
        Unpicklable: there is no such type.
    """
    if isinstance(dtype, Name) and dtype.module == "torch":
        if dtype.name in _NARROW:
            return _NARROW[dtype.name]
        if dtype.name in ("complex32", "chalf"):
            return HALVES
    found = getattr(dtype, "numpy", None)
    if not isinstance(found, np.dtype):
        raise Unpicklable(f"elements of type {dtype}")
    return found


def view(
    storage: Any, offset: Any, shape: Any, strides: Any, elements: np.dtype[Any] | None = None
) -> Array:
    """A tensor's elements, in memory of their own; narrower types than Weft's are widened.

    Raises:
        Unpicklable: it leaves its storage.
    """
    elements = elements or (storage.elements if isinstance(storage, Storage) else None)
    if not isinstance(storage, Storage) or elements is None:
        raise Unpicklable("a tensor without a storage")
    _check_numbers(offset, shape, strides)
    held = len(storage.content) // elements.itemsize
    count = math.prod(shape)
    last = offset + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    if (count and last >= held) or count > max(held, MOST_EXPANDED):
        raise Unpicklable(
            f"a tensor of shape {tuple(shape)} and strides {tuple(strides)} at {offset} in a "
            f"storage of {held} elements"
        )
    if not count:
        return _widened(np.empty(shape, elements))
    steps = [s * elements.itemsize for s in strides]
    strided = np.ndarray(shape, elements, storage.content, offset * elements.itemsize, steps)
    return _widened(np.array(strided, order="C"))


def _widened(x: Array) -> Array:
    """Numbers of types that Weft does not have in a type that holds them exactly."""
    if x.dtype == HALVES:
        parts = x.view(np.float16).reshape(*x.shape, 2).astype(np.float32)
        return parts.view(np.complex64).reshape(x.shape)
    return x.astype(np.float32) if x.dtype in _NARROW.values() else x


def _check_numbers(offset: Any, shape: Any, strides: Any) -> None:
    for numbers in (shape, strides, (offset,)):
        if not isinstance(numbers, Sequence) or len(cast("Any", numbers)) > MOST_DIMENSIONS:
            raise Unpicklable("a tensor with an invalid shape")
        if not all([type(n) is int and 0 <= n < 1 << 62 for n in cast("Any", numbers)]):
            raise Unpicklable(f"a tensor of shape {shape!r:.80}, strides {strides!r:.80}")


def dequantized(x: Array, quantizer: Any) -> Array:
    """The numbers that a quantized tensor stands for, `(x - zero_point) * scale` in float32.

    Args:
        quantizer: the scheme's name, and its scale and zero point; for each channel their arrays,
            and the axis of channels.

    Raises:
        Unpicklable: another scheme, or arrays of other lengths.
    """
    scheme, scale, zero, *axis = quantizer
    if axis:
        size = x.shape[axis[0]] if type(axis[0]) is int and 0 <= axis[0] < x.ndim else -1
        shape = [size if i == axis[0] else 1 for i in range(x.ndim)]
        scale, zero = (np.asarray(part) for part in (scale, zero))
        if scale.shape != (size,) or zero.shape != (size,):
            raise Unpicklable(f"a tensor of shape {x.shape} with {scale.size} scales")
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    if str(scheme) not in _SCHEMES:
        raise Unpicklable(f"a tensor quantized by {scheme}")
    return (x.astype(np.int64) - zero).astype(np.float32) * np.asarray(scale, np.float32)


_SCHEMES: Final = (
    "torch.per_tensor_affine", "torch.per_channel_affine", "torch.per_channel_affine_float_qparams",
)  # fmt: skip


def sparse_matrix(layout: str, arrays: Sequence[Array], shape: tuple[int, ...]) -> Sparse:
    """A sparse matrix of PyTorch's layout by rows.

    Args:
        layout: `torch.sparse_coo`, `torch.sparse_csr` or `torch.sparse_csc`.
        arrays: of that layout: indices and values, or pointers, indices and values.

    Raises:
        Unpicklable: blocks, other dimensions than two, or indices outside of the matrix.
    """
    if layout == "torch.sparse_coo":
        indices, values = arrays
        rows, columns = _pair(indices)
    elif layout in ("torch.sparse_csr", "torch.sparse_csc"):
        pointers, plain, values = arrays
        _check_pointers(pointers, shape[layout == "torch.sparse_csc"], plain)
        long = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
        rows, columns = (long, plain) if layout == "torch.sparse_csr" else (plain, long)
    else:
        raise Unpicklable(f"a tensor of layout {layout}; save x.to_dense()")
    if len(shape) != 2 or values.ndim != 1 or not len(rows) == len(columns) == len(values):
        raise Unpicklable(f"a sparse tensor of shape {tuple(shape)}; save x.to_dense()")
    for indices, size in zip((rows, columns), shape, strict=True):
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < size:
            raise Unpicklable(f"a sparse matrix of shape {tuple(shape)} with indices outside of it")
    order = np.lexsort((columns, rows))
    counts = np.bincount(rows, minlength=shape[0]) if len(rows) else np.zeros(shape[0], np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Sparse(indptr, columns[order].astype(np.int64), values[order], (shape[0], shape[1]))


def _pair(indices: Array) -> tuple[Array, Array]:
    if indices.ndim != 2 or len(indices) != 2:
        raise Unpicklable("a sparse tensor that is not a matrix; save x.to_dense()")
    return indices[0], indices[1]


def _check_pointers(pointers: Array, count: int, plain: Array) -> None:
    ends = len(pointers) == count + 1 and pointers[0] == 0 and pointers[-1] == len(plain)
    if pointers.ndim != 1 or not ends or (np.diff(pointers) < 0).any():
        raise Unpicklable("a sparse matrix whose rows overlap")
