"""Optimizers: all parameters are updated in the same program as the backward pass."""

from __future__ import annotations

from weft.optim import lr_scheduler, swa_utils
from weft.optim.adadelta import Adadelta
from weft.optim.adagrad import Adagrad
from weft.optim.adam import Adam, AdamW
from weft.optim.adamax import Adamax
from weft.optim.asgd import ASGD
from weft.optim.ema import ExponentialMovingAverage
from weft.optim.lamb import LAMB
from weft.optim.lbfgs import LBFGS
from weft.optim.lion import Lion
from weft.optim.nadam import NAdam
from weft.optim.optimizer import Optimizer
from weft.optim.radam import RAdam
from weft.optim.rmsprop import RMSprop
from weft.optim.rprop import Rprop
from weft.optim.sgd import SGD
from weft.optim.zero_redundancy import ZeroRedundancyOptimizer

__all__ = [
    "ASGD",
    "LAMB",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ExponentialMovingAverage",
    "Lion",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "ZeroRedundancyOptimizer",
    "lr_scheduler",
    "swa_utils",
]
