"""Keras's `fit`, `evaluate` and `predict`, run by the trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.errors import ArgumentError, DataError, StateError
from weft.ir.node import at_user_line
from weft.train.callbacks.callback import Callback
from weft.train.keras_listeners import Listeners
from weft.train.module import Module
from weft.train.supervised import Arrays, History
from weft.train.trainer import Trainer

Array = np.ndarray[Any, Any]


class KerasMethods:
    """Base class: a subclass defines what makes the steps, and how data becomes batches.

    Attributes:
        history: of the last `fit`.
        stop_training: set it in a callback to end training after the current step.
    """

    trainer_class: ClassVar[type[Trainer]] = Trainer
    history_class: ClassVar[type[Any]] = History
    history: History | None = None
    _trainer: Trainer | None = None

    # -- what a subclass defines

    def _compiled(self, stage: str) -> Module:
        """The module that makes the steps of `"fit"`, `"test"` or `"predict"`."""
        raise NotImplementedError

    def _weigh(self, module: Any, class_weight: Mapping[Any, Any] | None) -> None:
        """Set the factors of class losses."""
        raise NotImplementedError

    def _nested(self, x: Any) -> Any:
        """The user's data, in nested structures that `Arrays` accepts."""
        return x

    def _batches(
        self, stage: str, x: Any, y: Any, weights: Any, size: int, shuffle: bool, steps: Any
    ) -> Any:
        """Batches (x, y) or (x, y, weights) of arrays; or x itself if it is a loader."""
        if y is None:
            if weights is not None:
                raise ArgumentError.here(
                    "fit: expected weights of rows from the loader itself, got both"
                )
            return x
        return Arrays((x, y) if weights is None else (x, y, weights), size, shuffle)

    def _inputs(self, x: Any, size: int, steps: Any) -> Any:
        """Batches of inputs alone; or x itself if it is a loader."""
        arrays = not hasattr(x, "__iter__") or hasattr(x, "shape") or isinstance(x, tuple | dict)
        return Arrays((x,), size) if arrays else x

    # -- runs

    @property
    def stop_training(self) -> bool:
        """Whether to stop training."""
        return self._trainer is not None and self._trainer.should_stop

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        if self._trainer is not None:
            self._trainer.should_stop = value

    def begin_epoch_at(self, batch: int) -> None:
        """Let the epoch that begins have only its batches from this number on.

        For `on_epoch_begin` of a callback, in a run that goes on within an epoch.
        """
        if self._trainer is not None:
            self._trainer.progress.batch = batch

    def fit(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
        verbose: Any = "auto", callbacks: Any = None, validation_split: float = 0.0,
        validation_data: Any = None, shuffle: bool = True,
        class_weight: Mapping[Any, Any] | None = None, sample_weight: Any = None,
        initial_epoch: int = 0, steps_per_epoch: int | None = None,
        validation_steps: int | None = None, validation_batch_size: int | None = None,
        validation_freq: int = 1, **options: Any,
    ) -> History:  # fmt: skip
        """Train; the optimizer continues from an earlier `fit`.

        Args:
            x: arrays, or a loader of batches (x, y) or (x, y, weights).
            y: the targets of arrays.
            validation_split: the fraction at the end of the arrays that is held out for validation.
            validation_data: (x, y), (x, y, weights), or a loader.
            class_weight: factors of the losses of classes.
            sample_weight: factors of the losses of rows.
            initial_epoch: the number of the first epoch; `epochs` is the last one plus 1.
            options: of the `Trainer`.
        """
        module = self._compiled("fit")
        self._weigh(module, class_weight)
        x, y, sample_weight = self._nested(x), self._nested(y), self._nested(sample_weight)
        if validation_split and validation_data is None:
            x, y, sample_weight, validation_data = _split(x, y, sample_weight, validation_split)
        size = batch_size or 32
        data = self._batches("fit", x, y, sample_weight, size, shuffle, steps_per_epoch)
        own = validation_batch_size or size
        validation = self._validation(validation_data, own, validation_steps)
        steps = steps_per_epoch or (len(data) if hasattr(data, "__len__") else None)
        params = {"epochs": epochs, "batch_size": size, "steps": steps}
        history, listeners = self._listeners(callbacks, params)
        trainer = self._new_trainer(
            verbose, max_epochs=epochs, callbacks=listeners,
            limit_train_batches=steps_per_epoch, limit_val_batches=validation_steps,
            check_val_every_n_epoch=validation_freq, **options,
        )  # fmt: skip
        trainer.progress.epoch = initial_epoch
        self.history = history
        module.train()
        trainer.fit(module, data, validation)
        return history

    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: Any = "auto",
        sample_weight: Any = None, steps: int | None = None, callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:  # fmt: skip
        """Loss and metrics: the loss alone, a list, or by name."""
        module = self._compiled("test")
        trainer = self._new_trainer(
            verbose, limit_test_batches=steps, callbacks=self._listeners(callbacks, {})[1]
        )
        x, y, sample_weight = self._nested(x), self._nested(y), self._nested(sample_weight)
        data = self._batches("test", x, y, sample_weight, batch_size or 32, False, steps)
        passes = trainer.test(module, data, verbose=False)
        if not passes:
            raise DataError.here("evaluate: expected data, got no batches")
        (figures,) = passes
        found = {name.removeprefix("test_"): figure for name, figure in figures.items()}
        return told(found, return_dict)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto",
        steps: int | None = None, callbacks: Any = None,
    ) -> Any:  # fmt: skip
        """The outputs for all rows, as arrays."""
        module = self._compiled("predict")
        trainer = self._new_trainer(
            verbose, limit_predict_batches=steps, callbacks=self._listeners(callbacks, {})[1]
        )
        return _joined(trainer.predict(module, self._inputs(x, batch_size or 32, steps)))

    # -- helpers

    def _validation(self, given: Any, size: int, steps: Any) -> Any:
        """Batches of (x, y) or (x, y, weights), or of a loader; `None` if there is no data."""
        if given is None:
            return None
        if not isinstance(given, tuple | list):
            return self._batches("validate", given, None, None, size, False, steps)
        x, y, *rest = [self._nested(part) for part in given]
        return self._batches("validate", x, y, rest[0] if rest else None, size, False, steps)

    def _listeners(self, given: Any, params: dict[str, Any]) -> tuple[History, list[Any]]:
        """All callbacks, Keras's combined into one; the history gets all metrics."""
        each = list(given) if isinstance(given, list | tuple) else [given] if given else []
        own = [c for c in each if isinstance(c, Callback) and not isinstance(c, History)]
        others = [c for c in each if c not in own]
        kinds = (History, self.history_class)
        history = next((c for c in others if isinstance(c, kinds)), None) or self.history_class()
        kept = [c for c in others if c is not history]
        return history, [*own, Listeners([*kept, history], self, params)]

    def _new_trainer(self, verbose: Any, **options: Any) -> Trainer:
        quiet: dict[str, Any] = {
            "logger": False, "enable_checkpointing": False, "num_sanity_val_steps": 0,
            "enable_progress_bar": verbose not in (0, "0"), "enable_model_summary": False,
        }  # fmt: skip
        self._trainer = self.trainer_class(**{**quiet, **options})
        return self._trainer


def expected_compile(model: Any) -> StateError:
    """The error for a run before `compile`."""
    return StateError(
        f"{type(model).__name__}: expected compile() before, got none{at_user_line()}"
    )


def told(figures: dict[str, Any], return_dict: bool) -> Any:
    """Loss and metrics: by name, or a list, or the only one."""
    each = list(figures.values())
    return figures if return_dict else each[0] if len(each) == 1 else each


def _split(x: Any, y: Any, weights: Any, part: float) -> tuple[Any, Any, Any, Any]:
    """The arrays split into training rows and the last, validation rows."""
    if y is None or not 0 < part < 1:
        raise ArgumentError.here(
            f"fit: expected arrays x and y for a validation_split between 0 and 1, got {part}"
        )
    whole = Arrays((x, y) if weights is None else (x, y, weights), 1)
    place = int(len(whole) * (1 - part))
    first, last = whole.rows(0, place), whole.rows(place, len(whole))
    return first[0], first[1], None if weights is None else first[2], last


def _joined(outputs: Sequence[Any]) -> Any:
    """The outputs of all batches as arrays of all rows."""
    first = outputs[0]
    if isinstance(first, tuple | list):
        kind: Any = type(first)
        return kind([_joined([o[i] for o in outputs]) for i in range(len(first))])
    if isinstance(first, dict):
        return {k: _joined([o[k] for o in outputs]) for k in first}
    return np.concatenate([x if isinstance(x, np.ndarray) else x.numpy() for x in outputs])
