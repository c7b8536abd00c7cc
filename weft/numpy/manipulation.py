"""Array manipulation: reshape, permute, join, split, repeat, flip, pad."""

# pyright: reportReturnType=false
# Functions of tensors return arrays for arrays, which type checkers do not see.

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.indexing import gather
from weft.eager.functions.shape import diagonal as diagonal_of_tensors
from weft.eager.functions.shape import joining, movement, permutation, splitting
from weft.eager.functions.shape import reshape as shaping
from weft.eager.tensor.argument import axes_of, axis_of, listed
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.handle import Handle
from weft.errors import OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import show
from weft.numpy.convert import alike, array_like, typed
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.memory_check import check_table
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "column_stack", "concat", "concatenate", "diag",
    "diagonal", "dsplit", "dstack", "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack",
    "make_diagonal", "matrix_transpose", "moveaxis", "ndim", "pad", "permute_dims", "ravel",
    "repeat", "reshape", "roll", "rollaxis", "rot90", "row_stack", "shape", "size", "split",
    "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vander", "vsplit", "vstack",
]  # fmt: skip

# Attributes


def shape(a: Any) -> tuple[int, ...]:
    """The dimensions of an array."""
    return array_like(a).shape


def ndim(a: Any) -> int:
    """The number of axes of an array."""
    return array_like(a).ndim


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements of an array, or along one axis."""
    dims = shape(a)
    return int(np.prod(dims)) if axis is None else dims[axis]


def axis_within(name: str, axis: Any, rank: int) -> int:
    """An axis counted from the front; a scalar has none.

    Raises:
        OutOfRangeError: it is outside the rank.
    """
    if not rank:
        raise OutOfRangeError.here(f"{name}: a scalar has no axis {axis}")
    return axis_of(name, axis, rank)


# Reshaping


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """Reshape; one dimension may be -1.

    Args:
        order: `"C"` with the last axis first, `"F"` with the first axis first, `"A"` as `"C"`.
        copy: `True` returns a copy; otherwise memory may be shared with `x`.

    Raises:
        ShapeError: a shape with another number of elements.
    """
    x = array_like(x)
    if order == "F":
        wanted = tuple(shape) if not isinstance(shape, int) else (shape,)
        return transpose(reshape(transpose(x), wanted[::-1]))
    found: Any = shaping.reshape(x, shape)
    return found.clone() if copy else found


def ravel(a: Any, order: str = "C") -> ndarray:
    """The flattened array."""
    return reshape(a, (-1,), order)


def expand_dims(x: Any, /, axis: Any = 0) -> ndarray:
    """Insert axes of size 1.

    Raises:
        OutOfRangeError: an axis outside the rank.
        ShapeError: one is named twice.
    """
    x = array_like(x)
    axes = tuple(axis) if isinstance(axis, list | tuple | range) else (axis,)
    rank = x.ndim + len(axes)
    places = axes_of("expand_dims", axes, rank) if axes else ()
    old = iter(x.shape)
    dims = tuple([1 if i in places else next(old) for i in range(rank)])
    return reshape(x, dims)


def squeeze(x: Any, /, axis: Any = None) -> ndarray:
    """Remove axes of size 1: all, or the given ones.

    Raises:
        ShapeError: a given axis is of another size.
    """
    x = array_like(x)
    if axis is None:
        return reshape(x, tuple([d for d in x.shape if d != 1]))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    gone = [axis_within("squeeze", a, x.ndim) for a in axes]
    if any([x.shape[a] != 1 for a in gone]):
        raise ShapeError.here(
            f"squeeze: expected axes {axes} of one element, got shape {show(x.shape)}"
        )
    return reshape(x, tuple([d for i, d in enumerate(x.shape) if i not in gone]))


def atleast_1d(*arys: Any) -> Any:
    """Scalars as one-element arrays."""
    return joining.atleast_1d(*[array_like(x) for x in arys])


def atleast_2d(*arys: Any) -> Any:
    """The array with at least two axes; new ones come first."""
    return joining.atleast_2d(*[array_like(x) for x in arys])


def atleast_3d(*arys: Any) -> Any:
    """The array with at least three axes: a vector becomes `(1, n, 1)`, a matrix `(m, n, 1)`."""
    return joining.atleast_3d(*[array_like(x) for x in arys])


# Permuting axes


def permute_dims(x: Any, /, axes: Any) -> ndarray:
    """Permute the axes.

    Raises:
        ShapeError: `axes` is no permutation of all axes.
    """
    return permutation.permute(array_like(x), tuple(axes))


def transpose(a: Any, axes: Any = None) -> ndarray:
    """Reverse the axes, or permute them."""
    x = array_like(a)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def matrix_transpose(x: Any, /) -> ndarray:
    """Swap the last two axes.

    Raises:
        ShapeError: a rank below 2.
    """
    return shaping.matrix_transpose(array_like(x))


def moveaxis(x: Any, source: Any, destination: Any) -> ndarray:
    """Move the axes `source` to the positions `destination`; the others keep their order."""
    x = array_like(x)
    if not x.ndim and (source != () or destination != ()):
        raise OutOfRangeError.here(f"moveaxis: a scalar has no axis {source}")
    return permutation.moveaxis(x, source, destination)


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Swap two axes."""
    return permutation.swapaxes(array_like(a), axis1, axis2)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """Move an axis before the axis `start`."""
    x = array_like(a)
    source, to = axis_within("rollaxis", axis, x.ndim), start + x.ndim if start < 0 else start
    return moveaxis(x, source, to - 1 if source < to else to)


# Broadcast


def broadcast_to(x: Any, /, shape: Any) -> ndarray:
    """Broadcast to a shape.

    Raises:
        ShapeError: it does not broadcast to the shape.
    """
    return shaping.broadcast_to(array_like(x), shape)


def broadcast_arrays(*arrays: Any) -> list[ndarray]:
    """All arrays broadcast to their common shape."""
    return list(movement.broadcast_tensors(*[array_like(x) for x in arrays]))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast."""
    return movement.broadcast_shapes(*shapes)


# Joining


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> ndarray:
    """Concatenate arrays along an axis; without one, the flattened arrays.

    Raises:
        ShapeError: no arrays, or shapes that differ along another axis.
    """
    given = alike(*_listed("concat", arrays))
    if axis is None:
        given, axis = [ravel(x) for x in given], 0
    return joining.cat(given, axis)


concatenate = concat


def _listed(name: str, arrays: Any) -> list[Any]:
    """Arrays given as one sequence, or as the rows of an array."""
    return listed(name, unstack(arrays) if isinstance(arrays, Handle) else arrays, "array")


def stack(arrays: Sequence[Any], /, axis: int = 0) -> ndarray:
    """Stack arrays of one shape along a new axis."""
    return joining.stack(alike(*_listed("stack", arrays)), axis)


def hstack(tup: Sequence[Any]) -> ndarray:
    """Concatenate along the second axis; vectors along their only axis."""
    return joining.hstack(alike(*_listed("hstack", tup)))


def vstack(tup: Sequence[Any]) -> ndarray:
    """Stack vertically, along the first axis."""
    return joining.vstack(alike(*_listed("vstack", tup)))


row_stack = vstack


def dstack(tup: Sequence[Any]) -> ndarray:
    """Stack along the third axis."""
    return joining.dstack(alike(*_listed("dstack", tup)))


def column_stack(tup: Sequence[Any]) -> ndarray:
    """Stack vectors as columns of a matrix."""
    return joining.column_stack(alike(*_listed("column_stack", tup)))


def append(arr: Any, values: Any, axis: int | None = None) -> ndarray:
    """Append `values` to `arr` along an axis; without one, both flattened."""
    return concat([arr, values], axis=axis)


# Splitting


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The slices at each index of an axis, which is removed."""
    x = array_like(x)
    axis_within("unstack", axis, x.ndim)
    return splitting.unbind(x, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split along an axis, at indices or into parts whose sizes differ by at most 1."""
    given = indices_or_sections
    cuts = given if isinstance(given, int) else np.atleast_1d(np.asarray(given)).tolist()
    return list(splitting.tensor_split(array_like(ary), cuts, axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split along an axis, into equal parts or at indices.

    Raises:
        ShapeError: a number of parts that does not divide the axis.
    """
    x, given = array_like(ary), indices_or_sections
    if isinstance(given, int) and x.shape[axis] % given:
        raise ShapeError.here(
            f"split: expected a number of parts that divides {x.shape[axis]}, got {given}; "
            f"array_split takes any"
        )
    return array_split(x, given, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the second axis; a vector along its only axis."""
    x = array_like(ary)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the third axis."""
    return split(ary, indices_or_sections, 2)


# Repeating and flipping


def tile(x: Any, /, reps: Any) -> ndarray:
    """The array repeated along each axis."""
    times = (reps,) if isinstance(reps, int) else tuple(reps)
    return movement.tile(array_like(x), times)


def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> ndarray:
    """Each element along an axis repeated; without an axis, of the flattened array."""
    x = array_like(x)
    if isinstance(repeats, Handle | np.ndarray):
        repeats = np.asarray(repeats).tolist()
    if isinstance(repeats, list | tuple) and len(repeats) == 1:
        repeats = repeats[0]
    return movement.repeat_interleave(x, repeats, axis)


def flip(x: Any, /, axis: Any = None) -> ndarray:
    """Reverse axes, all by default."""
    x = array_like(x)
    if axis == () or not x.ndim:
        return x.clone()
    return movement.flip(x, axis=axis) if axis is not None else movement.flip(x)


def fliplr(m: Any) -> ndarray:
    """The columns in reverse order."""
    return flip(m, axis=1)


def flipud(m: Any) -> ndarray:
    """The rows in reverse order."""
    return flip(m, axis=0)


def roll(x: Any, /, shift: Any, axis: Any = None) -> ndarray:
    """Shift elements along axes, with wrap-around."""
    x = array_like(x)
    along = None if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    by = (shift,) if isinstance(shift, int) else tuple(shift)
    if along is not None and len(along) == 1:
        along *= len(by)
    if along is None:
        by = (sum(by),)
    return movement.roll(x, by, along) if x.size else x.clone()


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> ndarray:
    """Rotate by `k` quarter turns, from the first axis to the second."""
    return movement.rot90(array_like(m), k, axes)


# Padding


@recorded
def _padded(x: Value, value: Value, *, pads: tuple[tuple[int, int], ...]) -> Value:
    inner = catalogue.pad(x, paddings=pads)
    if not any([low or high for low, high in pads]):
        return inner
    ones = catalogue.broadcast_to(constant_of(True), shape=concrete(x))
    return catalogue.select(catalogue.pad(ones, paddings=pads), inner, value)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> ndarray:
    """Pad the axes.

    Args:
        pad_width: a number, a pair (before, after), or a pair for each axis.
        mode: `constant`, `edge`, `reflect`, `symmetric` or `wrap`.

    Raises:
        ShapeError: another mode.
    """
    x = array_like(array)
    pads = tuple([(int(a), int(b)) for a, b in np.broadcast_to(pad_width, (x.ndim, 2))])
    if mode == "constant":
        return _padded(x, typed(constant_values, x.dtype), pads=pads)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ShapeError.here(
            f"pad: expected mode constant, edge, reflect, symmetric or wrap, got {mode!r}"
        )
    found: Any = x
    for axis, ends in enumerate(pads):
        options: Any = mode
        check_table("pad", (x.shape[axis] + sum(ends),), int64)
        places = np.pad(np.arange(x.shape[axis]), ends, options)
        found = gather.take(found, places, axis) if any(ends) else found
    return found


# Parts of matrices


def diag(v: Any, k: int = 0) -> ndarray:
    """A diagonal of a matrix; for a vector, the matrix with this diagonal."""
    return diagonal_of_tensors.diag(array_like(v), k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The diagonal elements `i, i + offset` of two axes, as the last axis."""
    return permutation.diagonal(array_like(a), operator.index(offset), axis1, axis2)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """Vectors along the last axis as diagonals of matrices in two axes."""
    return diagonal_of_tensors.diag_embed(array_like(D), offset, axis1, axis2)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> ndarray:
    """The Vandermonde matrix of a vector, highest power first unless `increasing`."""
    return diagonal_of_tensors.vander(array_like(x), N, increasing)
