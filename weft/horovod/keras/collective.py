"""Collectives on values, in Keras's session: numbers, arrays or nested lists become arrays.

>>> import weft.horovod.tensorflow.keras as hvd
>>> hvd.init()
>>> hvd.allreduce([1.0, 2.0], op=hvd.Sum).tolist()
[1.0, 2.0]
>>> hvd.shutdown()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf
from weft.horovod.collective_table import KERAS, Form, functions
from weft.horovod.tensorflow import collective
from weft.tf1.keras import backend


def broadcast_global_variables(root_rank: int) -> None:
    """Give all variables of the default graph one rank's values.

    Args:
        root_rank: the rank in the job that sends.
    """
    backend.get_session().run(collective.broadcast_global_variables(root_rank))


def _functions(name: str, in_graph: Callable[..., Any]) -> list[Any]:
    """The form of a collective that takes a value; `in_graph` takes a tensor."""

    def perform(form: Form, values: Sequence[Any], name: str | None, **options: Any) -> Any:
        tensor = tf.constant(values[0], name=name or "Const")
        return backend.get_session().run(in_graph(tensor, **options))

    return functions(KERAS, name, perform)


(allreduce,) = _functions("allreduce", collective.allreduce)
(reducescatter,) = _functions("reducescatter", collective.reducescatter)
(allgather,) = _functions("allgather", collective.allgather)
(broadcast,) = _functions("broadcast", collective.broadcast)

__all__ = ["allgather", "allreduce", "broadcast", "broadcast_global_variables", "reducescatter"]
