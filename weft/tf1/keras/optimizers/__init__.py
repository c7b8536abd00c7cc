"""`tf.keras.optimizers`: Keras's names and defaults over `tf.train`'s base class."""

from weft import exports as _exports
from weft.tf1.keras.optimizers import schedules as schedules
from weft.tf1.keras.optimizers.optimizer import *
from weft.tf1.keras.optimizers.rules import *

_exports.gather(globals(), "schedules")
