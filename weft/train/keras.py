"""Keras' `compile`, `fit`, `evaluate` and `predict` for any module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.eager.functions.api import ones, tensor
from weft.errors import ArgumentError, StateError
from weft.ops.base import at_user_line
from weft.train.callbacks.callback import Callback
from weft.train.supervised import Arrays, History, Supervised
from weft.train.trainer import Trainer

Array = np.ndarray[Any, Any]


class _Adapter(Callback):
    """An object with Keras' methods (`on_epoch_end(epoch, logs)`, ...) as a callback."""

    def __init__(self, callback: Any, model: Model) -> None:
        self._callback = callback
        if hasattr(callback, "set_model"):
            callback.set_model(model)

    def _tell(self, name: str, *args: Any) -> None:
        method = getattr(self._callback, name, None)
        if method is not None:
            method(*args)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._tell("on_train_begin", {})

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._tell("on_epoch_begin", trainer.current_epoch, {})

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._tell("on_epoch_end", trainer.current_epoch, _figures(trainer))

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._tell("on_train_batch_begin", batch_idx, {})

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._tell("on_train_batch_end", batch_idx, {})

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._tell("on_train_end", _figures(trainer))


def _figures(trainer: Any) -> dict[str, float]:
    return {k: v.item() for k, v in trainer.callback_metrics.items() if v.numel() == 1}


class Model:
    """A module with Keras' methods.

    Args:
        module: any module; or a function, with an optimizer that has its parameters.

    Attributes:
        history: of the last `fit`.
        stop_training: set it in a callback to end training behind the step.

    >>> import weft as wf
    >>> _ = wf.manual_seed(0)
    >>> x = wf.linspace(-1, 1, 64).reshape(64, 1)
    >>> model = Model(wf.nn.Linear(1, 1))
    >>> model.compile(optimizer=lambda p: wf.optim.Adam(p, lr=0.1), loss="mse", metrics=["mae"])
    >>> history = model.fit(x, 3 * x + 1, epochs=99, verbose=0)
    >>> sorted(history.history)
    ['loss', 'mae']
    >>> model.evaluate(x, 3 * x + 1, verbose=0, return_dict=True)["mae"] < 0.05
    True
    >>> model.predict(x, verbose=0).shape
    (64, 1)
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.history: History | None = None
        self._supervised: Supervised | None = None
        self._trainer: Trainer | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's outputs."""
        return self.module(*args, **kwargs)

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None) -> None:
        """Say how to train: see `weft.train.fit` for what each may be."""
        if loss is None:
            raise ArgumentError(f"compile: expected a loss, got None{at_user_line()}")
        self._supervised = Supervised(self.module, loss, optimizer, metrics)

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._compiled().configure_optimizers()

    @property
    def stop_training(self) -> bool:
        """Whether training is to end."""
        return self._trainer is not None and self._trainer.should_stop

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        if self._trainer is not None:
            self._trainer.should_stop = value

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        **options: Any,
    ) -> History:
        """Train; the optimizer goes on where an earlier `fit` left it.

        Args:
            x: arrays, or a loader of batches (x, y) or (x, y, weights).
            y: the targets of arrays.
            validation_split: the part at the end of the arrays that is not trained on.
            validation_data: (x, y), (x, y, weights), or a loader.
            class_weight: factors of the losses of classes.
            sample_weight: factors of the losses of rows.
            initial_epoch: the number of the first epoch; `epochs` is that behind the last.
            options: of the `Trainer`.
        """
        module = self._compiled()
        if validation_split:
            x, y, sample_weight, validation_data = _split(x, y, sample_weight, validation_split)
        size = batch_size or 32
        data = _loader(x, y, sample_weight, size, shuffle)
        if isinstance(validation_data, tuple):
            validation_data = Arrays(validation_data, validation_batch_size or size)
        history, given = History(), callbacks or []
        each = list(given) if isinstance(given, list | tuple) else [given]
        listeners = [c if isinstance(c, Callback) else _Adapter(c, self) for c in each]
        trainer = self._new_trainer(
            verbose, max_epochs=epochs, callbacks=[*listeners, history],
            limit_train_batches=steps_per_epoch, limit_val_batches=validation_steps,
            check_val_every_n_epoch=validation_freq, **options,
        )  # fmt: skip
        trainer.progress.epoch = initial_epoch
        module.class_weight = None if class_weight is None else _table(class_weight)
        module.train()
        trainer.fit(module, data, validation_data)
        self.history = history
        return history

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics: the loss alone, a list, or by name."""
        module = self._compiled()
        trainer = self._new_trainer(verbose, limit_test_batches=steps)
        data = _loader(x, y, sample_weight, batch_size or 32, False)
        (figures,) = trainer.test(module, data)
        found = {name.removeprefix("test_"): figure for name, figure in figures.items()}
        if return_dict:
            return found
        return found["loss"] if len(found) == 1 else list(found.values())

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None
    ) -> Any:
        """The module's outputs for all rows, as arrays."""
        module = self._supervised or Supervised(self.module, lambda *_: None, "sgd")
        trainer = self._new_trainer(verbose, limit_predict_batches=steps)
        arrays = not hasattr(x, "__iter__") or hasattr(x, "shape") or isinstance(x, tuple | dict)
        outputs = trainer.predict(module, Arrays((x,), batch_size or 32) if arrays else x)
        return _joined(outputs)

    # -- inside

    def _compiled(self) -> Supervised:
        if self._supervised is None:
            raise StateError(f"Model: expected compile() before, got none{at_user_line()}")
        return self._supervised

    def _new_trainer(self, verbose: Any, **options: Any) -> Trainer:
        quiet: dict[str, Any] = {
            "logger": False, "enable_checkpointing": False, "num_sanity_val_steps": 0,
            "enable_progress_bar": verbose not in (0, "0"),
        }  # fmt: skip
        self._trainer = Trainer(**{**quiet, **options})
        return self._trainer


def _loader(x: Any, y: Any, weights: Any, size: int, shuffle: bool) -> Any:
    """Batches of arrays; or the loader that x is."""
    if y is None:
        if weights is not None:
            raise ArgumentError(
                f"fit: expected weights of rows from the loader itself, got both{at_user_line()}"
            )
        return x
    return Arrays((x, y) if weights is None else (x, y, weights), size, shuffle)


def _split(x: Any, y: Any, weights: Any, part: float) -> tuple[Any, Any, Any, Any]:
    """The arrays without the rows at their end, and these."""
    if y is None or not 0 < part < 1:
        raise ArgumentError(
            "fit: expected arrays x and y for a validation_split between 0 and 1, got "
            f"{part}{at_user_line()}"
        )
    whole = Arrays((x, y) if weights is None else (x, y, weights), 1)
    place = int(len(whole) * (1 - part))
    first, last = whole.rows(0, place), whole.rows(place, len(whole))
    return first[0], first[1], None if weights is None else first[2], last


def _table(class_weight: Mapping[int, float]) -> Any:
    found = ones(max(class_weight) + 1).numpy()
    for number, weight in class_weight.items():
        found[number] = weight
    return tensor(found)


def _joined(outputs: list[Any]) -> Any:
    """Outputs of all batches as arrays of all rows."""
    first = outputs[0]
    if isinstance(first, tuple | list):
        return type(first)([_joined([o[i] for o in outputs]) for i in range(len(first))])
    if isinstance(first, dict):
        return {k: _joined([o[k] for o in outputs]) for k in first}
    return np.concatenate([x.numpy() for x in outputs])
