"""`r_` and `c_`: arrays concatenated by subscripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.numpy.convert import array_like
from weft.numpy.creation import arange, linspace
from weft.numpy.manipulation import atleast_1d, concat

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = ["c_", "r_"]


def _piece(entry: Any) -> Any:
    """A part of the result: an array, or the numbers of a slice."""
    if not isinstance(entry, slice):
        return array_like(entry)
    start, step = entry.start or 0, 1 if entry.step is None else entry.step
    if isinstance(step, complex):
        return linspace(start, entry.stop, int(abs(step)))
    return arange(start, entry.stop, step)


class _Rows:
    """`r_[a, b, 1:4]`: concatenates along the first axis."""

    def __getitem__(self, key: Any) -> ndarray:
        parts = [_piece(e) for e in (key if isinstance(key, tuple) else (key,))]
        return concat([atleast_1d(x) for x in parts], axis=0)


class _Columns:
    """`c_[a, b]`: concatenates along the last axis; vectors are columns."""

    def __getitem__(self, key: Any) -> ndarray:
        parts = [_piece(e) for e in (key if isinstance(key, tuple) else (key,))]
        return concat([x.reshape((-1, 1)) if x.ndim < 2 else x for x in parts], axis=-1)


r_: Final = _Rows()
c_: Final = _Columns()
