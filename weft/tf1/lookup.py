"""`tf.lookup`: tables from keys to values in the graph."""

from weft.tf1.data_flow.id_table import StaticVocabularyTable as StaticVocabularyTable
from weft.tf1.data_flow.mutable_table import DenseHashTable as _DenseHashTable
from weft.tf1.data_flow.mutable_table import MutableHashTable as _MutableHashTable
from weft.tf1.data_flow.table import StaticHashTable as StaticHashTable
from weft.tf1.data_flow.table_initializer import (
    KeyValueTensorInitializer as KeyValueTensorInitializer,
)
from weft.tf1.data_flow.table_initializer import TextFileIndex as TextFileIndex
from weft.tf1.data_flow.table_initializer import TextFileInitializer as TextFileInitializer


class experimental:
    """`tf.lookup.experimental`: tables that steps change."""

    DenseHashTable = _DenseHashTable
    MutableHashTable = _MutableHashTable


__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
    "TextFileInitializer", "experimental",
]  # fmt: skip
