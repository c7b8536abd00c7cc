"""`tf.contrib.training`: strategies for the servers of variables."""

from weft import exports as _exports
from weft.tf1.contrib.training.device_setter import *

_exports.gather(globals())
