"""Where a part of a partitioned variable lies in the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class SaveSliceInfo:
    """The place of a part in a partitioned variable, by which it is saved and restored.

    Args:
        full_name: the name of the whole.
        full_shape: its shape.
        var_offset: the index of the part's first element.
        var_shape: the shape of the part.
    """

    def __init__(
        self, full_name: str, full_shape: Sequence[int], var_offset: Sequence[int],
        var_shape: Sequence[int],
    ) -> None:  # fmt: skip
        self.full_name = full_name
        self.full_shape = list(full_shape)
        self.var_offset = list(var_offset)
        self.var_shape = list(var_shape)

    @property
    def spec(self) -> str:
        """The place as TensorFlow writes it: `10 4 5,5:0,4`."""
        pairs = zip(self.var_offset, self.var_shape, strict=True)
        places = ":".join([f"{start},{size}" for start, size in pairs])
        return " ".join([*map(str, self.full_shape), places])

    @property
    def piece(self) -> tuple[tuple[int, int], ...]:
        """First index and length along each axis."""
        return tuple(zip(self.var_offset, self.var_shape, strict=True))

    @property
    def window(self) -> tuple[slice, ...]:
        """The part as an index of the whole."""
        places = zip(self.var_offset, self.var_shape, strict=True)
        return tuple(slice(start, start + size) for start, size in places)


class PartitionInfo:
    """What an initializer may know of the part that it fills.

    Args:
        full_shape: the shape of the whole variable.
        var_offset: the index of the part's first element.
    """

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        self.full_shape = list(full_shape)
        self.var_offset = list(var_offset)

    def single_offset(self, shape: Sequence[int]) -> int:
        """The first index along the divided axis, for a part of this shape."""
        return self.var_offset[self.single_slice_dim(shape) or 0]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis along which a part of this shape is less than the whole, if any."""
        pairs = zip(shape, self.full_shape, strict=True)
        return next((axis for axis, (part, whole) in enumerate(pairs) if part != whole), None)


def even_parts(
    shape: Sequence[int], count: int, axis: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Offsets and shapes of `count` parts along an axis; the first ones take what is left over.

    >>> list(even_parts([5, 2], 2, 0))
    [([0, 0], [3, 2]), ([3, 0], [2, 2])]
    """
    small, more = divmod(shape[axis], count)
    start = 0
    for part in range(count):
        size = small + (part < more)
        offset, dims = [0] * len(shape), list(shape)
        offset[axis], dims[axis] = start, size
        yield offset, dims
        start += size
