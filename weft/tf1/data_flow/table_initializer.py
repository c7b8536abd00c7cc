"""What fills tables: tensors, or the lines of a text file."""

from __future__ import annotations

from typing import Any

from weft.documentation import Reads, arguments_of
from weft.errors import ArgumentError, DTypeError
from weft.resource.vocabulary import LINE_NUMBER, WHOLE_LINE
from weft.tf1.data_flow.handle import Handle
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.default_graph import add_to_collection
from weft.tf1.framework.dtypes import DType, as_dtype, int64, string
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation

__all__ = [
    "KeyValueTensorInitializer", "TableInitializerBase", "TextFileIdTableInitializer",
    "TextFileIndex", "TextFileInitializer", "TextFileStringTableInitializer",
]  # fmt: skip


class Typed:
    """A table, or what fills one: the types of its keys and values.

    Args:
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    key_dtype = Reads[DType]("_key_dtype", "The element type of the keys.")
    value_dtype = Reads[DType]("_value_dtype", "The element type of the values.")


class TableInitializerBase(Typed):
    """What fills a table.

    Args:
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
    """

    shared_name: str | None = None

    def initialize(self, handle: Handle, table: Typed) -> Operation:
        """The operation that fills a table.

        Args:
            handle: of the table.
            table: its types.
        """
        raise NotImplementedError

    def _check(self, table: Typed) -> None:
        mine = (self._key_dtype, self._value_dtype)
        theirs = (table.key_dtype, table.value_dtype)
        for role, got, wanted in zip(("key", "value"), mine, theirs, strict=True):
            if got != wanted:
                text = f"Invalid {role} dtype, expected {wanted} but got {got}."
                raise fail(DTypeError, text)


def _registered(op: Operation) -> Operation:
    add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
    return op


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with tensors.

    Args:
        keys: the keys.
        values: a value for each.
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
        name: of the operation.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = name or "key_value_init"
        super().__init__(self._keys.dtype.base_dtype, self._values.dtype.base_dtype)

    def initialize(self, handle: Handle, table: Typed) -> Operation:
        """The operation that fills a table."""
        self._check(table)
        self._keys.shape.merge_with(self._values.shape)
        given = [self._keys, self._values]
        return _registered(handle.call("LookupTableImportV2", "initialize", given, name=self._name))


class TextFileIndex:
    """Columns that are none."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TextFileInitializer(TableInitializerBase):
    """Fills a table from the lines of a text file.

    Args:
        filename: the file.
        key_dtype: the element type of the keys.
        key_index: the column of the key, or one of `TextFileIndex`.
        value_dtype: the element type of the values.
        value_index: the column of the value, or one of `TextFileIndex`.
        vocab_size: the number of lines that are read; all by default.
        delimiter: between columns.
        name: of the operation.

    Raises:
        ArgumentError: there is no name of a file, or a column is wrong for its type.
    """

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
    ) -> None:  # fmt: skip
        if not is_tensor(filename) and not filename:
            raise fail(ArgumentError, f"Filename required for {name}.")
        super().__init__(key_dtype, value_dtype)
        _check_column("key", key_index, self._key_dtype, self._key_dtype.is_integer)
        _check_column("value", value_index, self._value_dtype, False)
        if vocab_size is not None and vocab_size <= 0:
            raise fail(ArgumentError, f"Invalid vocab_size {vocab_size}.")
        if is_tensor(filename) and filename.dtype.base_dtype != string:
            text = f"expected the filename as a text, got {filename}"
            raise fail(ArgumentError, f"TextFileInitializer: {text}")
        self._filename, self._name = filename, name
        self._options = {
            "key_index": int(key_index),
            "value_index": int(value_index),
            "vocab_size": -1 if vocab_size is None else int(vocab_size),
            "delimiter": delimiter,
        }
        size = "" if vocab_size is None else f"_{vocab_size}"
        file = filename.name if is_tensor(filename) else filename
        self.shared_name = f"hash_table_{file}{size}_{key_index}_{value_index}"

    def initialize(self, handle: Handle, table: Typed) -> Operation:
        """The operation that fills a table."""
        self._check(table)
        with name_scope(self._name, "text_file_init") as scope:
            path = convert_to_tensor(self._filename, string, name="asset_filepath")
        path.shape.assert_has_rank(0)
        if static_value(path) is not None:
            add_to_collection(GraphKeys.ASSET_FILEPATHS, path)
        return _registered(
            handle.call(
                "InitializeTableFromTextFileV2", "initialize_from_text_file", [path], name=scope,
                options=self._options,
            )
        )  # fmt: skip


def _check_column(role: str, index: int, dtype: DType, whole_too: bool) -> None:
    if index < WHOLE_LINE:
        raise fail(ArgumentError, f"Invalid {role} index {index}.")
    text = f"Signature mismatch. {role.capitalize()}s must be"
    if index == LINE_NUMBER and dtype != int64:
        raise fail(ArgumentError, f"{text} dtype {int64}, got {dtype}.")
    if index == WHOLE_LINE and dtype != string and not whole_too:
        wanted = "integer or string" if role == "key" else f"dtype {string}"
        raise fail(ArgumentError, f"{text} {wanted}, got {dtype}.")


@arguments_of(TextFileInitializer)
class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table from numbers of lines to lines.

    Args:
        key_column_index: the column of the key; the number of the line by default.
        value_column_index: the column of the value; the whole line by default.
    """

    def __init__(
        self, filename: Any, key_column_index: int = LINE_NUMBER,
        value_column_index: int = WHOLE_LINE, vocab_size: int | None = None,
        delimiter: str = "\t", name: str = "text_file_string_table_init",
    ) -> None:  # fmt: skip
        super().__init__(
            filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter,
            name,
        )  # fmt: skip


@arguments_of(TextFileInitializer)
class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table from lines to their numbers.

    Args:
        key_column_index: the column of the key; the whole line by default.
        value_column_index: the column of the value; the number of the line by default.
    """

    def __init__(
        self, filename: Any, key_column_index: int = WHOLE_LINE,
        value_column_index: int = LINE_NUMBER, vocab_size: int | None = None,
        delimiter: str = "\t", name: str = "text_file_id_table_init", key_dtype: Any = string,
    ) -> None:  # fmt: skip
        super().__init__(
            filename, key_dtype, key_column_index, int64, value_column_index, vocab_size,
            delimiter, name,
        )  # fmt: skip
