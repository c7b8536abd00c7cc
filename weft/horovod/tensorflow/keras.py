"""Horovod for `tf.keras` under its usual name; the same as `weft.horovod.keras`.

>>> import weft.horovod.tensorflow.keras as hvd
>>> hvd.init()
>>> hvd.size()
1
>>> hvd.shutdown()
"""

from __future__ import annotations

from weft.horovod.keras import *  # noqa: F403
