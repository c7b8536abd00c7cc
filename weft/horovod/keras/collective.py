"""Collectives on values, in Keras's session."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.horovod.basics import Average
from weft.horovod.compression import Compressor
from weft.horovod.tensorflow import collective
from weft.horovod.tensorflow.compression import Compression
from weft.tf1.keras import backend


def broadcast_global_variables(root_rank: int) -> None:
    """Give all variables of the default graph one rank's values."""
    backend.get_session().run(collective.broadcast_global_variables(root_rank))


def allreduce(
    value: Any, name: str | None = None, average: bool | None = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, op: Any = None,
    compression: type[Compressor] = Compression.none,
) -> Any:  # fmt: skip
    """The reduction of all ranks' values as an array; their mean unless `op` says otherwise.

    Args:
        value: a number, an array, or nested lists.
        prescale_factor, postscale_factor: factors before and after the reduction.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16.

    >>> import weft.horovod.tensorflow.keras as hvd
    >>> hvd.init()
    >>> hvd.allreduce([1.0, 2.0], op=hvd.Sum).tolist()
    [1.0, 2.0]
    >>> hvd.shutdown()
    """
    given = tf.constant(value, name=name or "Const")
    found = collective.allreduce(
        given, average, "", "", compression, op, prescale_factor, postscale_factor
    )
    return backend.get_session().run(found)


def allgather(value: Any, name: str | None = None) -> Any:
    """All ranks' values along their first dimension, whose length may differ, as an array."""
    given = tf.constant(value, name=name or "Const")
    return backend.get_session().run(collective.allgather(given))


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """The value of one rank, as an array."""
    given = tf.constant(value, name=name or "Const")
    return backend.get_session().run(collective.broadcast(given, root_rank))


def reducescatter(value: Any, name: str | None = None, op: Any = Average) -> Any:
    """This rank's part, along the first dimension, of the reduction of all ranks' values."""
    given = tf.constant(value, name=name or "Const")
    return backend.get_session().run(collective.reducescatter(given, op=op))
