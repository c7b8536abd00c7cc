"""Parses batches of `Example`s at once.

Records of one file mostly differ in their values alone: names, lengths and types are at the same
offsets. So the first record is parsed field by field, which gives a layout. All records of its
length that agree with it outside the values are read as columns of one byte array. Records that
match no layout are parsed one by one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.formats import wire
from weft.formats.example import BYTES, FLOATS, INTEGERS, KINDS, Feature, features, values
from weft.formats.example_spec import Column, Expected, Ragged, RawFeature
from weft.formats.packed import Packed

MOST_LAYOUTS: Final = 64  # maximum cached layouts
NEW_LAYOUTS: Final = 8  # maximum new layouts per batch; files without a common layout cost no more
_FREE, _CONTINUED, _LAST, _WHOLE = 0x00, 0x80, 0xFE, 0xFF


class Piece(NamedTuple):
    """The position of values in a record: `size` bytes from `start`."""

    kind: int
    start: int
    size: int


class Integers(NamedTuple):
    """Consecutive varints: where each begins, and the shift of each byte."""

    starts: np.ndarray
    shifts: np.ndarray

    @classmethod
    def of(cls, raw: bytes) -> Integers:
        """The integers in these bytes."""
        ends = np.flatnonzero(np.frombuffer(raw, np.uint8) < _CONTINUED)
        sizes = np.diff(ends, prepend=-1)
        starts = ends + 1 - sizes
        places = np.arange(len(raw)) - np.repeat(starts, sizes)
        return cls(starts, (7 * places).astype(np.uint64))

    @property
    def longest(self) -> np.ndarray:
        """The last bytes of varints of the maximum length."""
        return np.flatnonzero(self.shifts == 7 * (wire.LONGEST_VARINT - 1))


class Run(NamedTuple):
    """Consecutive bytes in which all records of a layout have the same bits.

    Attributes:
        place: their offset in a record.
        content: these bytes, masked.
        mask: the bits to compare; `None` for all.
    """

    place: slice
    content: np.ndarray
    mask: np.ndarray | None


class Layout(NamedTuple):
    """The common layout of records.

    Attributes:
        runs: bytes that must be the same in all of them.
        pieces: of each feature.
        integers: of each piece that has some, by its start.
    """

    runs: list[Run]
    pieces: dict[str, list[Piece]]
    integers: dict[int, Integers]


class ExampleParser:
    """Parses batches of serialized `Example`s.

    Args:
        expected: the specification of each feature, by name; others are ignored.

    Raises:
        DTypeError: a type that records cannot hold.

    >>> from weft.formats.example import encode
    >>> from weft.formats.example_spec import FixedLenFeature
    >>> parse = ExampleParser({"x": FixedLenFeature([2], "float32")})
    >>> parse([encode({"x": [0.5, 1.5]}), encode({"x": [2.5, 3.5]})])["x"]
    array([[0.5, 1.5],
           [2.5, 3.5]], dtype=float32)
    """

    def __init__(self, expected: Mapping[str, Expected]) -> None:
        self.expected = dict(expected)
        self._layouts: OrderedDict[int, list[Layout]] = OrderedDict()
        self._columns()

    def __call__(self, records: Sequence[bytes]) -> dict[str, np.ndarray | Ragged]:
        """The features of these records: arrays whose first axis is the record, or `Ragged`.

        Args:
            records: fastest as `Packed`.

        Raises:
            DataError: a record is damaged, lacks a feature, or has one of another kind.
        """
        packed = records if isinstance(records, Packed) else Packed.of(records)
        columns = self._columns()
        budget = NEW_LAYOUTS
        for length, rows in packed.by_length():
            budget -= self._parse(columns, packed, length, rows, budget)
        return {column.name: column.result(len(packed)) for column in columns}

    def _columns(self) -> list[Column]:
        return [Column(name, expected) for name, expected in self.expected.items()]

    def _parse(
        self, columns: list[Column], records: Packed, length: int, rows: np.ndarray, new: int,
    ) -> int:  # fmt: skip
        """Parses records of one length into the columns; returns how many new layouts that took."""
        known = self._layouts.get(length, [])
        if not length or (not known and len(rows) < 2):
            self._parse_alone(columns, records, rows)
            return 0
        block = records.rows(rows, length)
        for layout in known:
            rows, block = _read(columns, layout, records, rows, block)
        made = 0
        while len(rows) and made < new:
            first = records[rows[0]]
            layout = _layout(first, _found(first, int(rows[0])), columns)
            if layout is None:
                self._parse_alone(columns, records, rows[:1])
                rows, block = rows[1:], block[1:]
            else:
                self._remember(length, layout)
                rows, block = _read(columns, layout, records, rows, block)
            made += 1
        self._parse_alone(columns, records, rows)
        return made

    def _remember(self, length: int, layout: Layout) -> None:
        self._layouts.setdefault(length, []).append(layout)
        if sum(map(len, self._layouts.values())) > MOST_LAYOUTS:
            self._layouts.popitem(last=False)

    def _parse_alone(self, columns: list[Column], records: Packed, rows: np.ndarray) -> None:
        for row in rows.tolist():
            found = _found(records[row], row)
            for column in columns:
                feature = found.get(column.name)
                if feature is None or not feature.kind:
                    column.put_missing(np.array([row]))
                else:
                    _put_alone(column, feature, row)


def _found(record: bytes, row: int) -> dict[str, Feature]:
    try:
        return features(record)
    except DataError as error:
        raise DataError(f"parse_example: record {row}: {error}") from None


def _put_alone(column: Column, feature: Feature, row: int) -> None:
    if feature.kind != column.kind:
        expected, got = KINDS[column.kind], KINDS[feature.kind]
        raise column.wrong(row, f"expected {expected}, got {got}")
    try:
        found = values(feature)
    except DataError as error:
        raise column.wrong(row, str(error)) from None
    if isinstance(column.expected, RawFeature):
        found = _raw(column, b"".join(found), row)
    block = np.empty((1, len(found)), column.dtype)
    block[0] = found
    column.put(np.array([row]), block)


def _raw(column: Column, content: bytes, row: int) -> np.ndarray:
    if len(content) != column.count * column.dtype.itemsize:
        expected = f"{column.count * column.dtype.itemsize} bytes for {column.shape}"
        raise column.wrong(row, f"expected {expected} of {column.dtype}, got {len(content)}")
    return np.frombuffer(content, column.dtype)


# -- layouts


def _layout(record: bytes, found: dict[str, Feature], columns: list[Column]) -> Layout | None:
    """The layout of a record, if everything expected is in it in the usual encoding."""
    pieces: dict[str, list[Piece]] = {}
    for name, feature in found.items():
        if feature.kind:
            pieces[name] = [_piece(feature.kind, field) for field in feature.pieces]
    for column in columns:
        if not _usual(found.get(column.name), column.kind):
            return None
    mask = np.full(len(record), _WHOLE, np.uint8)
    integers: dict[int, Integers] = {}
    for piece in [piece for of_one in pieces.values() for piece in of_one]:
        where = slice(piece.start, piece.start + piece.size)
        if piece.kind == INTEGERS:
            mask[where] = _CONTINUED
            integers[piece.start] = inside = Integers.of(record[where])
            mask[piece.start + inside.longest] = _LAST
        else:
            mask[where] = _FREE
    return Layout(_runs(np.frombuffer(record, np.uint8), mask), pieces, integers)


def _runs(record: np.ndarray, mask: np.ndarray) -> list[Run]:
    """The bytes that are the same in all records."""
    edges = np.flatnonzero(np.diff(mask != _FREE, prepend=False, append=False))
    found: list[Run] = []
    for start, stop in edges.reshape(-1, 2).tolist():
        place = slice(start, stop)
        part = None if (mask[place] == _WHOLE).all() else mask[place]
        found.append(Run(place, record[place] & mask[place], part))
    return found


def _usual(feature: Feature | None, kind: int) -> bool:
    """Whether a feature is missing, or well formed with all its numbers in one piece."""
    if feature is None or not feature.kind or feature.kind == kind == BYTES:
        return True
    try:
        return feature.kind == kind and len(feature.pieces) == 1 and len(values(feature)) >= 0
    except DataError:
        return False


def _piece(kind: int, field: wire.Field) -> Piece:
    """The bytes of a field's value."""
    if field.kind == wire.DELIMITED:
        return Piece(kind, field.offset, len(field.value))
    size = 4 if field.kind == wire.FIXED32 else 8
    if field.kind == wire.VARINT:
        size = len(wire.varint(field.value))
    return Piece(kind, field.offset, size)


def _read(
    columns: list[Column], layout: Layout, records: Packed, rows: np.ndarray, block: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Reads the records that have a layout into the columns; returns the others."""
    if not len(rows):
        return rows, block
    rest = rows[:0], block[:0]
    odd = _unlike(layout, block)
    if odd is not None:
        rest = rows[odd], block[odd]
        rows, block = rows[~odd], block[~odd]
    if len(rows):
        for column in columns:
            pieces = layout.pieces.get(column.name)
            if pieces is None:
                column.put_missing(rows)
            else:
                found = _block(column, pieces, layout, records, rows, block)
                column.put(rows, found)
    return rest


def _unlike(layout: Layout, block: np.ndarray) -> np.ndarray | None:
    """The rows that do not match a layout; `None` for no row."""
    found = None
    for place, content, mask in layout.runs:
        part = block[:, place]
        unlike = part != content if mask is None else (part & mask) != content
        if unlike.any():
            odd = unlike.any(axis=1)
            found = odd if found is None else found | odd
    return found


def _block(
    column: Column, pieces: list[Piece], layout: Layout, records: Packed, rows: np.ndarray,
    block: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The values of one feature: `[record, value]`."""
    if column.kind == BYTES and not isinstance(column.expected, RawFeature):
        out = np.empty((len(rows), len(pieces)), object)
        for number, (_, start, size) in enumerate(pieces):
            out[:, number] = [records[row][start : start + size] for row in rows.tolist()]
        return out
    if column.kind == INTEGERS:
        return _integers(block, pieces[0], layout.integers[pieces[0].start])
    parts = [block[:, start : start + size] for _, start, size in pieces]
    part = parts[0].copy() if len(parts) == 1 else np.concatenate(parts, axis=1)
    if column.kind == FLOATS:
        return part.view("<f4").astype(np.float32, copy=False)
    if part.shape[1] != column.count * column.dtype.itemsize:
        _raw(column, part[0].tobytes(), int(rows[0]))
    return part.view(column.dtype)


def _integers(block: np.ndarray, piece: Piece, integers: Integers) -> np.ndarray:
    part = block[:, piece.start : piece.start + piece.size]
    if piece.size == len(integers.starts):  # one byte each
        return part.astype(np.int64)
    digits = (part & 127).astype(np.uint64) << integers.shifts
    return np.add.reduceat(digits, integers.starts, axis=1).view(np.int64)
