"""`tf.contrib.tpu` for programs that run without a TPU: `TPUEstimator` is an `Estimator`."""

from weft import exports as _exports
from weft.tf1.contrib.tpu.config import *
from weft.tf1.contrib.tpu.estimator import *

_exports.gather(globals())
