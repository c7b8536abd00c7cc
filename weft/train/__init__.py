"""Training: `Trainer` and `Module` with Lightning's names, callbacks, loggers."""

from __future__ import annotations

from weft.train import callbacks, loggers
from weft.train.datamodule import DataModule
from weft.train.module import Module
from weft.train.nan_watch import NonFiniteLossError
from weft.train.strategy import Strategy
from weft.train.trainer import Trainer, seed_everything

__all__ = [
    "DataModule",
    "Module",
    "NonFiniteLossError",
    "Strategy",
    "Trainer",
    "callbacks",
    "loggers",
    "seed_everything",
]
