"""Parquet files, with pyarrow if it is installed: row groups as arrays."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError, DataError, DTypeError

Array = np.ndarray[Any, Any]
Columns = dict[str, Any]  # arrays with a row for each element; for a struct, nested Columns
_OBJECTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def pyarrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow.

    Raises:
        DataError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        text = 'expected pyarrow to be installed: pip install "weft[parquet]"'
        raise DataError(f"read a Parquet file: {text}") from None


class ParquetFile:
    """A Parquet file; its metadata is read at once, row groups on demand.

    Args:
        path: the file.
        columns: the columns to read; all by default.
        defaults: values for nulls, by column.

    Attributes:
        rows: number of rows of each row group.
        types: Arrow's types of the columns to read, in the requested order.

    Raises:
        DataError: it is not a Parquet file, is damaged, or lacks a column.
    """

    def __init__(
        self,
        path: str,
        columns: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.defaults = dict(defaults or {})
        with self._opened(None) as file:
            self._metadata: Any = file.metadata
            schema: Any = file.schema_arrow
        self.columns = list(schema.names if columns is None else columns)
        for name in [*self.columns, *self.defaults]:
            if name not in schema.names:
                text = f"expected a column {name!r}, got columns {schema.names}"
                raise DataError(f"{path}: {text}")
        self.types: dict[str, Any] = {name: schema.field(name).type for name in self.columns}
        self.rows = [self._metadata.row_group(g).num_rows for g in range(self.groups)]

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return self._metadata.num_row_groups

    def _opened(self, metadata: Any) -> Any:
        """Opens the file by pyarrow, anew each time, as threads must not share the object."""
        library = pyarrow("pyarrow.parquet")
        try:
            return library.ParquetFile(
                self.path, metadata=metadata, memory_map=True, page_checksum_verification=True
            )
        except FileNotFoundError:
            raise DataError(f"{self.path}: there is no such file") from None
        except (OSError, pyarrow().ArrowException) as error:
            raise DataError(f"{self.path}: expected a Parquet file: {_line(error)}") from None

    def read(self, group: int) -> tuple[Columns, int]:
        """The columns of a row group, and their size in bytes.

        Raises:
            DataError: the row group is damaged, or has nulls without a default.
            DTypeError: a column's type has no array equivalent.
        """
        where = f"{self.path}, row group {group}"
        with self._opened(self._metadata) as file:
            try:
                table: Any = file.read_row_group(group, columns=self.columns)
                table.validate(full=True)
            except (OSError, pyarrow().ArrowException) as error:
                raise DataError(f"{where}: damaged: {_line(error)}") from None
        found = {
            name: array_of(
                table.column(name).combine_chunks(),
                f"{where}, column {name!r}",
                self.defaults.get(name),
            )
            for name in self.columns
        }
        return found, table.nbytes


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def array_of(column: Any, where: str, default: Any = None) -> Any:
    """Converts an Arrow array to NumPy, or a struct to arrays by name.

    Numbers, booleans and times become arrays of their type, lists of equal length arrays with
    another axis; strings, bytes, other lists and decimals become objects. Nulls are NaN in floats,
    None in objects, NaT in times, and rejected elsewhere unless there is a default.

    Raises:
        DataError: there are nulls without a default.
        DTypeError: the type has no array equivalent.
    """
    types = pyarrow().types
    kind = column.type
    if types.is_dictionary(kind):
        return array_of(column.cast(kind.value_type), where, default)
    if column.null_count and default is not None:
        column = _filled(column, default, where)
    if types.is_struct(kind):
        _refuse_empty(column, where)
        parts = zip(kind, column.flatten(), strict=True)
        return {field.name: array_of(part, f"{where}.{field.name}") for field, part in parts}
    if types.is_fixed_size_list(kind):
        _refuse_empty(column, where)
        inner = array_of(column.flatten(), where)
        if not isinstance(inner, np.ndarray):
            raise DTypeError(f"{where}: expected lists of numbers or strings, got {kind}")
        return inner.reshape(len(column), kind.list_size, *inner.shape[1:])
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(column, where)
    if str(kind) in _OBJECTS or types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        found = np.empty(len(column), object)
        found[:] = column.to_pylist()
        return found
    return _numbers(column, where)


def _filled(column: Any, default: Any, where: str) -> Any:
    try:
        return column.fill_null(default)
    except (pyarrow().ArrowException, TypeError, ValueError):
        text = f"expected a default that fits {column.type}, got {default!r}"
        raise ArgumentError(f"{where}: {text}") from None


def _numbers(column: Any, where: str) -> Array:
    types, kind = pyarrow().types, column.type
    if not (types.is_floating(kind) or types.is_temporal(kind)):
        _refuse_empty(column, where)
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype == object:
        raise DTypeError(f"{where}: expected numbers, strings, lists or structs, got {kind}")
    return found


def _lists(column: Any, where: str) -> Array:
    """Lists as an array of arrays."""
    _refuse_empty(column, where)
    inner = array_of(column.flatten(), where)
    if not isinstance(inner, np.ndarray):
        raise DTypeError(f"{where}: expected lists of numbers or strings, got {column.type}")
    ends = np.cumsum(column.value_lengths().to_numpy(zero_copy_only=False))
    found = np.empty(len(column), object)
    for row, end in enumerate(ends):
        found[row] = inner[ends[row - 1] if row else 0 : end]
    return found


def _refuse_empty(column: Any, where: str) -> None:
    if column.null_count:
        text = f"expected a value in each row, got {column.null_count} empty ones of {len(column)}"
        raise DataError(f"{where}: {text}: give a default, or leave the column out")
