"""Records stored one after the other in one buffer, so that they are parsed without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np


class Packed(Sequence[bytes]):
    """Records, each converted to `bytes` on access.

    Args:
        raw: a contiguous array of bytes.
        starts: offsets of the records, in order.
        lengths: of the records.

    >>> records = Packed.of([b"one", b"three"])
    >>> records.lengths, records[1]
    (array([3, 5]), b'three')
    """

    def __init__(self, raw: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        self.raw, self.starts, self.lengths = raw, starts, lengths

    @classmethod
    def of(cls, records: Sequence[bytes]) -> Packed:
        """Packs separate records."""
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        raw = np.frombuffer(b"".join(records), np.uint8)
        return cls(raw, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def joined(cls, parts: Sequence[Packed]) -> Packed:
        """Concatenates several."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(part.raw) for part in parts]
        places = np.cumsum([0, *sizes])
        starts = [part.starts + place for part, place in zip(parts, places, strict=False)]
        lengths = [part.lengths for part in parts]
        raw = [part.raw for part in parts]
        return cls(*[np.concatenate(each) for each in (raw, starts, lengths)])

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Packed: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Packed(self.raw, self.starts[index], self.lengths[index])
        start = self.starts[index]
        return self.raw[start : start + self.lengths[index]].tobytes()

    def tolist(self) -> list[bytes]:
        """A list of `bytes`."""
        view = self.raw.data
        places = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [bytes(view[start : start + length]) for start, length in places]

    def array(self) -> np.ndarray:
        """An array of `bytes` objects."""
        found = np.empty(len(self), object)
        found[:] = self.tolist()
        return found

    def by_length(self) -> list[tuple[int, np.ndarray]]:
        """Each length, and the records that have it."""
        lengths = self.lengths
        if len(lengths) and (lengths == lengths[0]).all():
            return [(int(lengths[0]), np.arange(len(lengths)))]
        return [(each, np.flatnonzero(lengths == each)) for each in np.unique(lengths).tolist()]

    def rows(self, which: np.ndarray, length: int) -> np.ndarray:
        """Some of the records, all of this length, as rows of bytes; read-only.

        Not copied if they are evenly spaced.
        """
        starts = self.starts[which]
        step = int(starts[1] - starts[0]) if len(starts) > 1 else length
        if (starts[1:] - starts[:-1] == step).all():
            shape, strides = (len(starts), length), (step, 1)
            return np.ndarray(shape, np.uint8, self.raw, int(starts[0]), strides)
        view = self.raw.data
        whole = b"".join([view[start : start + length] for start in starts.tolist()])
        return np.frombuffer(whole, np.uint8).reshape(-1, length)
