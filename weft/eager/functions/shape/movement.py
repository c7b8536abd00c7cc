"""Moves elements: splits, repeats, flips, rolls; and parts of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.functions.indexing.subscript import get
from weft.eager.functions.reduction.reduce import counted
from weft.eager.functions.shape.reshape import broadcast_to, reshape
from weft.eager.tensor.argument import axes_of, axis_of, dims_of, either, integer, sizes
from weft.eager.tensor.dispatch import kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import show as text
from weft.ops.base import REGISTRY, at_user_line, catalogue
from weft.ops.declaration.rule import concrete

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "broadcast_shapes", "broadcast_tensors", "chunk", "diag", "diag_embed", "diagflat", "dsplit",
    "flip", "fliplr", "flipud", "hsplit", "narrow", "repeat_interleave", "roll", "rot90",
    "select", "split", "split_with_sizes", "tensor_split", "tile", "tril", "triu", "unbind",
    "unstack", "vander", "vsplit",
]  # fmt: skip

# Broadcasting


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which tensors of these shapes broadcast.

    Raises:
        ShapeError: they do not broadcast.
    """
    given = [sizes("broadcast_shapes", (s,)) for s in shapes]
    try:
        return tuple(np.broadcast_shapes(*given))
    except ValueError:
        listed = ", ".join(map(text, given))
        raise ShapeError(
            f"broadcast_shapes: shapes do not broadcast: {listed}{at_user_line()}"
        ) from None


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[dims_of(x) for x in tensors])
    return tuple([broadcast_to(x, shape) for x in tensors])


# Splitting


def _pieces(x: Any, bounds: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    """Views of `x` between adjacent bounds along an axis."""
    return tuple([narrow(x, axis, a, b - a) for a, b in pairwise(bounds)])


def narrow(x: Any, dim: Any, start: Any, length: Any) -> Tensor:
    """The slice of `length` elements from `start` along an axis.

    Raises:
        OutOfRangeError: the slice exceeds the axis.
    """
    dims = dims_of(x)
    at = axis_of("narrow", dim, len(dims))
    size = dims[at] if dims else 0
    begin, count = integer("narrow", start), integer("narrow", length)
    begin += size if begin < 0 else 0
    if not (begin >= 0 and count >= 0 and begin + count <= size):
        raise OutOfRangeError(
            f"narrow: expected a part of 0 to {size} on dim {at}, got {begin} to {begin + count}"
            f"{at_user_line()}"
        )
    return part(x, (slice(None),) * at + (slice(begin, begin + count),))


def part(x: Any, key: tuple[Any, ...]) -> Tensor:
    """`x[key]` of a tensor or data."""
    return get(x if isinstance(x, Handle) else wrap(lazy_of(x)), key)


def select(x: Any, dim: Any, index: Any) -> Tensor:
    """The slice at one index of an axis, which is removed.

    Raises:
        OutOfRangeError: an index outside the axis.
    """
    at = axis_of("select", dim, len(dims_of(x)))
    return part(x, (slice(None),) * at + (integer("select", index),))


def split(x: Any, split_size_or_sections: Any, dim: Any = 0, *, axis: Any = None) -> Any:
    """Split into views along an axis, of one size (the last may be smaller) or of given sizes.

    Raises:
        ShapeError: sizes that do not add up to the axis.
    """
    dims = dims_of(x)
    at = axis_of("split", either("split", dim, axis, 0), len(dims))
    size = dims[at] if dims else 1
    given = split_size_or_sections
    if isinstance(given, int):
        if given < 0 or (not given and size):
            raise ShapeError(f"split: expected a size above 0, got {given}{at_user_line()}")
        bounds = [*range(0, size, given or 1), size] if size else [0, 0]
        return _pieces(x, bounds, at)
    counts = [integer("split", n) for n in given]
    if sum(counts) != size:
        raise ShapeError(
            f"split: expected sizes that add up to {size}, got {counts}{at_user_line()}"
        )
    return _pieces(x, [0, *accumulate(counts)], at)


split_with_sizes = split


def chunk(x: Any, chunks: int, dim: Any = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` parts of equal size along an axis; the last may be smaller.

    Raises:
        ShapeError: no chunks.
    """
    dims = dims_of(x)
    at = axis_of("chunk", dim, len(dims))
    if chunks < 1:
        raise ShapeError(f"chunk: expected at least one chunk, got {chunks}{at_user_line()}")
    return (
        split(x, max(-(-dims[at] // chunks), 1), at)
        if dims[at]
        else _pieces(x, [0] * (chunks + 1), at)
    )


def tensor_split(
    x: Any, indices_or_sections: Any = None, dim: Any = 0, *, indices: Any = None,
    sections: Any = None, tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Split along an axis, into a number of parts whose sizes differ by at most 1, or at indices.

    Args:
        indices: where to split; an alias of `indices_or_sections`, as are the others.
        sections: the number of parts.
        tensor_indices_or_sections: either, as a tensor.

    Raises:
        DTypeError: numbers that are no integers.
        ShapeError: no parts, or a tensor of rank 0.
    """
    dims = dims_of(x)
    at = axis_of("tensor_split", dim, len(dims))
    if not dims:
        raise ShapeError(f"tensor_split: expected at least one dim, got none{at_user_line()}")
    names = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    told = [each for each in names if each is not None]
    if len(told) != 1:
        raise DTypeError(
            f"tensor_split: expected either places or a number of parts{at_user_line()}"
        )
    (given,) = told
    if isinstance(given, Handle):
        if given.lazy.type.dtype is not int64:
            text_ = f"expected places of int64, got {given.lazy.type.dtype}"
            raise DTypeError(f"tensor_split: {text_}{at_user_line()}")
        given = given.array.tolist()
    if isinstance(given, int):
        if given < 1:
            raise ShapeError(
                f"tensor_split: expected at least one part, got {given}{at_user_line()}"
            )
        small, larger = divmod(dims[at], given)
        counts = [small + 1] * larger + [small] * (given - larger)
        return _pieces(x, [0, *accumulate(counts)], at)
    keys = [slice(a, b) for a, b in pairwise([0, *given, dims[at]])]
    return tuple([part(x, (slice(None),) * at + (key,)) for key in keys])


def _evenly(name: str, x: Any, given: Any, axis: int, rank: int) -> tuple[Tensor, ...]:
    """`tensor_split` of a tensor of at least `rank` axes into equal parts.

    Raises:
        ShapeError: the parts would differ, or there are fewer axes.
    """
    dims = dims_of(x)
    if len(dims) < rank:
        raise ShapeError(f"{name}: expected rank {rank} or more, got {len(dims)}{at_user_line()}")
    if isinstance(given, int) and given > 0 and dims[axis] % given:
        raise ShapeError(
            f"{name}: expected a number of parts that divides {dims[axis]}, got {given}"
            f"{at_user_line()}"
        )
    return tensor_split(x, given, axis)


def hsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split along the second axis (a vector's only one) into equal parts or at indices."""
    return _evenly("hsplit", x, indices_or_sections, 0 if len(dims_of(x)) == 1 else 1, 1)


def vsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split along the first axis into equal parts or at indices."""
    return _evenly("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split along the third axis into equal parts or at indices."""
    return _evenly("dsplit", x, indices_or_sections, 2, 3)


def unbind(x: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """Views of the slices at each index of an axis, which is removed.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims = dims_of(x)
    at = axis_of("unbind", dim, len(dims))
    return tuple([select(x, at, i) for i in range(dims[at])])


def unstack(x: Any, *, axis: Any = 0) -> tuple[Tensor, ...]:
    """`unbind`, under the Array API's name."""
    return unbind(x, axis)


# Repetition


def tile(x: Any, *dims: Any) -> Tensor:
    """The tensor repeated along each axis as often as `dims` say."""
    lazy = lazy_of(x)
    return wrap(record(REGISTRY["tile"], (lazy,), {"reps": sizes("tile", dims)})[0], kind_of(x))


def repeat(x: Any, *repeats: Any) -> Tensor:
    """`tile` with a number for each axis, or more.

    Raises:
        ShapeError: fewer numbers than axes.
    """
    times = sizes("repeat", repeats)
    if len(times) < len(dims_of(x)):
        raise ShapeError(
            f"repeat: expected a number for each of {len(dims_of(x))} dims, got {times}"
            f"{at_user_line()}"
        )
    return tile(x, times)


@recorded
def _repeated(x: Value, *, repeats: Any, axis: int | None) -> Value:
    return ops.repeat(x, repeats, axis)


def repeat_interleave(
    x: Any,
    repeats: Any = None,
    dim: Any = None,
    *,
    output_size: int | None = None,
    axis: Any = None,
) -> Tensor:
    """Each element along an axis repeated; without an axis, of the flattened tensor.

    Called with `repeats` alone, it repeats their indices.

    Args:
        repeats: a number, or one for each element; its values are read, as they decide the shape.
        output_size: the size of the result; no effect, as it follows from `repeats`.

    Raises:
        DTypeError: `repeats` is no vector of integers.
        ShapeError: the numbers of repeats and elements differ.
    """
    at = either("repeat_interleave", dim, axis)
    if repeats is None:
        x, repeats = np.arange(dims_of(x)[0]), x
    if isinstance(repeats, Handle):
        kind = repeats.lazy.type
        if len(dims_of(repeats)) > 1 or not kind.dtype.is_integer:
            what = "repeat_interleave: expected a vector of integers as repeats"
            got = f"got shape {text(kind.shape)} of {kind.dtype}"
            raise DTypeError(f"{what}, {got}{at_user_line()}")
        repeats = repeats.array.tolist()
    times = repeats if isinstance(repeats, int) else tuple(repeats)
    if at is not None:
        at = axis_of("repeat_interleave", at, len(dims_of(x)))
    return _repeated.on(kind_of(x), lazy_of(x), repeats=times, axis=at)


# Flips and rolls


def flip(x: Any, *given: Any, dims: Any = None, axis: Any = None) -> Tensor:
    """Reverse the axes `dims`; for NumPy arrays, by default all.

    Raises:
        DTypeError: no axes.
        OutOfRangeError: an axis outside the rank.
    """
    if not given:
        given = (axis if dims is None else dims,)
    lazy = lazy_of(x)
    if given == (None,) and isinstance(x, Handle) and x.rules is TORCH:
        raise DTypeError(f"flip: expected dims, got none{at_user_line()}")
    named = None if given == (None,) else sizes("flip", given)
    axes = () if named == () else axes_of("flip", named, len(dims_of(lazy)))
    return wrap(record(REGISTRY["flip"], (lazy,), {"axes": axes})[0], kind_of(x))


def fliplr(x: Any) -> Tensor:
    """The columns in reverse order."""
    return flip(x, (1,))


def flipud(x: Any) -> Tensor:
    """The rows in reverse order."""
    if not dims_of(x):
        raise ShapeError(f"flipud: expected rank 1 or more, got a scalar{at_user_line()}")
    return flip(x, (0,))


@recorded
def _rolled(x: Value, *, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Value:
    if axes is None:
        flat = catalogue.reshape(x, shape=(-1,))
        return catalogue.reshape(catalogue.roll(flat, shifts=shifts, axes=(0,)), shape=concrete(x))
    return catalogue.roll(x, shifts=shifts, axes=axes)


def roll(x: Any, shifts: Any, dims: Any = None, *, axis: Any = None) -> Tensor:
    """Shift elements along axes, with wrap-around.

    Without axes, the flattened tensor is shifted.

    Raises:
        ShapeError: the numbers of shifts and axes differ.
        OutOfRangeError: an axis outside the rank.
    """
    given = either("roll", dims, axis)
    along = None if given is None else sizes("roll", (given,))
    by = sizes("roll", (shifts,))
    if (dims is not None and len(by) != len(along or ())) or not by:
        raise ShapeError(
            f"roll: expected a shift for each of the axes {along}, got {by}{at_user_line()}"
        )
    if along and not dims_of(x):
        text = f"roll: expected axes of the tensor, got {along} of a scalar"
        raise OutOfRangeError(text + at_user_line())
    if along is not None:
        along = tuple([axis_of("roll", a, len(dims_of(x))) for a in along])
        by = by * len(along) if len(by) == 1 else by
    return _rolled.on(kind_of(x), lazy_of(x), shifts=by, axes=along)


@recorded
def _turned(x: Value, *, k: int, axes: tuple[int, int]) -> Value:
    return ops.rot90(x, k, axes)


def rot90(x: Any, k: int = 1, dims: Any = (0, 1), *, axes: Any = None) -> Tensor:
    """Rotate by `k` quarter turns, from the first axis to the second.

    Raises:
        OutOfRangeError: an axis outside the rank.
        ShapeError: not two different axes.
    """
    plane = sizes("rot90", (axes or dims,))
    if len(axes_of("rot90", plane, len(dims_of(x)))) != 2 or len(plane) != 2:
        raise ShapeError(f"rot90: expected two dims, got {plane}{at_user_line()}")
    return _turned.on(kind_of(x), lazy_of(x), k=k, axes=plane)


# Parts of matrices


@recorded
def _band(x: Value, *, diagonal: int, lower: bool) -> Value:
    return ops.tril(x, diagonal) if lower else ops.triu(x, diagonal)


def tril(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Matrices with zeros above a diagonal."""
    shift = integer("tril", diagonal if k is None else k)
    return _band.on(kind_of(x), lazy_of(x), diagonal=shift, lower=True)


def triu(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Matrices with zeros below a diagonal."""
    shift = integer("triu", diagonal if k is None else k)
    return _band.on(kind_of(x), lazy_of(x), diagonal=shift, lower=False)


@recorded
def _diag(x: Value, *, diagonal: int) -> Value:
    return ops.diag(x, diagonal)


def diag(x: Any, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """A diagonal of a matrix; for a vector, the matrix with this diagonal."""
    return _diag.on(kind_of(x), lazy_of(x), diagonal=diagonal if k is None else k)


def diagflat(x: Any, offset: int = 0) -> Tensor:
    """A matrix with the flattened tensor on its diagonal."""
    return diag(reshape(x, -1), offset)


@recorded
def _diag_embed(x: Value, *, offset: int, axes: tuple[int, int]) -> Value:
    return ops.moveaxis(ops.diag_embed(x, offset), (-2, -1), axes)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis of `x` on their diagonals.

    Raises:
        OutOfRangeError: an axis outside the rank of the result.
        ShapeError: one axis twice.
    """
    rank = len(dims_of(x)) + 1
    axes = (axis_of("diag_embed", dim1, rank), axis_of("diag_embed", dim2, rank))
    if axes[0] == axes[1]:
        raise ShapeError(f"diag_embed: expected two axes, got {dim1} twice{at_user_line()}")
    return _diag_embed.on(kind_of(x), lazy_of(x), offset=offset, axes=axes)


@recorded
def _vander(x: Value, *, columns: int | None, increasing: bool) -> Value:
    return ops.vander(x, columns, increasing)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector, highest power first unless `increasing`; int64 for
    integers.

    Raises:
        ShapeError: no vector, or a negative `N`.
    """
    if len(dims_of(x)) != 1 or (N is not None and N < 0):
        raise ShapeError(
            f"vander: expected a vector and N >= 0, got {dims_of(x)} and {N}{at_user_line()}"
        )
    return _vander.on(kind_of(x), counted(x), columns=N, increasing=increasing)
