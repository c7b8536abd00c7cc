"""Expected features of the `Example`s in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DataError, DTypeError
from weft.formats.example import BYTES, FLOATS, INTEGERS, KINDS

__all__ = ["FixedLenFeature", "FixedLenSequenceFeature", "RawFeature", "VarLenFeature"]

_BY_NAME: Final = {
    "float32": FLOATS, "int64": INTEGERS, "bytes": BYTES, "str": BYTES, "string": BYTES,
    "object": BYTES,
}  # fmt: skip


class FixedLenFeature(NamedTuple):
    """A fixed number of values per record; `default_value` if a record lacks them.

    Attributes:
        shape: of the values of one record; a number is one axis.
        dtype: float32, int64 or bytes, as a type or its name.
        default_value: a number, string, or values of that shape; `None` requires the feature.
    """

    shape: Sequence[int] | int
    dtype: Any
    default_value: Any = None


def sizes(shape: Sequence[int] | int) -> tuple[int, ...]:
    """A shape as a tuple; a number is one axis."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


class VarLenFeature(NamedTuple):
    """Any number of values, returned as a `Ragged`.

    Attributes:
        dtype: of the values: int64, float32 or string.
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """Any number of steps of a shape, padded to the longest of the batch.

    Attributes:
        shape: of one step; a number is one axis.
        dtype: float32, int64 or bytes.
        allow_missing: whether a record may lack the feature, which then has no steps.
        default_value: padding of shorter records; 0 or no bytes by default.
    """

    shape: Sequence[int] | int
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class RawFeature(NamedTuple):
    """An array stored as raw bytes, as by `tobytes()`.

    Attributes:
        shape: of the array of one record.
        dtype: NumPy's type of its elements.
    """

    shape: Sequence[int] | int
    dtype: Any


Expected = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RawFeature


class Ragged(NamedTuple):
    """Rows of different lengths, one after the other.

    Attributes:
        values: of all rows.
        lengths: of the rows.
    """

    values: np.ndarray
    lengths: np.ndarray


def kind_of(name: str, expected: Expected) -> int:
    """The kind of list in which a feature is stored.

    Raises:
        DTypeError: records cannot hold its type.
    """
    if isinstance(expected, RawFeature):
        return BYTES
    dtype: Any = expected.dtype
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    if text not in _BY_NAME:
        raise DTypeError(
            f"parse_example: feature {name!r}: expected float32, int64 or bytes, got {text}"
        )
    return _BY_NAME[text]


class Column:
    """The values of one feature, collected from the records of a batch in blocks of equal counts.

    Args:
        name: of the feature.
        expected: its specification.
    """

    def __init__(self, name: str, expected: Expected) -> None:
        self.name = name
        self.expected = expected
        self.kind = kind_of(name, expected)
        shape = () if isinstance(expected, VarLenFeature) else sizes(expected.shape)
        self.shape = shape
        self.count = math.prod(shape)
        self.dtype = np.dtype(object if self.kind == BYTES else KINDS[self.kind])
        if isinstance(expected, RawFeature):
            self.dtype = np.dtype(expected.dtype)
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = []

    def put(self, rows: np.ndarray, block: np.ndarray) -> None:
        """Adds values of these records, `[record, value]`.

        Raises:
            DataError: the number of values is not as expected.
        """
        expected, got, record = self.expected, block.shape[1], int(rows[0])
        if isinstance(expected, FixedLenFeature | RawFeature) and got != self.count:
            raise self.wrong(record, f"expected {self.count} values for {self.shape}, got {got}")
        if isinstance(expected, FixedLenSequenceFeature) and got % max(self.count, 1):
            raise self.wrong(record, f"expected steps of {self.count} values, got {got}")
        self.blocks.append((rows, block))

    def put_missing(self, rows: np.ndarray) -> None:
        """Adds records that lack the feature.

        Raises:
            DataError: it is required.
        """
        expected = self.expected
        if isinstance(expected, FixedLenFeature) and expected.default_value is not None:
            filled = self._filled(1)
        elif isinstance(expected, VarLenFeature) or (
            isinstance(expected, FixedLenSequenceFeature) and expected.allow_missing
        ):
            filled = np.empty((1, 0), self.dtype)
        else:
            raise self.wrong(int(rows[0]), "it is missing, and has no default_value")
        self.blocks.append((rows, np.broadcast_to(filled, (len(rows), filled.shape[1]))))

    def wrong(self, record: int, why: str) -> DataError:
        """The error for a record whose feature is not as expected."""
        return DataError(f"parse_example: record {record}: feature {self.name!r}: {why}")

    def result(self, count: int) -> np.ndarray | Ragged:
        """The values of all `count` records."""
        if isinstance(self.expected, FixedLenFeature | RawFeature):
            return self._stacked(count, self.count).reshape(count, *self.shape)
        lengths = np.zeros(count, np.int64)
        for rows, block in self.blocks:
            lengths[rows] = block.shape[1]
        if isinstance(self.expected, VarLenFeature):
            return self._ragged(lengths)
        steps = int(lengths.max(initial=0)) // max(self.count, 1)
        out = self._stacked(count, steps * self.count)
        return out.reshape(count, steps, *self.shape)

    def _stacked(self, count: int, width: int) -> np.ndarray:
        if len(self.blocks) == 1 and self.blocks[0][1].shape == (count, width):
            return self.blocks[0][1]
        out = np.empty((count, width), self.dtype)
        if isinstance(self.expected, FixedLenSequenceFeature):
            out[:] = self._filled(width)
        for rows, block in self.blocks:
            out[rows, : block.shape[1]] = block
        return out

    def _filled(self, width: int) -> np.ndarray:
        """A row of the default value."""
        default: Any = getattr(self.expected, "default_value", None)
        if default is None:
            default = b"" if self.kind == BYTES else 0
        if self.kind == BYTES:
            flat = np.asarray(default, object).reshape(-1).tolist()
            default = [v.encode() if isinstance(v, str) else v for v in flat]
        row = np.asarray(default, self.dtype).reshape(1, -1)
        size = width if isinstance(self.expected, FixedLenSequenceFeature) else self.count
        if row.shape[1] not in (1, size):
            got = row.shape[1]
            raise DTypeError(
                f"parse_example: feature {self.name!r}: default_value: expected {size} values, "
                f"got {got}"
            )
        return np.broadcast_to(row, (1, size))

    def _ragged(self, lengths: np.ndarray) -> Ragged:
        if len(self.blocks) == 1:
            return Ragged(self.blocks[0][1].reshape(-1), lengths)
        values = np.empty(int(lengths.sum()), self.dtype)
        starts = np.cumsum(lengths) - lengths
        for rows, block in self.blocks:
            values[starts[rows][:, None] + np.arange(block.shape[1])] = block
        return Ragged(values, lengths)
