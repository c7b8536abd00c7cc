"""`hvd.callbacks` for Keras: broadcast of variables, metric averages, learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.collectives.reduce_op import ReduceOp
from weft.errors import ArgumentError
from weft.horovod import basics
from weft.horovod.reduction import Reduction
from weft.horovod.tensorflow.collective import broadcast_global_variables
from weft.horovod.tensorflow.start import broadcast_later
from weft.tf1.keras import backend
from weft.tf1.keras.callbacks import Callback
from weft.transport import session

__all__ = [
    "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback",
    "LearningRateWarmupCallback", "MetricAverageCallback",
]  # fmt: skip

Logs = dict[str, Any]


class BroadcastGlobalVariablesCallback(Callback):
    """Broadcasts one rank's variables to all after the first batch, when all variables exist.

    Args:
        root_rank: the rank in the job that sends.
        device: ignored.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self._root_rank = root_rank
        self._done = False

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Allow ranks to differ until the broadcast."""
        broadcast_later(self.model.graph)

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Broadcast once."""
        if self._done:
            return
        with self.model.graph.as_default():
            backend.get_session().run(broadcast_global_variables(self._root_rank))
        self._done = True


class MetricAverageCallback(Callback):
    """Averages an epoch's metrics over all ranks; put it before callbacks that read them.

    Args:
        device: ignored.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Average the metrics."""
        names = sorted([n for n, x in (logs or {}).items() if np.ndim(x) == 0])
        if logs is None or not names:
            return
        values = np.array([logs[n] for n in names], np.float64)
        (means,) = Reduction(ReduceOp.AVG).all(session.world(), [values])
        logs.update(zip(names, means.tolist(), strict=True))


class LearningRateScheduleCallback(Callback):
    """Multiplies the learning rate, per epoch or, without `staircase`, per batch.

    Args:
        initial_lr: the learning rate before multiplication.
        multiplier: a number, or a function of the epoch (fractional without `staircase`).
        start_epoch, end_epoch: the first epoch, and the one after the last.
        staircase: whether the rate is constant within an epoch.
        momentum_correction: whether momentum is scaled like the rate in the batch in which the
            rate changes (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.1).
        steps_per_epoch: batches per epoch; by default those of `fit`.
    """

    def __init__(
        self, initial_lr: float, multiplier: float | Callable[[float], float],
        start_epoch: int = 0, end_epoch: int | None = None, staircase: bool = True,
        momentum_correction: bool = True, steps_per_epoch: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._initial, self._multiplier = initial_lr, multiplier
        self._epochs = start_epoch, end_epoch
        self._smooth = not (staircase or not callable(multiplier))
        self._corrects = momentum_correction
        self._steps = steps_per_epoch
        self._epoch = 0
        self._momentum: float | None = None  # to restore after the batch

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Determine the number of batches per epoch.

        Raises:
            ArgumentError: it is needed and not known.
        """
        if self._smooth and not self._steps:
            self._steps = self.params.get("steps") or self._by_samples()
        if self._smooth and not self._steps:
            raise ArgumentError.here(
                f"{type(self).__name__}: expected steps_per_epoch, which is not known here"
            )

    def _by_samples(self) -> int | None:
        samples, size = self.params.get("samples"), self.params.get("batch_size")
        return -(-samples // size) if samples and size else None

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Note the epoch."""
        self._epoch = epoch

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Set the rate if it changes."""
        start, end = self._epochs
        if self._epoch < start or (end is not None and self._epoch >= end):
            return
        if self._smooth:
            self._set(self._epoch + batch / (self._steps or 1))
        elif batch == 0:
            self._set(self._epoch)

    def _set(self, epoch: float) -> None:
        factor = self._multiplier(epoch) if callable(self._multiplier) else self._multiplier
        optimizer = self.model.optimizer
        with self.model.graph.as_default():
            old, new = float(backend.get_value(optimizer.lr)), self._initial * factor
            optimizer.lr = new
            if self._corrects and old and hasattr(optimizer, "momentum"):
                self._momentum = float(backend.get_value(optimizer.momentum))
                optimizer.momentum = self._momentum * new / old

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Restore the momentum."""
        if self._momentum is not None:
            with self.model.graph.as_default():
                self.model.optimizer.momentum = self._momentum
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Add the rate to the logs."""
        if logs is not None:
            with self.model.graph.as_default():
                logs["lr"] = float(backend.get_value(self.model.optimizer.lr))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate gradually from that of one rank to that of all (Goyal et al., 2017).

    Args:
        initial_lr: the final rate: that of one rank times the number of ranks.
        warmup_epochs: the number of epochs until then.
        momentum_correction, steps_per_epoch: see `LearningRateScheduleCallback`.
        verbose: whether rank 0 prints a line at the end.
    """

    def __init__(
        self, initial_lr: float, warmup_epochs: float = 5, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        def multiplier(epoch: float) -> float:
            epoch += 1.0 / (self._steps or 1)  # the last batch has the whole rate
            return 1.0 / basics.size() * (epoch * (basics.size() - 1) / warmup_epochs + 1)

        super().__init__(
            initial_lr, multiplier, 0, int(warmup_epochs), False, momentum_correction,
            steps_per_epoch,
        )  # fmt: skip
        self._verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Add the rate to the logs."""
        super().on_epoch_end(epoch, logs)
        if self._verbose and basics.rank() == 0 and epoch == (self._epochs[1] or 0) - 1:
            print(f"Epoch {epoch + 1}: finished gradual learning rate warmup to {self._initial}.")
