"""Keys and values of tables from the lines of text files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, MissingError
from weft.resource.base import Array
from weft.resource.component import numpy_type

WHOLE_LINE: Final = -2
LINE_NUMBER: Final = -1


class Vocabulary:
    """Keys and values from a file's lines.

    Args:
        path: the file.
        dtypes: the names of the types of keys and values.
        key_index: the column of the key; -2 is the whole line, -1 the number of the line.
        value_index: the same of the value.
        vocab_size: the number of lines that are read; -1 is all.
        delimiter: between columns.
    """

    def __init__(
        self, path: str, dtypes: tuple[str, str], key_index: int, value_index: int,
        vocab_size: int = -1, delimiter: str = "\t",
    ) -> None:  # fmt: skip
        self._path, self._size, self._delimiter = path, vocab_size, delimiter.encode()
        self._dtypes, self._columns = dtypes, (key_index, value_index)
        for role, dtype, column in zip(("Key", "Value"), dtypes, self._columns, strict=True):
            _check(role, dtype, column)

    def read(self) -> tuple[Array, Array]:
        """Keys and values.

        Raises:
            MissingError: there is no such file.
            ArgumentError: a line is empty, has too few columns or something else than a number,
                or there are too few.
        """
        keys: list[Any] = []
        values: list[Any] = []
        for number, line in enumerate(self._lines()):
            tokens = line.split(self._delimiter) if max(self._columns) >= 0 else []
            if 0 <= max(self._columns) >= len(tokens):
                raise ArgumentError(
                    f"Invalid number of columns in {self._path} line {number} "
                    f"({line.decode(errors='replace')}) : expected {max(self._columns)} got "
                    f"{len(tokens)}"
                )
            for into, column, dtype in zip((keys, values), self._columns, self._dtypes,
                                           strict=True):  # fmt: skip
                into.append(_value(line, tokens, column, number, dtype))
        if self._size != -1 and len(keys) != self._size:
            text = f"expected {self._size} but got {len(keys)}"
            raise ArgumentError(f"Invalid vocab_size in {self._path}: {text}")
        return _array(keys, self._dtypes[0]), _array(values, self._dtypes[1])

    def _lines(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as stream:
                lines = stream.read().split(b"\n")
        except OSError as error:
            raise MissingError(f"{self._path}; {error.strerror}") from error
        if not lines[-1]:
            lines.pop()
        lines = lines if self._size == -1 else lines[: self._size]
        for number, line in enumerate(lines):
            if not line:
                raise ArgumentError(
                    f"Invalid content in {self._path}: empty line found at position {number}."
                )
        return [line.removesuffix(b"\r") for line in lines]


_ALLOWED: Final = {
    ("Key", LINE_NUMBER): ("line number requires table key dtype of int64", ("int64",)),
    ("Key", WHOLE_LINE): (
        "whole line requires string or integer table key",
        ("string", "int32", "int64"),
    ),
    ("Value", LINE_NUMBER): ("line number requires table value dtype of int64", ("int64",)),
    ("Value", WHOLE_LINE): ("whole line requires table value dtype of string", ("string",)),
}


def _check(role: str, dtype: str, column: int) -> None:
    if column < WHOLE_LINE:
        raise ArgumentError(f"{role} index should be >= -2, got {column}")
    rule = _ALLOWED.get((role, column))
    if rule is not None and dtype not in rule[1]:
        raise ArgumentError(f"{role} index for {rule[0]}, got {dtype}")


_CONVERT: Final[dict[str, Callable[[bytes], Any]]] = {
    "int32": int,
    "int64": int,
    "float32": float,
    "float64": float,
    "string": bytes,
}


def _value(line: bytes, tokens: list[bytes], column: int, number: int, dtype: str) -> Any:
    if column == LINE_NUMBER:
        return number
    token = line if column == WHOLE_LINE else tokens[column]
    try:
        return _CONVERT[dtype](token)
    except KeyError:
        raise ArgumentError(f"Data type {dtype} not supported.") from None
    except ValueError:
        text = f"Field {token.decode(errors='replace')} in line {number} is not a valid {dtype}."
        raise ArgumentError(text) from None


def _array(values: list[Any], dtype: str) -> Array:
    found = np.empty(len(values), numpy_type(dtype))
    found[:] = values
    return found
