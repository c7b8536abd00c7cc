"""`tf.data`: datasets and their iterators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.documentation import arguments_of
from weft.pipeline import AUTOTUNE
from weft.pipeline.pipeline import Pipeline
from weft.tf1.data import experimental as experimental
from weft.tf1.data.capture import argument
from weft.tf1.data.dataset import Dataset
from weft.tf1.data.iterator import Iterator
from weft.tf1.data.spec import Spec
from weft.tf1.framework.convert import is_tensor
from weft.tf1.framework.dtypes import string

__all__ = [
    "AUTOTUNE", "Dataset", "FixedLengthRecordDataset", "Iterator", "Options", "TFRecordDataset",
    "TextLineDataset", "experimental", "make_initializable_iterator", "make_one_shot_iterator",
]  # fmt: skip


class Options:
    """Options of pipelines: any can be set, and none changes the elements."""


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """See `Dataset.make_one_shot_iterator`.

    Args:
        dataset: the dataset.
    """
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """See `Dataset.make_initializable_iterator`.

    Args:
        dataset: the dataset.
        shared_name: as there.
    """
    return dataset.make_initializable_iterator(shared_name)


def _files(filenames: Any, read: Callable[[Any], Pipeline]) -> Dataset:
    spec = Spec(string, ())
    filenames = argument(filenames)
    if is_tensor(filenames):
        return Dataset(lambda values: read(_names(values[0])), spec, [filenames])
    if isinstance(filenames, Dataset):
        return filenames.flat_map(lambda name: _files(name, read))
    return Dataset(lambda _: read(filenames), spec)


def _names(given: Any) -> Any:
    return given.tolist() if isinstance(given, np.ndarray) else given


@arguments_of(Pipeline.text_lines)
def TextLineDataset(
    filenames: Any, compression_type: str | None = "", buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset:  # fmt: skip
    """The lines of text files.

    Args:
        filenames: a path or several; a tensor's are known when the iterator starts.
        buffer_size: no effect.
    """
    del buffer_size
    parallel = num_parallel_reads
    return _files(filenames, lambda names: Pipeline.text_lines(names, compression_type, parallel))


@arguments_of(Pipeline.tfrecords, TextLineDataset)
def TFRecordDataset(
    filenames: Any,
    compression_type: str | None = "",
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset:
    """The records of TFRecord files; checksums are verified."""
    del buffer_size
    parallel = num_parallel_reads
    return _files(filenames, lambda names: Pipeline.tfrecords(names, compression_type, parallel))


@arguments_of(Pipeline.fixed_length_records, TextLineDataset)
def FixedLengthRecordDataset(
    filenames: Any, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0,
    buffer_size: int | None = None, compression_type: str | None = "",
    num_parallel_reads: int | None = None,
) -> Dataset:  # fmt: skip
    """Fixed-size records."""
    del buffer_size
    options = record_bytes, header_bytes, footer_bytes, compression_type, num_parallel_reads
    return _files(filenames, lambda names: Pipeline.fixed_length_records(names, *options))
