"""Keras's `compile`, `fit`, `evaluate` and `predict` for any module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.eager.functions.api import as_tensor
from weft.errors import ArgumentError
from weft.nn import Module as NNModule
from weft.serialization import load, save
from weft.train.keras_methods import KerasMethods, expected_compile, told
from weft.train.losses import ClassWeights
from weft.train.module import Module
from weft.train.supervised import Arrays, Supervised


class Model(KerasMethods):
    """A module with Keras's methods.

    Args:
        module: any module; or a function, with an optimizer that holds its parameters.

    Attributes:
        history: of the last `fit`.
        stop_training: set it in a callback to end training after the current step.

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
        self._supervised: Supervised | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's outputs."""
        return self.module(*args, **kwargs)

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None) -> None:
        """Configure training: see `weft.train.fit` for the arguments."""
        if loss is None:
            raise ArgumentError.here("compile: expected a loss, got None")
        self._supervised = Supervised(self.module, loss, optimizer, metrics)

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._compiled("fit").configure_optimizers()

    def get_learning_rate(self) -> float:
        """The learning rate of the optimizer's first group of parameters."""
        return float(self.optimizer.param_groups[0]["lr"])

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of all groups of parameters."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    # -- single batches

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None,
        class_weight: Mapping[Any, Any] | None = None, return_dict: bool = False,
    ) -> Any:  # fmt: skip
        """One update; returns the loss before it, a list with the metrics, or both by name."""
        before = self.history, self._trainer
        history = self.fit(
            x, y, _rows(x), shuffle=False, verbose=0, sample_weight=sample_weight,
            class_weight=class_weight, stop_on_nan=False,
        )  # fmt: skip
        self.history, self._trainer = before
        return told({k: v[0] for k, v in history.history.items()}, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """The loss of a batch, a list with the metrics, or both by name."""
        before = self._trainer
        found = self.evaluate(x, y, _rows(x), 0, sample_weight, return_dict=return_dict)
        self._trainer = before
        return found

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for a batch, as arrays."""
        before = self._trainer
        found = self.predict(x, _rows(x), 0)
        self._trainer = before
        return found

    # -- weights

    def get_weights(self) -> list[Any]:
        """Copies of the parameters and buffers, in the order of `state_dict`."""
        return [x.numpy().copy() for x in self._owner("get_weights").state_dict().values()]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the parameters and buffers, in the order of `get_weights`.

        Raises:
            ArgumentError: there are more or fewer.
            ShapeError: a shape differs.
        """
        owner = self._owner("set_weights")
        names = list(owner.state_dict())
        if len(names) != len(weights):
            raise ArgumentError.here(
                f"set_weights: expected {len(names)} arrays, as get_weights() gives, got "
                f"{len(weights)}"
            )
        state = {n: as_tensor(np.asarray(w)) for n, w in zip(names, weights, strict=True)}
        owner.load_state_dict(state)

    def save_weights(self, path: Any) -> None:
        """Save the module's `state_dict` to a file, whose ending says the format."""
        save(self._owner("save_weights").state_dict(), path)

    def load_weights(self, path: Any) -> None:
        """Restore what `save_weights` saved."""
        self._owner("load_weights").load_state_dict(load(path))

    def _owner(self, name: str) -> NNModule:
        if not isinstance(self.module, NNModule):
            raise ArgumentError.here(
                f"{name}: expected a Model of a module, got one of a function, whose parameters "
                f"are not known"
            )
        return self.module

    def _compiled(self, stage: str) -> Module:
        if self._supervised is not None:
            return self._supervised
        if stage != "predict":
            raise expected_compile(self)
        return Supervised(self.module, lambda *_: None, "sgd")

    def _weigh(self, module: Any, class_weight: Mapping[Any, Any] | None) -> None:
        module.class_weight = None if class_weight is None else ClassWeights(class_weight)


def _rows(x: Any) -> int:
    """The number of rows of arrays."""
    return len(Arrays((x,), 1))
