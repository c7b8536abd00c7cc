"""Horovod for `tf.keras`: programs written for `horovod.tensorflow.keras` change their import.

>>> import numpy as np
>>> import weft.tf1 as tf
>>> import weft.horovod.keras as hvd
>>> hvd.init()
>>> model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
>>> optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * hvd.size()))
>>> model.compile(optimizer, "mse")
>>> start = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
>>> found = model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, callbacks=[start])
>>> sorted(found.history)
['loss']
>>> hvd.shutdown()
"""

from __future__ import annotations

from weft import exports as _exports
from weft.horovod.basics import *
from weft.horovod.keras import callbacks as callbacks
from weft.horovod.keras import elastic as elastic
from weft.horovod.keras.collective import *
from weft.horovod.keras.optimizer import DistributedOptimizer as DistributedOptimizer
from weft.horovod.process_set import *
from weft.horovod.tensorflow.collective import allgather_object as allgather_object
from weft.horovod.tensorflow.collective import broadcast_object as broadcast_object
from weft.horovod.tensorflow.compression import Compression as Compression
from weft.horovod.timeline import *

_exports.gather(globals(), "callbacks", "elastic")
