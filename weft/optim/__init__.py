"""Optimisers: all parameters are updated in the same program as the backward pass."""

from __future__ import annotations

from weft.optim import lr_scheduler
from weft.optim.adagrad import Adagrad
from weft.optim.adam import Adam, AdamW
from weft.optim.ema import ExponentialMovingAverage
from weft.optim.lamb import LAMB
from weft.optim.lion import Lion
from weft.optim.optimizer import Optimizer
from weft.optim.rmsprop import RMSprop
from weft.optim.sgd import SGD

__all__ = [
    "LAMB",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "ExponentialMovingAverage",
    "Lion",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]
