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
    Sum,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
)
from weft.horovod.keras import callbacks, elastic
from weft.horovod.keras.collective import (
    allgather,
    allreduce,
    broadcast,
    broadcast_global_variables,
    reducescatter,
)
from weft.horovod.keras.optimizer import DistributedOptimizer
from weft.horovod.process_set import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from weft.horovod.tensorflow.collective import allgather_object, broadcast_object
from weft.horovod.tensorflow.compression import Compression
from weft.horovod.timeline import start_timeline, stop_timeline

__all__ = [
    "Average", "Compression", "DistributedOptimizer", "ProcessSet", "Sum", "add_process_set",
    "allgather", "allgather_object", "allreduce", "broadcast", "broadcast_global_variables",
    "broadcast_object", "callbacks", "ccl_built", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled", "init",
    "is_initialized", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "rank", "reducescatter", "remove_process_set",
    "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline",
]  # fmt: skip
