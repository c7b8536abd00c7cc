"""Batches of `Example`s parsed at once.

Records of one file mostly differ in their values alone: names, lengths and types stand at the same
bytes. So the first record is parsed field by field; it gives a layout, and all records of its
length that agree with it wherever no value stands are read as columns of one array of bytes. What
agrees with no layout is parsed on its own.
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

MOST_LAYOUTS: Final = 64  # that are remembered
NEW_LAYOUTS: Final = 8  # that are made for one batch; files without a layout cost no more
_FREE, _CONTINUED, _LAST = 0x00, 0x80, 0xFE


class Piece(NamedTuple):
    """Where values stand in a record: `size` bytes from `start`."""

    kind: int
    start: int
    size: int


class Layout(NamedTuple):
    """Where what stands in records that look alike.

    Attributes:
        places: bytes that must be as in `record`, apart from the bits that `mask` leaves out.
        mask: of those bytes.
        record: those bytes, masked.
        pieces: of each feature.
        sizes: of the integers in each piece, in bytes, by where the piece starts.
    """

    places: np.ndarray
    mask: np.ndarray
    record: np.ndarray
    pieces: dict[str, list[Piece]]
    sizes: dict[int, np.ndarray]


class ExampleParser:
    """Parses batches of serialised `Example`s.

    Args:
        expected: what is expected of each feature, by its name; others are passed over.

    Raises:
        DTypeError: a type that no record can hold.

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
        """The features of these records: arrays with the records first, or `Ragged`.

        Raises:
            DataError: a record is damaged, lacks a feature or has another one than expected.
        """
        columns = self._columns()
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        budget = NEW_LAYOUTS
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            budget -= self._parse(columns, records, length, rows, budget)
        return {column.name: column.result(len(records)) for column in columns}

    def _columns(self) -> list[Column]:
        return [Column(name, expected) for name, expected in self.expected.items()]

    def _parse(
        self,
        columns: list[Column],
        records: Sequence[bytes],
        length: int,
        rows: np.ndarray,
        new: int,
    ) -> int:
        """Put records of one length into the columns; how many new layouts that took."""
        known = self._layouts.get(length, [])
        if not length or (not known and len(rows) < 2):
            self._parse_alone(columns, records, rows)
            return 0
        same = records if len(rows) == len(records) else [records[row] for row in rows.tolist()]
        raw = b"".join(same)
        block = np.frombuffer(raw, np.uint8).reshape(len(rows), length)
        for layout in known:
            rows, block = _read(columns, layout, records, rows, block)
        made = 0
        while len(rows) and made < new:
            layout = _layout(records[rows[0]], _found(records[rows[0]], int(rows[0])), columns)
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

    def _parse_alone(
        self, columns: list[Column], records: Sequence[bytes], rows: np.ndarray
    ) -> None:
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
    """The layout of a record, where all that is expected is in it in the usual way."""
    pieces: dict[str, list[Piece]] = {}
    for name, feature in found.items():
        if feature.kind:
            pieces[name] = [_piece(feature.kind, field) for field in feature.pieces]
    for column in columns:
        if not _usual(found.get(column.name), column.kind):
            return None
    mask = np.full(len(record), 0xFF, np.uint8)
    sizes: dict[int, np.ndarray] = {}
    for piece in [piece for of_one in pieces.values() for piece in of_one]:
        where = slice(piece.start, piece.start + piece.size)
        if piece.kind == INTEGERS:
            mask[where] = _CONTINUED
            sizes[piece.start] = _integer_sizes(record[where])
            last = piece.start + np.cumsum(sizes[piece.start]) - 1
            mask[last[sizes[piece.start] == wire.LONGEST_VARINT]] = _LAST
        else:
            mask[where] = _FREE
    places = np.flatnonzero(mask)
    mask = mask[places]
    return Layout(places, mask, np.frombuffer(record, np.uint8)[places] & mask, pieces, sizes)


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


def _integer_sizes(raw: bytes) -> np.ndarray:
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) < _CONTINUED)
    return np.diff(ends, prepend=-1)


def _read(
    columns: list[Column],
    layout: Layout,
    records: Sequence[bytes],
    rows: np.ndarray,
    block: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Put the records that have a layout into the columns; the others are returned."""
    if not len(rows):
        return rows, block
    fit = ((block[:, layout.places] & layout.mask) == layout.record).all(axis=1)
    if not fit.all():
        rest = rows[~fit], block[~fit]
        rows, block = rows[fit], block[fit]
    else:
        rest = rows[:0], block[:0]
    if len(rows):
        for column in columns:
            pieces = layout.pieces.get(column.name)
            if pieces is None:
                column.put_missing(rows)
            else:
                found = _block(column, pieces, layout, records, rows, block)
                column.put(rows, found)
    return rest


def _block(
    column: Column,
    pieces: list[Piece],
    layout: Layout,
    records: Sequence[bytes],
    rows: np.ndarray,
    block: np.ndarray,
) -> np.ndarray:
    """The values of one feature: `[record, value]`."""
    if column.kind == BYTES and not isinstance(column.expected, RawFeature):
        out = np.empty((len(rows), len(pieces)), object)
        for number, (_, start, size) in enumerate(pieces):
            out[:, number] = [records[row][start : start + size] for row in rows.tolist()]
        return out
    if column.kind == INTEGERS:
        return _integers(block, pieces[0], layout.sizes[pieces[0].start])
    parts = [block[:, start : start + size] for _, start, size in pieces]
    part = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
    if column.kind == FLOATS:
        return part.view("<f4").astype(np.float32, copy=False)
    if part.shape[1] != column.count * column.dtype.itemsize:
        _raw(column, part[0].tobytes(), int(rows[0]))
    return part.view(column.dtype)


def _integers(block: np.ndarray, piece: Piece, sizes: np.ndarray) -> np.ndarray:
    part = block[:, piece.start : piece.start + piece.size]
    if piece.size == len(sizes):
        return part.astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    out = np.zeros((len(block), len(sizes)), np.uint64)
    for place in range(int(sizes.max(initial=0))):
        longer = sizes > place
        digit = (part[:, starts[longer] + place] & 127).astype(np.uint64)
        out[:, longer] |= digit << np.uint64(7 * place)
    return out.view(np.int64)
