"""`tf.keras.optimizers`: Keras's names and defaults over `tf.train`'s base class."""

from weft.tf1.keras.optimizers import schedules
from weft.tf1.keras.optimizers.optimizer import Optimizer, WrappedOptimizer
from weft.tf1.keras.optimizers.rules import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    Nadam,
    RMSprop,
    deserialize,
    get,
    serialize,
)  # fmt: skip

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Nadam", "Optimizer", "RMSprop",
    "WrappedOptimizer", "deserialize", "get", "schedules", "serialize",
]  # fmt: skip
