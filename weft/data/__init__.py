"""Input pipelines with the names of tf.data: `Dataset`."""

from weft.data.dataset import Dataset
from weft.pipeline import AUTOTUNE, INFINITE, UNKNOWN

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset"]
