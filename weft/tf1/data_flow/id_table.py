"""Tables from words to numbers, with buckets for words that are not in them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.documentation import arguments_of
from weft.errors import ArgumentError, DTypeError
from weft.tf1.data_flow.table import HashTable, LookupInterface, StaticHashTable
from weft.tf1.data_flow.table_initializer import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.dtypes import DType, as_dtype, int64, string
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.strings.bucket import string_to_hash_bucket_fast, string_to_hash_bucket_strong
from weft.tf1.strings.number import as_string

__all__ = [
    "FastHashSpec", "HasherSpec", "IdTableWithHashBuckets", "StaticVocabularyTable",
    "StrongHashSpec", "index_table_from_file", "index_table_from_tensor",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor",
]  # fmt: skip


class HasherSpec(NamedTuple):
    """A hash of words.

    Attributes:
        hasher: `fasthash` or `stronghash`.
        key: two numbers, of the latter.
    """

    hasher: str
    key: Sequence[int] | None


FastHashSpec = HasherSpec("fasthash", None)


def StrongHashSpec(key: Sequence[int]) -> HasherSpec:
    """A hash with a key: who does not know it cannot make words collide.

    Args:
        key: two integers.

    Raises:
        ArgumentError: there are not two.
        DTypeError: they are none.
    """
    if len(key) != 2:
        raise fail(ArgumentError, f"key must have size 2, got {len(key)}.")
    if not all(isinstance(k, int | np.integer) for k in key):  # pyright: ignore
        raise fail(DTypeError, f"Invalid key {key}. Must be unsigned integer values.")
    return HasherSpec("stronghash", tuple(key))


class IdTableWithHashBuckets(LookupInterface):
    """Numbers of words: those of a table, and of buckets behind them for words not in it.

    Args:
        table: from words to numbers; without it, all words go to buckets.
        num_oov_buckets: how many there are.
        hasher_spec: the hash that tells the bucket.
        name: of its operations.
        key_dtype: the element type of words; integers are hashed as texts.

    Raises:
        ArgumentError: there is neither a table nor a bucket.
        DTypeError: a type is wrong.
    """

    def __init__(
        self, table: LookupInterface | None, num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec, name: str | None = None, key_dtype: Any = None,
    ) -> None:  # fmt: skip
        given = None if key_dtype is None else as_dtype(key_dtype)
        kind = given or (string if table is None else table.key_dtype)
        if table is not None:
            _check_table(table, kind)
        elif num_oov_buckets <= 0:
            raise fail(ArgumentError, "oov_buckets must be > 0 if no table is supplied.")
        if not kind.is_integer and kind != string:
            text = f"Invalid key_dtype, expected integer or string, got {kind}."
            raise fail(DTypeError, text)
        if not isinstance(hasher_spec, HasherSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise fail(DTypeError, f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        super().__init__(kind, int64)
        self._table, self._buckets, self._hash = table, num_oov_buckets, hasher_spec
        shown = (name or "").rstrip("/") or ("hash_bucket" if table is None else table.name)
        self._name = shown.split("/")[-1]

    @property
    def resource_handle(self) -> Any:
        """The reference of the table, or `None`."""
        return None if self._table is None else self._table.resource_handle

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def init(self) -> Operation:
        """Fills the table."""
        return self.initializer

    @property
    def initializer(self) -> Operation:
        """Fills the table."""
        if isinstance(self._table, StaticHashTable):
            return self._table.initializer
        return get_default_graph().emit("NoOp", (), "group", name="init")

    def size(self, name: str | None = None) -> Tensor:
        """The number of words of the table, and of buckets."""
        with name_scope(name, f"{self.name}_Size"):
            known = convert_to_tensor(0, int64) if self._table is None else self._table.size()
            return known + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of words.

        Args:
            keys: a tensor, or a sparse one.
            name: of the operations.

        Raises:
            DTypeError: the words have another type.
        """
        if isinstance(keys, SparseTensor):
            found = self.lookup(keys.values, name)
            return SparseTensor(keys.indices, found, keys.dense_shape)
        with name_scope(name, f"{self.name}_Lookup"):
            words = self.keys_of(keys)
            if self._table is not None and self._table.key_dtype == int64:
                words = cast(words, int64)
            if self._buckets == 0:
                return words if self._table is None else self._table.lookup(words)
            buckets = self._bucket(words)
            if self._table is None:
                return buckets
            numbers = host_tensor(
                "AddV2", [buckets, self._table.size()], np.add, int64, buckets.shape, "buckets"
            )
            return self._table.find(words, numbers, 0, (), None)

    def _bucket(self, words: Tensor) -> Tensor:
        texts = words if words.dtype == string else as_string(words)
        if self._hash.hasher == "fasthash":
            return string_to_hash_bucket_fast(texts, self._buckets, name="hash_bucket")
        if self._hash.hasher != "stronghash" or self._hash.key is None:
            raise fail(ArgumentError, f"Unknown hasher {self._hash.hasher}")
        return string_to_hash_bucket_strong(texts, self._buckets, self._hash.key, "hash_bucket")


def _check_table(table: LookupInterface, kind: DType) -> None:
    if table.key_dtype not in (int64, string):
        text = f"Invalid key dtype, expected one of ({int64}, {string}), but got {kind}."
        raise fail(DTypeError, text)
    if table.key_dtype.is_integer != kind.is_integer:
        wanted = "integer" if kind.is_integer else "non-integer"
        raise fail(DTypeError, f"Invalid key dtype, expected {wanted} but got {table.key_dtype}.")
    if table.value_dtype != int64:
        text = f"Invalid value dtype, expected {int64} but got {table.value_dtype}."
        raise fail(DTypeError, text)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Numbers of words, and of buckets for words that are not in the vocabulary.

    Args:
        initializer: fills the vocabulary; without it, all words go to buckets.
        num_oov_buckets: how many buckets there are.
        lookup_key_dtype: the element type of words.
        name: of its operations.

    Raises:
        ArgumentError: there is no bucket.
        DTypeError: a type is wrong.
    """

    def __init__(
        self, initializer: TableInitializerBase | None, num_oov_buckets: int,
        lookup_key_dtype: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise fail(ArgumentError, "oov_buckets must be > 0.")
        table = None if initializer is None else HashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


def _with_buckets(table: StaticHashTable, count: int, spec: HasherSpec, dtype: Any) -> Any:
    if not count:
        return table
    return IdTableWithHashBuckets(table, count, spec, key_dtype=dtype)


def _check_vocabulary(source: Any, role: str, buckets: int, size: int | None) -> None:
    if source is None or (isinstance(source, str) and not source):
        raise fail(ArgumentError, f"{role} must be specified and must not be empty.")
    if buckets < 0:
        text = f"num_oov_buckets must be greater or equal than 0, got {buckets}."
        raise fail(ArgumentError, text)
    if size is not None and size < 1:
        shown = static_value(source) if is_tensor(source) else source
        text = f"vocab_size must be greater than 0, got {size}. {role}: {shown}"
        raise fail(ArgumentError, text)


def _key_type(dtype: Any) -> DType:
    kind = as_dtype(dtype).base_dtype
    if not kind.is_integer and kind != string:
        raise fail(DTypeError, "Only integer and string keys are supported.")
    return kind


def index_table_from_file(
    vocabulary_file: Any = None, num_oov_buckets: int = 0, vocab_size: int | None = None,
    default_value: int = -1, hasher_spec: HasherSpec = FastHashSpec, key_dtype: Any = string,
    name: str | None = None, key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER, delimiter: str = "\t",
) -> Any:  # fmt: skip
    """A table from words, the lines of a file, to their numbers.

    Args:
        vocabulary_file: the file.
        num_oov_buckets: the number of buckets for words that are not in it.
        vocab_size: the number of lines that are read; all by default.
        default_value: the number of words that are not in it, if there are no buckets.
        hasher_spec: the hash that tells the bucket.
        key_dtype: the element type of words.
        name: of the operations.
        key_column_index: the column of the word; the whole line by default.
        value_column_index: the column of the number; that of the line by default.
        delimiter: between columns.

    Raises:
        ArgumentError: there is no file, or a number is wrong.
        DTypeError: words are neither integers nor texts.
    """
    _check_vocabulary(vocabulary_file, "vocabulary_file", num_oov_buckets, vocab_size)
    kind = _key_type(key_dtype)
    with name_scope(name, "string_to_index"), name_scope(None, "hash_table"):
        filled = TextFileIdTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter,
            "table_init", int64 if kind.is_integer else kind,
        )  # fmt: skip
        table = StaticHashTable(filled, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


@arguments_of(index_table_from_file)
def index_table_from_tensor(
    vocabulary_list: Any, num_oov_buckets: int = 0, default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec, dtype: Any = string, name: str | None = None,
) -> Any:  # fmt: skip
    """A table from words to their places in a list.

    Args:
        vocabulary_list: the words.
        dtype: the element type of words.

    Raises:
        ArgumentError: there is no list, or its words are of another kind.
        DTypeError: words are neither integers nor texts.
    """
    _check_vocabulary(vocabulary_list, "vocabulary_list", num_oov_buckets, None)
    kind = _key_type(dtype)
    with name_scope(name, "string_to_index"):
        words = convert_to_tensor(vocabulary_list)
        if words.dtype.is_integer != kind.is_integer or (words.dtype == string) != (kind == string):
            wanted = "integer" if kind.is_integer else "non-integer"
            raise fail(ArgumentError, f"Expected {wanted}, got {words.dtype}.")
        keys = cast(words, int64) if kind.is_integer else words
        with name_scope(None, "hash_table"):
            filled = KeyValueTensorInitializer(keys, _places(words), name="table_init")
            table = StaticHashTable(filled, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


def _places(words: Tensor) -> Tensor:
    if words.shape.is_fully_defined():
        return convert_to_tensor(_numbered(np.empty([int(d) for d in words.shape])), int64)
    return host_tensor("Range", [words], _numbered, int64, words.shape, "range")


def _numbered(words: Any) -> Any:
    return np.arange(words.size).reshape(words.shape)


@arguments_of(index_table_from_file)
def index_to_string_table_from_file(
    vocabulary_file: Any, vocab_size: int | None = None, default_value: str = "UNK",
    name: str | None = None, key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE, delimiter: str = "\t",
) -> StaticHashTable:  # fmt: skip
    """A table from numbers to words, the lines of a file.

    Args:
        default_value: the word of numbers that are not there.
        key_column_index: the column of the number; that of the line by default.
        value_column_index: the column of the word; the whole line by default.

    Raises:
        ArgumentError: there is no file, or a number is wrong.
    """
    _check_vocabulary(vocabulary_file, "vocabulary_file", 0, vocab_size)
    with name_scope(name, "index_to_string"):
        filled = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter,
            "table_init",
        )  # fmt: skip
        return StaticHashTable(filled, default_value)


@arguments_of(index_to_string_table_from_file, index_table_from_tensor)
def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: str = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from places in a list to its words.

    Raises:
        ArgumentError: there is no list.
    """
    _check_vocabulary(vocabulary_list, "vocabulary_list", 0, None)
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(vocabulary_list, string)
        filled = KeyValueTensorInitializer(_places(words), words, name="table_init")
        return StaticHashTable(filled, default_value)
