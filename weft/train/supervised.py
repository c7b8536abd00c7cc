"""Training of plain models: `fit(model, data, loss=...)` without subclassing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.eager.functions.api import Tensor, randperm
from weft.errors import ArgumentError, ShapeError
from weft.metrics import Metric
from weft.nn import Module as NNModule
from weft.pipeline.structure import leaves, map_leaves
from weft.train.callbacks.callback import Callback
from weft.train.losses import (
    ClassWeights,
    Loss,
    class_numbers,
    has_one_class,
    loss_of,
    metrics_of,
    optimizer_of,
    takes_classes,
    weighted,
)
from weft.train.module import Module
from weft.train.trainer import Trainer

__all__ = ["History", "fit"]

Array = np.ndarray[Any, Any]


class Arrays:
    """Batches of the rows of arrays, optionally shuffled in each epoch.

    Args:
        arrays: of equal first dimensions, nested in tuples, lists and dictionaries.
        shuffle: whether to shuffle, with the process's random numbers.

    Raises:
        ShapeError: the first dimensions differ.
    """

    def __init__(self, arrays: Any, batch_size: int, shuffle: bool = False) -> None:
        self._arrays = map_leaves(_array, arrays)
        sizes = {len(x) for x in leaves(self._arrays)}
        if len(sizes) != 1:
            raise ShapeError.here(
                f"train: expected arrays with as many rows each, got {sorted(sizes)}"
            )
        self._rows, self._size, self._shuffle = sizes.pop(), batch_size, shuffle

    def __len__(self) -> int:
        return -(-self._rows // self._size)

    def __iter__(self) -> Iterator[Any]:
        order = randperm(self._rows).numpy() if self._shuffle else None
        return self._batches(order)

    def rows(self, begin: int, end: int) -> Any:
        """The rows from `begin` to `end` (excluded)."""
        return map_leaves(lambda x: x[begin:end], self._arrays)

    def _batches(self, order: Array | None) -> Iterator[Any]:
        for begin in range(0, self._rows, self._size):
            rows: Any = slice(begin, begin + self._size)
            yield map_leaves(lambda x, i=rows if order is None else order[rows]: x[i], self._arrays)


def _array(x: Any) -> Array:
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x)


class Supervised(Module):
    """A plain model with loss, optimizer and metrics, as a module for the trainer.

    Batches are (x, y) or (x, y, item weights). A tuple x is passed as arguments, a dictionary x as
    keyword arguments.
    """

    def __init__(self, model: Any, loss: Any, optimizer: Any, metrics: Any = None) -> None:
        super().__init__()
        self.model = model if isinstance(model, NNModule) else None
        self._call = model
        self.loss: Loss = loss_of(loss)
        self._optimizer_given = optimizer
        self._optimizer: Any = None
        self.metrics = {stage: metrics_of(metrics, self.loss) for stage in ("", "val_", "test_")}
        self.class_weight: ClassWeights | None = None

    def forward(self, x: Any) -> Any:
        """The model's outputs."""
        if isinstance(x, tuple | list):
            return self._call(*x)
        return self._call(**x) if isinstance(x, dict) else self._call(x)

    def configure_optimizers(self) -> Any:
        """The same optimizer for all runs."""
        if self._optimizer is None:
            if self.model is None and isinstance(self._optimizer_given, str):
                raise ArgumentError.here(
                    "train: expected an optimizer, as the model is a function and its parameters "
                    f"are not known, got {self._optimizer_given!r}"
                )
            self._optimizer = optimizer_of(self._optimizer_given, self)
        return self._optimizer

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss of a batch."""
        return self._step(batch, "", self.class_weight)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Loss and metrics of a batch."""
        self._step(batch, "val_")

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Loss and metrics of a batch."""
        self._step(batch, "test_")

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """The model's outputs for (x,), (x, y) or x."""
        pair = isinstance(batch, tuple | list)
        return self(batch[0] if pair else batch)

    def _step(self, batch: Any, stage: str, class_weight: ClassWeights | None = None) -> Any:
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
            raise ArgumentError.here(
                f"train: expected batches (x, y) or (x, y, weights), got {type(batch).__name__}"
            )
        x, y, *weights = batch
        outputs, y = _aligned(self.loss, self(x), y)
        if class_weight is not None:
            weights = [class_weight.of(outputs, y), *weights]
        if weights:
            loss = weighted(self.loss, outputs, y, weights)
        else:
            loss = self.loss(outputs, y)
            loss = loss.mean() if isinstance(loss, Tensor) and loss.ndim else loss
        self.log(f"{stage}loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        self._log_metrics(outputs, y, stage)
        return loss

    def _log_metrics(self, outputs: Any, y: Any, stage: str) -> None:
        one = isinstance(y, Tensor) and has_one_class(self.loss)
        for name, metric in self.metrics[stage].items():
            value = metric
            if isinstance(metric, Metric):
                metric.update(outputs, class_numbers(outputs, y) if one else y)
            else:
                value = metric(outputs, y)
            self.log(f"{stage}{name}", value, on_step=False, on_epoch=True, prog_bar=True)


def _aligned(loss: Loss, outputs: Any, y: Any) -> tuple[Any, Any]:
    """Outputs and targets without a trailing dimension of 1 that only one of them has.

    Targets (N, 1) of a loss that takes class numbers become (N,).
    """
    if not (isinstance(outputs, Tensor) and isinstance(y, Tensor)):
        return outputs, y
    if outputs.ndim == y.ndim + 1 and outputs.shape[-1] == 1:
        return outputs.squeeze(-1), y
    if y.ndim == outputs.ndim + 1 and y.shape[-1] == 1:
        return outputs, y.squeeze(-1)
    single = y.ndim == outputs.ndim and y.ndim > 1 and y.shape[-1] == 1 != outputs.shape[-1]
    return outputs, y.squeeze(-1) if single and takes_classes(loss) else y


class History(Callback):
    """The metrics of all epochs.

    Attributes:
        history: for each name, a list with one number per epoch.
        epoch: the numbers of the epochs.
        params, model: the arguments of Keras's `fit`, and the model.
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []
        self.params: dict[str, Any] = {}
        self.model: Any = None

    def set_params(self, params: dict[str, Any]) -> None:
        """Set the arguments of Keras's `fit`."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Set the model with Keras's methods, which starts a new run."""
        self.model = model
        self.history, self.epoch = {}, []

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Store the epoch's metrics."""
        self.on_epoch_end(trainer.current_epoch, {**trainer.figures, **trainer.numbers()})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """Store an epoch's metrics, as Keras reports them."""
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)


def loader_of(data: Any, batch_size: int, shuffle: bool) -> Any:
    """Batches: of the rows of a tuple of arrays, or the given loader."""
    if data is None or not isinstance(data, tuple):
        return data
    return Arrays(data, batch_size, shuffle)


def fit(
    model: Any, data: Any, *, loss: Any, optimizer: Any = "adam", metrics: Any = None,
    epochs: int = 1, batch_size: int = 32, shuffle: bool = True, validation: Any = None,
    callbacks: Sequence[Any] = (), **options: Any,
) -> History:  # fmt: skip
    """Train a plain model.

    Args:
        model: a module, or a function of x whose parameters the optimizer holds.
        data: a loader of batches (x, y) or (x, y, weights); or a tuple of such arrays.
        loss: `loss(outputs, y)`, or a name such as `"cross_entropy"` or `"mse"`.
        optimizer: an optimizer, a name, or a function that makes one from parameters.
        metrics: names, metrics, or functions of outputs and y; a list, or by name.
        epochs: the number of passes over the data.
        batch_size: for arrays.
        shuffle: whether arrays are shuffled in each epoch.
        validation: like `data`; its metrics are called `val_...`.
        callbacks: as for `Trainer`.
        options: for the `Trainer`; logger and checkpoints are off by default.

    Returns:
        The metrics of all epochs.

    >>> import weft as wf
    >>> _ = wf.manual_seed(0)
    >>> x = wf.linspace(-1, 1, 64).reshape(64, 1)
    >>> model = wf.nn.Linear(1, 1)
    >>> found = fit(model, (x, 3 * x + 1), loss="mse", optimizer=wf.optim.Adam(
    ...     model.parameters(), lr=0.1), epochs=99, enable_progress_bar=False)
    >>> found.history["loss"][-1] < 1e-3
    True
    """
    history = History()
    module = Supervised(model, loss, optimizer, metrics)
    module.train()
    quiet: dict[str, Any] = {
        "logger": False,
        "enable_checkpointing": False,
        "num_sanity_val_steps": 0,
        "enable_model_summary": False,
    }
    trainer = Trainer(max_epochs=epochs, callbacks=[*callbacks, history], **{**quiet, **options})
    trainer.fit(
        module, loader_of(data, batch_size, shuffle), loader_of(validation, batch_size, False)
    )
    return history
