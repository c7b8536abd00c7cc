"""State that differs between ranks: a piece of a global array, a value per rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.eager.tensor.interchange.serialization import array_of, is_tensor, tensor_of
from weft.errors import ShapeError
from weft.formats.checkpoint_folder.state import PIECE, RANK, SLICE
from weft.ir.shape import show
from weft.ops.refusal import guard_making
from weft.transport.division import division_of

__all__ = ["PerRank", "Slice"]


@dataclass(frozen=True)
class Slice:
    """A piece of a global array: each rank saves its own, any number of ranks can restore them.

    Args:
        tensor: the piece; `restore` copies into it.
        shape: of the global array.
        start: the offset of the piece in each dimension.

    Raises:
        ShapeError: the piece lies outside the array.

    >>> import weft as wf
    >>> wf.checkpoint.Slice(wf.ones(2, 3), (8, 3), (4, 0)).place
    (slice(4, 6, None), slice(0, 3, None))
    """

    tensor: Any
    shape: tuple[int, ...]
    start: tuple[int, ...]

    def __post_init__(self) -> None:
        sizes = tuple(self.tensor.shape)
        fits = len(sizes) == len(self.shape) == len(self.start)
        if not fits or any([not 0 <= s.start <= s.stop <= n for s, n in self._ends()]):
            raise ShapeError(
                f"Slice: expected a piece within {show(tuple(self.shape))}, "
                f"got {show(sizes)} at {tuple(self.start)}"
            )

    def _ends(self) -> list[tuple[slice, int]]:
        return list(zip(self.place, self.shape, strict=True))

    @property
    def place(self) -> tuple[slice, ...]:
        """The place of the piece, as an index of the global array."""
        sizes = zip(self.start, self.tensor.shape, strict=False)
        return tuple([slice(a, a + n) for a, n in sizes])


@dataclass(frozen=True)
class PerRank:
    """A value that each rank saves and restores separately: random state, position in the data.

    Restored on another number of ranks, it is not changed, with a warning.
    """

    value: Any


@dataclass(frozen=True)
class _Kept:
    """Saved by ranks other than 0, too."""

    tensor: Any


def unfolding(rank: int, has_state: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """What a rank saves of an object; only rank 0 saves what is the same on all ranks."""

    def unfold(x: Any) -> Any:
        if isinstance(x, Slice):
            return {SLICE: [list(x.shape), list(x.start)], PIECE: _Kept(x.tensor)}
        if isinstance(x, PerRank):
            return {RANK: _kept(x.value, has_state)}
        if isinstance(x, _Kept):
            return x.tensor
        if has_state(x):
            return x.state_dict()
        return None if rank > 0 and is_tensor(x) else x

    return unfold


def _kept(x: Any, has_state: Callable[[Any], bool]) -> Any:
    if has_state(x):
        x = x.state_dict()
    if isinstance(x, Mapping):
        return {key: _kept(one, has_state) for key, one in x.items()}
    if isinstance(x, list | tuple):
        return type(x)([_kept(one, has_state) for one in x])
    return _Kept(x) if is_tensor(x) else x


def piece_of(whole: Any, wanted: Slice) -> Any:
    """The part of a global array that a slice covers."""
    return tensor_of(np.array(array_of(whole)[wanted.place], order="C"))


def sliced(value: Any, like: Any) -> Any:
    """A tensor as a `Slice`, at the place of another one, a rank's part of a global tensor.

    The tensor itself if the other is not a part, or of another shape.
    """
    division = division_of(like)
    if division is None or not is_tensor(value) or tuple(value.shape) != tuple(like.shape):
        return value
    return Slice(value, division.shape, division.start)


def own_part(value: Any, like: Any) -> Any:
    """The part of a global tensor that another tensor covers; other values unchanged."""
    if isinstance(value, Slice):
        return value.tensor
    division = division_of(like)
    if division is None or tuple(getattr(value, "shape", ())) != division.shape:
        return value
    return value[division.place(like.shape)]


for _kind in (PerRank, Slice):
    guard_making(_kind)
