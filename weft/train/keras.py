"""Keras's `compile`, `fit`, `evaluate` and `predict` for any module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.eager.functions.api import ones, tensor
from weft.errors import ArgumentError
from weft.ops.base import at_user_line
from weft.train.keras_methods import KerasMethods, expected_compile
from weft.train.module import Module
from weft.train.supervised import Supervised


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
            raise ArgumentError(f"compile: expected a loss, got None{at_user_line()}")
        self._supervised = Supervised(self.module, loss, optimizer, metrics)

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._compiled("fit").configure_optimizers()

    def _compiled(self, stage: str) -> Module:
        if self._supervised is not None:
            return self._supervised
        if stage != "predict":
            raise expected_compile(self)
        return Supervised(self.module, lambda *_: None, "sgd")

    def _weigh(self, module: Any, class_weight: Mapping[Any, Any] | None) -> None:
        module.class_weight = None if class_weight is None else _table(class_weight)


def _table(class_weight: Mapping[int, float]) -> Any:
    found = ones(max(class_weight) + 1).numpy()
    for number, weight in class_weight.items():
        found[number] = weight
    return tensor(found)
