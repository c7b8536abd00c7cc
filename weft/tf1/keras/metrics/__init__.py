"""`tf.keras.metrics`: metrics over batches, kept in variables that steps update."""

from weft import exports as _exports
from weft.tf1.keras.metrics.confusion import *
from weft.tf1.keras.metrics.function import *
from weft.tf1.keras.metrics.mean import *
from weft.tf1.keras.metrics.metric import Metric as Metric
from weft.tf1.keras.metrics.named import *

_exports.gather(globals())
