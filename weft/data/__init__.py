"""Input pipelines with tf.data's API: `Dataset`, and datasets that read files."""

from weft.data.dataset import Dataset
from weft.data.files import (
    CsvDataset,
    FixedLengthRecordDataset,
    ParquetDataset,
    ParseExample,
    TextLineDataset,
    TFRecordDataset,
)
from weft.formats.example_spec import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RawFeature,
    VarLenFeature,
)
from weft.ops.refusal import guard
from weft.pipeline import AUTOTUNE, INFINITE, UNKNOWN

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "CsvDataset", "Dataset",
    "FixedLenFeature", "FixedLenSequenceFeature", "FixedLengthRecordDataset", "ParquetDataset",
    "ParseExample", "RawFeature", "TFRecordDataset", "TextLineDataset", "VarLenFeature",
]  # fmt: skip

guard(globals())
