"""`tf.contrib.learn`: data sets, texts as numbers, modes."""

from weft.tf1.contrib.learn import datasets as datasets
from weft.tf1.contrib.learn import preprocessing as preprocessing
from weft.tf1.estimator import ModeKeys as ModeKeys

__all__ = ["ModeKeys", "datasets", "preprocessing"]
