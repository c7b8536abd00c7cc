"""Rows of CSV files (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.pipeline.file.reader import Reader
from weft.pipeline.file.text import Lines
from weft.pipeline.stage import State


class Column(NamedTuple):
    """How a field is converted: its NumPy type (object for strings) and its default."""

    kind: np.dtype[Any]
    default: Any = None  # None: a field must not be empty

    @classmethod
    def of(cls, given: Any) -> Column:
        """From a type, for a required field, or from a default value."""
        if isinstance(given, list | tuple | np.ndarray):
            given = given[0] if len(given) else str
        if isinstance(given, str | bytes):
            return cls(np.dtype(object), given if isinstance(given, str) else given.decode())
        if isinstance(given, bool | int | float | np.generic):
            kind = np.asarray(given).dtype
            return cls(np.dtype("f4" if kind == "f8" else "i4" if kind == "i8" else kind), given)
        kind = np.dtype(getattr(given, "numpy", getattr(given, "as_numpy_dtype", given)))
        return cls(np.dtype(object) if kind.kind in "USO" else kind)


class Layout(NamedTuple):
    """Options that all rows of a file share."""

    columns: Sequence[Column]
    header: bool = False
    delimiter: str = ","
    quotes: bool = True
    missing: str = ""
    select: Sequence[int] | None = None


class Rows(Reader):
    """The rows as tuples of values; its state is a byte offset and a line number.

    Raises:
        DataError: while reading, a row has too few or too many fields, or a field is not a number.
    """

    def __init__(self, path: str, layout: Layout, compression: str = "") -> None:
        self.lines = Lines(path, compression)
        self.layout = layout
        self.number = 0  # of lines that were read
        quoting = csv.QUOTE_MINIMAL if layout.quotes else csv.QUOTE_NONE
        self.rows = csv.reader(self._texts(), delimiter=layout.delimiter, quoting=quoting)
        if layout.header:
            next(self.rows, None)

    def _texts(self) -> Iterator[str]:
        while line := self.lines.raw():
            self.number += 1
            yield self.lines.decoded(line, self.lines.offset - len(line))

    def fields(self) -> list[str]:
        """The next row's fields as strings; empty lines are skipped."""
        while True:
            try:
                row = next(self.rows)
            except csv.Error as error:
                raise DataError(f"{self._where()}: {error}") from None
            if row:
                return row

    def _where(self) -> str:
        return f"{self.lines.path}, line {self.number}"

    def __next__(self) -> tuple[Any, ...]:
        row, layout = self.fields(), self.layout
        if layout.select is not None:
            if len(row) <= max(layout.select):
                text = f"expected a field {max(layout.select)}, got {len(row)} fields"
                raise DataError(f"{self._where()}: {text}")
            row = [row[i] for i in layout.select]
        if len(row) != len(layout.columns):
            text = f"expected {len(layout.columns)} fields, got {len(row)}"
            raise DataError(f"{self._where()}: {text}")
        return tuple(
            converted(text, column, layout.missing, f"{self._where()}, field {number}")
            for number, (text, column) in enumerate(zip(row, layout.columns, strict=True))
        )

    def state(self) -> State:
        """The byte offset and the line number."""
        return {"offset": self.lines.offset, "lines": self.number}

    def restore(self, state: State) -> None:
        """Go to a byte offset."""
        self.lines.restore({"offset": state["offset"]})
        self.number = state["lines"]

    def close(self) -> None:
        """Close the file."""
        lines: Lines | None = getattr(self, "lines", None)
        if lines is not None:
            lines.close()


def converted(text: str, column: Column, missing: str, where: str) -> Any:
    """A field's value.

    Raises:
        DataError: the field is empty and has no default, or it is not a number.
    """
    is_text = column.kind.kind == "O"
    if text == missing or not text:
        if column.default is None and not is_text:
            raise DataError(f"{where}: expected a value, got an empty field")
        return column.default or "" if is_text else column.kind.type(column.default)
    if is_text:
        return text
    try:
        return column.kind.type(text)
    except (ValueError, OverflowError):
        raise DataError(f"{where}: expected {column.kind}, got {text!r}") from None
