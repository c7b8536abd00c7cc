"""Horovod for TensorFlow 1 graphs: programs written for `horovod.tensorflow` change their import.

>>> import weft.tf1 as tf
>>> import weft.horovod.tensorflow as hvd
>>> hvd.init()
>>> tf.reset_default_graph()
>>> w = tf.Variable([1.0, 2.0])
>>> loss = tf.reduce_sum(w * w)
>>> optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.5))
>>> train = optimizer.minimize(loss)
>>> with tf.Session() as session:
...     session.run(tf.global_variables_initializer())
...     session.run(hvd.broadcast_global_variables(0))
...     session.run(train)
...     session.run(w).tolist()
[0.0, 0.0]
>>> hvd.shutdown()
"""

from __future__ import annotations

from weft.horovod.basics import (
    Average,
    Max,
    Min,
    Product,
    Sum,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
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
from weft.horovod.process_set import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from weft.horovod.reduction import Adasum
from weft.horovod.tensorflow import elastic
from weft.horovod.tensorflow.collective import (
    allgather,
    allgather_object,
    allreduce,
    alltoall,
    broadcast,
    broadcast_global_variables,
    broadcast_object,
    broadcast_variables,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    join,
    reducescatter,
)
from weft.horovod.tensorflow.compression import Compression
from weft.horovod.tensorflow.optimizer import BroadcastGlobalVariablesHook, DistributedOptimizer
from weft.horovod.timeline import start_timeline, stop_timeline

__all__ = [
    "Adasum", "Average", "BroadcastGlobalVariablesHook", "Compression", "DistributedOptimizer",
    "Max", "Min", "ProcessSet", "Product", "Sum", "add_process_set", "allgather",
    "allgather_object", "allreduce", "alltoall", "broadcast", "broadcast_global_variables",
    "broadcast_object", "broadcast_variables", "ccl_built", "cross_rank", "cross_size",
    "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled",
    "grouped_allgather", "grouped_allreduce", "grouped_reducescatter",
    "init", "is_homogeneous", "is_initialized", "join", "local_rank",
    "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank",
    "reducescatter", "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline",
    "stop_timeline",
]  # fmt: skip
