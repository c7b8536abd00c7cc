"""Training: `Trainer` and `Module` with Lightning's API; `fit` and `Model` for plain modules."""

from __future__ import annotations

from weft.train import callbacks, loggers
from weft.train.datamodule import DataModule
from weft.train.keras import Model
from weft.train.module import Module
from weft.train.nan_watch import NonFiniteLossError
from weft.train.strategy import Strategy
from weft.train.supervised import History, fit
from weft.train.trainer import Trainer, seed_everything
from weft.train.tuner import Tuner

__all__ = [
    "DataModule",
    "History",
    "Model",
    "Module",
    "NonFiniteLossError",
    "Strategy",
    "Trainer",
    "Tuner",
    "callbacks",
    "fit",
    "loggers",
    "seed_everything",
]
