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

from weft.horovod.basics import (
    Average,
    Compression,
    Sum,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from weft.horovod.keras import callbacks
from weft.horovod.keras.optimizer import DistributedOptimizer
from weft.horovod.tensorflow.collective import (
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
)
from weft.horovod.timeline import start_timeline, stop_timeline

__all__ = [
    "Average", "Compression", "DistributedOptimizer", "Sum", "allgather_object",
    "broadcast_global_variables", "broadcast_object", "callbacks", "init", "is_initialized",
    "local_rank", "local_size", "rank", "shutdown", "size", "start_timeline", "stop_timeline",
]  # fmt: skip
