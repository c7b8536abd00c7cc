"""`tf.contrib.lookup`: tables from keys to values, and between words and numbers."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.tf1.data_flow import id_table as _id_table
from weft.tf1.data_flow.embedding_table import EmbeddingTable as EmbeddingTable
from weft.tf1.data_flow.id_table import FastHashSpec as FastHashSpec
from weft.tf1.data_flow.id_table import HasherSpec as HasherSpec
from weft.tf1.data_flow.id_table import IdTableWithHashBuckets as IdTableWithHashBuckets
from weft.tf1.data_flow.id_table import StrongHashSpec as StrongHashSpec
from weft.tf1.data_flow.id_table import index_table_from_file as index_table_from_file
from weft.tf1.data_flow.id_table import (
    index_to_string_table_from_file as index_to_string_table_from_file,
)
from weft.tf1.data_flow.mutable_table import DenseHashTable as _DenseHashTable
from weft.tf1.data_flow.mutable_table import MutableHashTable as MutableHashTable
from weft.tf1.data_flow.table import HashTable as HashTable
from weft.tf1.data_flow.table import LookupInterface as LookupInterface
from weft.tf1.data_flow.table_initializer import (
    KeyValueTensorInitializer as KeyValueTensorInitializer,
)
from weft.tf1.data_flow.table_initializer import TableInitializerBase as TableInitializerBase
from weft.tf1.data_flow.table_initializer import (
    TextFileIdTableInitializer as TextFileIdTableInitializer,
)
from weft.tf1.data_flow.table_initializer import TextFileIndex as TextFileIndex
from weft.tf1.data_flow.table_initializer import TextFileInitializer as TextFileInitializer
from weft.tf1.data_flow.table_initializer import (
    TextFileStringTableInitializer as TextFileStringTableInitializer,
)
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import string
from weft.tf1.framework.graph import fail

MutableDenseHashTable = _DenseHashTable


def index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec, dtype: Any = string, name: str | None = None,
) -> Any:  # fmt: skip
    """A table from words to their places in a list.

    Args:
        mapping: the words.
        num_oov_buckets: the number of buckets for words that are not in it.
        default_value: the number of words that are not in it, if there are no buckets.
        hasher_spec: the hash that tells the bucket.
        dtype: the element type of words.
        name: of the operations.

    Raises:
        ArgumentError: there is no list.
    """
    if mapping is None:
        raise fail(ArgumentError, "mapping must be specified.")
    return _id_table.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


@arguments_of(index_table_from_tensor)
def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """A table from places in a list to its words.

    Args:
        default_value: the word of places that are not there.

    Raises:
        ArgumentError: there is no list.
    """
    if mapping is None:
        raise fail(ArgumentError, "mapping must be specified.")
    return _id_table.index_to_string_table_from_tensor(mapping, default_value, name)


@arguments_of(index_table_from_tensor)
def string_to_index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec, name: str | None = None,
) -> Any:  # fmt: skip
    """The older name of `index_table_from_tensor` for texts."""
    if convert_to_tensor(mapping).dtype != string:
        raise fail(ArgumentError, "string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, string, name
    )


@arguments_of(_id_table.index_table_from_file)
def string_to_index_table_from_file(
    vocabulary_file: Any = None, num_oov_buckets: int = 0, vocab_size: int | None = None,
    default_value: int = -1, hasher_spec: HasherSpec = FastHashSpec, name: str | None = None,
) -> Any:  # fmt: skip
    """The older name of `index_table_from_file` for texts."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, string, name
    )


@arguments_of(index_table_from_tensor)
def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """The places of words in a list; `tables_initializer` fills the table.

    Args:
        tensor: the words that are looked up.
    """
    return index_table_from_tensor(mapping, 0, default_value, name=name).lookup(
        convert_to_tensor(tensor, string)
    )


@arguments_of(index_to_string_table_from_tensor)
def index_to_string(
    tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The words at places of a list; `tables_initializer` fills the table.

    Args:
        tensor: the places.
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
