"""`tf.contrib.training`: settings, and strategies for the servers of variables."""

from weft import exports as _exports
from weft.tf1.contrib.learning import create_train_op as create_train_op
from weft.tf1.contrib.training.device_setter import *
from weft.tf1.contrib.training.hparam import *

_exports.gather(globals())
