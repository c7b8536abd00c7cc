"""Features by name: bags of ids, and columns of results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, ShapeError

__all__ = ["KeyedJaggedTensor", "KeyedTensor"]

Array = np.ndarray[Any, Any]


class KeyedJaggedTensor:
    """Bags of ids of several features.

    Args:
        keys: the features.
        values: the ids, those of a feature one after the other, by bag.
        lengths: how many ids each bag has, (features * bags).
        offsets: where each bag begins, and the end, instead of lengths.
        weights: what each id counts, float32, of the shape of the values; 1 by default.

    Example:
        >>> import weft as wf
        >>> bags = wf.nn.KeyedJaggedTensor(["user", "item"], [3, 5, 7, 7], lengths=[1, 1, 0, 2])
        >>> bags.bags
        2
    """

    def __init__(
        self, keys: Iterable[str], values: Any, lengths: Any = None, offsets: Any = None,
        weights: Any = None,
    ) -> None:  # fmt: skip
        self.keys: Final = list(keys)
        self.values: Final = _ids(values)
        if (lengths is None) == (offsets is None):
            raise ArgumentError.here("KeyedJaggedTensor: expected lengths or offsets")
        given = _ids(offsets if lengths is None else lengths)
        self.offsets: Final = given if lengths is None else np.append(0, np.cumsum(given))
        self.weights: Final = None if weights is None else floats_of(weights)
        count, total = self.offsets.size - 1, self.values.size
        ends = (int(self.offsets[0]), int(self.offsets[-1])) if count >= 0 else (0, -1)
        if not self.keys or count % len(self.keys) or ends != (0, total):
            raise ShapeError.here(
                f"KeyedJaggedTensor: expected as many bags for each of {len(self.keys)} features, "
                f"with {total} ids in all, got {count} bags and ids {ends[0]} to {ends[1]}"
            )
        if (np.diff(self.offsets) < 0).any():
            raise ShapeError.here("KeyedJaggedTensor: expected offsets that do not fall")
        if self.weights is not None and self.weights.shape != self.values.shape:
            raise ShapeError.here(
                f"KeyedJaggedTensor: expected weights {self.values.shape}, got {self.weights.shape}"
            )

    @property
    def bags(self) -> int:
        """How many each feature has."""
        return (self.offsets.size - 1) // len(self.keys)

    def permuted(self, keys: Sequence[str]) -> KeyedJaggedTensor:
        """The same bags of these features, in this order.

        Args:
            keys: some of the features.
        """
        if list(keys) == self.keys:
            return self
        place = {key: number for number, key in enumerate(self.keys)}
        missing = [key for key in keys if key not in place]
        if missing:
            raise ArgumentError.here(
                f"KeyedJaggedTensor: expected features among {', '.join(self.keys)}, "
                f"got {missing[0]!r}"
            )
        parts = [slice(place[k] * self.bags, (place[k] + 1) * self.bags + 1) for k in keys]
        bounds = [self.offsets[part] for part in parts]
        ids = np.concatenate([self.values[b[0] : b[-1]] for b in bounds])
        lengths = np.concatenate([np.diff(b) for b in bounds])
        weights = None
        if self.weights is not None:
            weights = np.concatenate([self.weights[b[0] : b[-1]] for b in bounds])
        return KeyedJaggedTensor(keys, ids, lengths, weights=weights)

    @classmethod
    def of(cls, features: Mapping[str, Any]) -> KeyedJaggedTensor:
        """Bags by feature.

        Args:
            features: integers (bags, size), or a pair of integers (n) and offsets (bags).
        """
        values: list[Array] = []
        lengths: list[Array] = []
        for ids in features.values():
            if isinstance(ids, tuple):
                flat, starts = (_ids(x) for x in ids)
                values.append(flat)
                lengths.append(np.diff(np.append(starts, flat.size)))
            else:
                whole = array_of(ids)
                if whole.ndim != 2:
                    raise ShapeError.here(
                        f"EmbeddingBagCollection: expected ids (bags, size), or (ids, offsets), "
                        f"got {whole.shape}"
                    )
                values.append(_ids(whole))
                lengths.append(np.full(whole.shape[0], whole.shape[1], np.int64))
        return cls(features, np.concatenate(values), np.concatenate(lengths))


class KeyedTensor:
    """Results by feature: columns of one tensor.

    Args:
        keys: the features.
        length_per_key: how many columns each has.
        values: (bags, columns).
    """

    def __init__(self, keys: Sequence[str], length_per_key: Sequence[int], values: Any) -> None:
        self.keys: Final = list(keys)
        self.length_per_key: Final = list(length_per_key)
        self.values: Final = values
        starts = np.append(0, np.cumsum(self.length_per_key)).tolist()
        self._columns = dict(zip(self.keys, itertools.pairwise(starts), strict=True))

    def __getitem__(self, key: str) -> Any:
        """The columns of a feature."""
        begin, end = self._columns[key]
        return self.values[:, begin:end]

    def to_dict(self) -> dict[str, Any]:
        """The columns of each feature."""
        return {key: self[key] for key in self.keys}


def array_of(x: Any) -> Array:
    """The array that a tensor, or anything like one, is."""
    return np.asarray(getattr(x, "array", x))


def _ids(x: Any) -> Array:
    array = array_of(x)
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentError.here(f"KeyedJaggedTensor: expected integers, got {array.dtype}")
    return np.ascontiguousarray(array.reshape(-1), np.int64)


def floats_of(x: Any) -> Array:
    """The same as contiguous float32."""
    return np.ascontiguousarray(array_of(x), np.float32)
