"""`tf.queue`: queues in the graph."""

from weft import exports as _exports
from weft.tf1.data_flow.queue import *
from weft.tf1.data_flow.queue_base import *

_exports.gather(globals())
