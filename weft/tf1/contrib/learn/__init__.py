"""`tf.contrib.learn`: data sets, texts as numbers, and the older estimators."""

from weft import exports as _exports
from weft.tf1.contrib.learn import datasets as datasets
from weft.tf1.contrib.learn import preprocessing as preprocessing
from weft.tf1.contrib.learn.estimators import *
from weft.tf1.contrib.learn.estimators import learn_runner as learn_runner

_exports.gather(globals(), "datasets", "preprocessing")
