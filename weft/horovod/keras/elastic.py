"""`hvd.elastic` for Keras: commits a model, its optimizer and other values, also within an epoch.

>>> import numpy as np
>>> import weft.tf1 as tf
>>> import weft.horovod.tensorflow.keras as hvd
>>> hvd.init()
>>> model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
>>> model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), "mse")
>>> state = hvd.elastic.KerasState(model, batch=0, epoch=0)
>>> @hvd.elastic.run
... def train(state):
...     callbacks = [
...         hvd.elastic.UpdateEpochStateCallback(state),
...         hvd.elastic.UpdateBatchStateCallback(state),
...         hvd.elastic.CommitStateCallback(state),
...     ]
...     x, y = np.ones((4, 2)), np.ones((4, 1))
...     state.model.fit(x, y, epochs=3 - state.epoch, verbose=0, callbacks=callbacks)
>>> train(state)
>>> state.epoch, state.batch
(3, 0)
>>> hvd.shutdown()
"""

from __future__ import annotations

import os
from typing import Any

from weft.errors import ArgumentError
from weft.horovod.elastic import State, run
from weft.horovod.tensorflow.elastic import TensorFlowState
from weft.tf1.keras import backend
from weft.tf1.keras.callbacks import Callback

Logs = dict[str, Any]


class KerasState(TensorFlowState):
    """A model, its optimizer, and other values by name.

    Args:
        model: must have weights, for example by an `input_shape` of the first layer.
        optimizer: by default that of `compile`.
        folder: see `State`.
        kwargs: numbers, strings, arrays and nested structures of them.

    Raises:
        ArgumentError: the model has no weights yet, or there is no optimizer.
    """

    def __init__(
        self, model: Any, optimizer: Any = None, folder: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        used = getattr(model, "optimizer", None) if optimizer is None else optimizer
        if not model.built:
            raise ArgumentError.here(
                "KerasState: expected a model that is built, got one without weights; call "
                "model.build(input_shape) before"
            )
        if used is None:
            raise ArgumentError.here(
                "KerasState: expected an optimizer, got none; compile the model before, or give "
                "optimizer=..."
            )
        with model.graph.as_default():
            used.build(model.trainable_weights)  # all its variables are part of the state
            variables = [*model.weights, *used.weights]
            super().__init__(variables, backend.get_session(), folder, **kwargs)
        self.model, self.optimizer = model, used


class CommitStateCallback(Callback):
    """Commits every few batches, and after each epoch; put it last.

    Args:
        state: the state to commit.
        batches_per_commit: the number of batches between commits.
    """

    def __init__(self, state: State, batches_per_commit: int = 1) -> None:
        super().__init__()
        self._state, self._every = state, batches_per_commit
        self._left = batches_per_commit

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Count from the start, on all ranks alike."""
        self._left = self._every

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Commit if enough batches have passed."""
        self._left -= 1
        if not self._left:
            self._state.commit()
            self._left = self._every

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Commit."""
        self._state.commit()


class UpdateBatchStateCallback(Callback):
    """Keeps the number of the current batch in `state.batch`; 0 between epochs.

    The first epoch after a restart starts at that batch, if the number of its batches is known.

    Args:
        state: the state; has the attributes `batch` and `epoch`.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Skip the batches of an interrupted epoch that are already processed."""
        steps = self.params.get("steps")
        if steps and self._state.batch:
            self.model.begin_epoch_at(min(self._state.batch, steps - 1))

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Record the batch."""
        self._state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Let the next epoch start at its first batch."""
        self._state.batch = 0


class UpdateEpochStateCallback(Callback):
    """Keeps the number of finished epochs in `state.epoch`, including those before a restart.

    Args:
        state: the state; has the attribute `epoch`.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state
        self._before: int = state.epoch

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Record the number of epochs finished before."""
        self._before = self._state.epoch

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Count the epoch."""
        self._state.epoch = self._before + epoch + 1


__all__ = [
    "CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback",
    "run",
]  # fmt: skip
