"""`tf.keras.optimizers`: Keras's names and defaults over `tf.train`'s base class."""

from weft import exports
from weft.tf1.keras.optimizers import schedules as schedules
from weft.tf1.keras.optimizers.optimizer import Optimizer as Optimizer
from weft.tf1.keras.optimizers.optimizer import WrappedOptimizer as WrappedOptimizer
from weft.tf1.keras.optimizers.rules import *

exports.gather(globals(), "schedules")
