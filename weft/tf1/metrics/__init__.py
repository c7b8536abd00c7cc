"""`tf.metrics`: figures over many batches, each a value and the operation that adds a batch.

Absent: the metrics of rankings (`recall_at_k`, `precision_at_k`, `average_precision_at_k`).
"""

from weft import exports as _exports
from weft.tf1.metrics.confusion import *
from weft.tf1.metrics.mean import *

_exports.gather(globals())
