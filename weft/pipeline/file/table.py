"""Rows of CSV files (RFC 4180), with the rules of TensorFlow's CsvDataset."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DataError, DTypeError
from weft.pipeline.file.reader import Reader
from weft.pipeline.file.text import Lines
from weft.pipeline.stage import State


class Column(NamedTuple):
    """How a field is converted: its NumPy type (object for strings) and its default."""

    kind: np.dtype[Any]
    default: Any = None  # None: a field must not be empty

    @classmethod
    def of(cls, default: Any) -> Column:
        """From a type, for a required field, or from a default value."""
        if default is None:
            raise DTypeError("csv: expected record_defaults of types or values, got None")
        if isinstance(default, list | tuple | np.ndarray):
            default = default[0] if len(default) else str
        if isinstance(default, str | bytes):
            return cls(np.dtype(object), default if isinstance(default, str) else default.decode())
        if isinstance(default, bool | int | float | np.generic):
            dtype = np.asarray(default).dtype
            return cls(
                np.dtype("f4" if dtype == "f8" else "i4" if dtype == "i8" else dtype), default
            )
        dtype = np.dtype(getattr(default, "numpy", getattr(default, "as_numpy_dtype", default)))
        return cls(np.dtype(object) if dtype.kind in "USO" else dtype)


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

    A field is quoted as a whole or has no quotes; a quoted one may hold delimiters, line ends and
    doubled quotes. An empty line is a row of one empty field.

    Raises:
        DataError: while reading, a row has too few or too many fields, a field is not a number, or
            a quote is misplaced or not closed.
    """

    def __init__(self, path: str, layout: Layout, compression: str = "") -> None:
        self.lines = Lines(path, compression)
        self.layout = layout
        self.number = 0  # lines read so far
        self.rest = b""  # of a line after a carriage return, which also ends a row
        mark = re.escape(layout.delimiter)
        self.quoted = re.compile(rf'"((?:[^"]|"")*)"(?={mark}|\r|\n|$)')
        self.plain = re.compile(rf'(?:(?!{mark})[^"\r\n])*(?={mark}|\r|\n|$)')
        self.open = re.compile(r'"(?:[^"]|"")*')
        if layout.header:
            with suppress(StopIteration):
                self.fields()

    def _line(self) -> str:
        """The next line with its end."""
        line = self.rest or self.lines.raw()
        self.rest = b""
        place = line.find(b"\r", 0, -2)
        if place >= 0:
            line, self.rest = line[: place + 1], line[place + 1 :]
        self.number += bool(line)
        return self.lines.decoded(line, self._offset() - len(line))

    def _offset(self) -> int:
        return self.lines.offset - len(self.rest)

    def fields(self) -> list[str]:
        """The next row's fields as strings."""
        text = self._line()
        if not text:
            raise StopIteration
        if '"' not in text or not self.layout.quotes:
            return text.rstrip("\r\n").split(self.layout.delimiter)
        return self._quoted_fields(text)

    def _quoted_fields(self, text: str) -> list[str]:
        """The fields of a row that starts with this line; a quoted one may span lines."""
        fields, at, first = list[str](), 0, self.number
        while True:
            match = (self.quoted if text[at : at + 1] == '"' else self.plain).match(text, at)
            if match is None and self.open.fullmatch(text, at) and (line := self._line()):
                text += line
                continue
            if match is None:
                raise DataError(f"{self.lines.path}, line {first}: {self._fault(text, at)}")
            fields.append(match[1].replace('""', '"') if match.re is self.quoted else match[0])
            at = match.end()
            if not text.startswith(self.layout.delimiter, at):
                return fields
            at += len(self.layout.delimiter)

    def _fault(self, text: str, at: int) -> str:
        if self.open.fullmatch(text, at):
            return "expected a closing quote, got the end of the file"
        what = "a field with quotes around all of it, or none in it"
        return f"expected {what}, got {text[at : at + 40]!r}"

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
        return {"offset": self._offset(), "lines": self.number}

    def restore(self, state: State) -> None:
        """Go to a byte offset."""
        self.rest = b""
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
        if column.default is None:
            raise DataError(f"{where}: expected a value, got an empty field")
        return column.default if is_text else column.kind.type(column.default)
    if is_text:
        return text
    try:
        return column.kind.type(_number(text.strip(), column.kind.kind))
    except (ValueError, OverflowError):
        raise DataError(f"{where}: expected {column.kind}, got {text!r}") from None


def _number(text: str, dtype_kind: str) -> Any:
    """A number by NumPy's conversion, which alone would also accept `1_000` and other digits."""
    if not text.isascii() or "_" in text:
        raise ValueError
    if dtype_kind == "b":
        return _TRUTH[text.lower()] if text.lower() in _TRUTH else bool(int(text))
    if dtype_kind == "f" and text.lstrip("+-")[:2].lower() == "0x":
        return float.fromhex(text)
    return text


_TRUTH: Final = {"true": True, "false": False}
