"""Datasets that read files, with tf.data's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.data.dataset import Dataset
from weft.documentation import arguments_of
from weft.formats.example_batch import ExampleParser
from weft.formats.example_spec import Expected
from weft.formats.packed import Packed
from weft.ops.refusal import guard_making

__all__ = [
    "CsvDataset", "FixedLengthRecordDataset", "ParquetDataset", "ParseExample", "TFRecordDataset",
    "TextLineDataset",
]  # fmt: skip


@arguments_of(Dataset.text_lines)
def TextLineDataset(
    filenames: Any, compression_type: str | None = "", num_parallel_reads: int | None = None
) -> Dataset:
    """The lines of text files; see `Dataset.text_lines`.

    Args:
        filenames: a path or several.
    """
    return Dataset.text_lines(filenames, compression_type, num_parallel_reads)


@arguments_of(Dataset.tfrecords, TextLineDataset)
def TFRecordDataset(
    filenames: Any, compression_type: str | None = "", num_parallel_reads: int | None = None
) -> Dataset:
    """The records of TFRecord files; see `Dataset.tfrecords`."""
    return Dataset.tfrecords(filenames, compression_type, num_parallel_reads)


@arguments_of(Dataset.fixed_length_records, TextLineDataset)
def FixedLengthRecordDataset(
    filenames: Any, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0,
    compression_type: str | None = "", num_parallel_reads: int | None = None,
) -> Dataset:  # fmt: skip
    """Records of a fixed size; see `Dataset.fixed_length_records`."""
    sizes = record_bytes, header_bytes, footer_bytes
    return Dataset.fixed_length_records(filenames, *sizes, compression_type, num_parallel_reads)


@arguments_of(Dataset.csv)
def CsvDataset(
    filenames: Any, record_defaults: Sequence[Any], header: bool = False, **options: Any
) -> Dataset:
    """The rows of CSV files; see `Dataset.csv`.

    Args:
        filenames: a path or several.
        options: of `Dataset.csv`.
    """
    return Dataset.csv(filenames, record_defaults, header, **options)


@arguments_of(Dataset.parquet)
def ParquetDataset(filenames: Any, columns: Sequence[str] | None = None, **options: Any) -> Dataset:
    """The rows of Parquet files; see `Dataset.parquet`.

    Args:
        filenames: a path or several.
        options: of `Dataset.parquet`.
    """
    return Dataset.parquet(filenames, columns, **options)


class ParseExample:
    """A function for `map` that parses `tf.train.Example`s, before or after `batch`.

    If `batch` follows, all records of a batch are parsed at once.

    Args:
        features: the spec of each feature by name: `FixedLenFeature` and the like.

    >>> from weft.formats.example import encode
    >>> from weft.formats.example_spec import FixedLenFeature
    >>> records = [encode({"x": [n, n + 1]}) for n in range(4)]
    >>> parse = ParseExample({"x": FixedLenFeature([2], "int64")})
    >>> dataset = Dataset.from_sequence(records).map(parse).batch(3)
    >>> [batch["x"].tolist() for batch in dataset]
    [[[0, 1], [1, 2], [2, 3]], [[3, 4]]]
    """

    takes_packed = True  # records of a batch as they were read from files

    def __init__(self, features: Mapping[str, Expected]) -> None:
        self.__name__ = "parse_example"
        self.parser = ExampleParser(features)

    def __call__(self, record: Any) -> Any:
        """The features of a record, or of an array of records."""
        if isinstance(record, np.ndarray | Packed):
            return self.parser(_records(record))
        return {name: _row(x) for name, x in self.parser([record]).items()}

    def batched(self, records: Any) -> Any:
        """The features of a batch of records."""
        found = self.parser(_records(records))
        return found if all(isinstance(x, np.ndarray) for x in found.values()) else None


guard_making(ParseExample)


def _records(batch: Any) -> Any:
    return batch if isinstance(batch, Packed) else batch.tolist()


def _row(x: Any) -> Any:
    return x[0] if isinstance(x, np.ndarray) else x.values
