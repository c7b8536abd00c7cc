"""Splits tensors: slices and parts along an axis, as views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from weft.eager.functions.indexing.subscript import get
from weft.eager.tensor.argument import axis_of, dims_of, either, integer
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.dtype import int64

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "chunk", "dsplit", "hsplit", "narrow", "select", "split", "split_with_sizes",
    "tensor_split", "unbind", "unstack", "vsplit",
]  # fmt: skip


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
        raise OutOfRangeError.here(
            f"narrow: expected a part of 0 to {size} on dim {at}, got {begin} to {begin + count}"
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
            raise ShapeError.here(f"split: expected a size above 0, got {given}")
        bounds = [*range(0, size, given or 1), size] if size else [0, 0]
        return _pieces(x, bounds, at)
    counts = [integer("split", n) for n in given]
    if sum(counts) != size:
        raise ShapeError.here(f"split: expected sizes that add up to {size}, got {counts}")
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
        raise ShapeError.here(f"chunk: expected at least one chunk, got {chunks}")
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
        raise ShapeError.here("tensor_split: expected at least one dim, got none")
    names = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    told = [each for each in names if each is not None]
    if len(told) != 1:
        raise DTypeError.here("tensor_split: expected either places or a number of parts")
    (given,) = told
    if isinstance(given, Handle):
        if given.lazy.type.dtype is not int64:
            text_ = f"expected places of int64, got {given.lazy.type.dtype}"
            raise DTypeError.here(f"tensor_split: {text_}")
        given = given.array.tolist()
    if isinstance(given, int):
        if given < 1:
            raise ShapeError.here(f"tensor_split: expected at least one part, got {given}")
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
        raise ShapeError.here(f"{name}: expected rank {rank} or more, got {len(dims)}")
    if isinstance(given, int) and given > 0 and dims[axis] % given:
        raise ShapeError.here(
            f"{name}: expected a number of parts that divides {dims[axis]}, got {given}"
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
