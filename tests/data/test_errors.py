"""Unsuitable arguments are errors that name the call, wherever they are given."""

import re

import pytest

import weft as wf
from weft import data
from weft.data import Dataset
from weft.errors import WeftError

FILES = "files to be names, patterns, paths, lists of these or a dataset of names"
CALLS = [
    (lambda: Dataset(), "Dataset: expected one of the class methods that make a dataset, such as"),
    (lambda: Dataset([1]), "got Dataset(list)"),
    (lambda: data.TextLineDataset(3), f"text_lines: expected {FILES}, got 3 of type int"),
    (lambda: data.TFRecordDataset(None), f"tfrecords: expected {FILES}, got None of type NoneType"),
    (lambda: data.FixedLengthRecordDataset([2.5], 3), "fixed_length_records: expected files"),
    (lambda: data.CsvDataset({}, [1]), f"csv: expected {FILES}, got dict"),
    (lambda: data.ParquetDataset(wf.ones(2)), f"parquet: expected {FILES}, got float32(2,)"),
    (lambda: Dataset.list_files(3), "list_files: expected files to be names"),
    (lambda: Dataset.tar_shards([b"", 3]), "tar_shards: expected files"),
    (lambda: Dataset.idx(3), "idx: expected files"),
    (lambda: Dataset.idx(), "idx: expected at least one file"),
    (lambda: Dataset.image_folder(3), "image_folder: expected files"),
    (lambda: list(data.TextLineDataset(Dataset.range(2))), "got int64 of type int64"),
    (lambda: data.ParseExample(3), "ParseExample: expected ParseExample(features), got ParseEx"),
    (lambda: data.ParseExample({"a": 3}), "got ParseExample(dict); AttributeError"),
    (lambda: data.ParseExample(), "got ParseExample(); TypeError"),
    (lambda: data.FixedLengthRecordDataset("x", 0), "expected record_bytes of 1 or more"),
    (lambda: data.CsvDataset("x", [1], field_delim=""), "csv: expected a field_delim of one char"),
    (lambda: data.CsvDataset("x", 3), "CsvDataset: expected CsvDataset(filenames, record_def"),
    (lambda: Dataset.from_sequence(3), "from_sequence: expected an object with __getitem__"),
    (lambda: Dataset.range("a"), "range: expected range(cls, *args, output_type=None), got range"),
    (lambda: Dataset.zip(3), "zip: expected zip("),
    (lambda: Dataset.sample_from_datasets([3]), "sample_from_datasets: expected"),
    (lambda: Dataset.range(3).map(3), "map: expected map(self, map_func"),
    (lambda: Dataset.range(3).filter(3), "a int is no function"),
    (lambda: Dataset.range(3).flat_map(3), "flat_map: expected flat_map(self, map_func)"),
    (lambda: Dataset.range(3).batch(2.5), "batch: expected batch(self, batch_size, drop_remain"),
    (lambda: Dataset.range(3).shuffle("a"), "shuffle: expected shuffle(self, buffer_size"),
    (lambda: Dataset.range(3).repeat(1.5), "repeat: expected repeat(self, count=None)"),
    (lambda: Dataset.range(3).concatenate(3), "concatenate: expected concatenate(self, dataset)"),
    (lambda: Dataset.range(3).cache(3), "cache: expected cache(self, filename='')"),
]


@pytest.mark.parametrize(("call", "text"), CALLS)
def test_the_error_names_the_call(call, text):
    with pytest.raises(WeftError, match=re.escape(text)):
        call()


def test_errors_of_the_users_functions_stay_as_they_are():
    with pytest.raises(AttributeError) as caught:
        Dataset.range(3).reduce(0, lambda state, x: x.nothing)
    assert not isinstance(caught.value, WeftError)
