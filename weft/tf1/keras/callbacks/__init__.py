"""`tf.keras.callbacks`: listeners to a run's events; also for `weft.train.Model`."""

from weft import exports as _exports
from weft.tf1.keras.callbacks.callback import *
from weft.tf1.keras.callbacks.learning_rate import *
from weft.tf1.keras.callbacks.loggers import *
from weft.tf1.keras.callbacks.monitors import *

_exports.gather(globals())
