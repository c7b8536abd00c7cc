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

from weft import exports as _exports
from weft.horovod.basics import *
from weft.horovod.basics import Max as Max
from weft.horovod.basics import Min as Min
from weft.horovod.basics import Product as Product
from weft.horovod.basics import is_homogeneous as is_homogeneous
from weft.horovod.process_set import *
from weft.horovod.reduction import Adasum as Adasum
from weft.horovod.tensorflow import elastic as elastic
from weft.horovod.tensorflow.collective import *
from weft.horovod.tensorflow.compression import Compression as Compression
from weft.horovod.tensorflow.optimizer import *
from weft.horovod.tensorflow.place import *
from weft.horovod.timeline import *

_exports.gather(globals(), "elastic")
