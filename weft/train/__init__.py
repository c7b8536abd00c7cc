"""Training: `Trainer` and `Module` with Lightning's API; `fit` and `Model` for plain modules."""

from __future__ import annotations

from weft import exports as _exports
from weft.train import callbacks as callbacks
from weft.train import loggers as loggers
from weft.train.datamodule import DataModule as DataModule
from weft.train.keras import Model as Model
from weft.train.module import Module as Module
from weft.train.nan_watch import NonFiniteLossError as NonFiniteLossError
from weft.train.strategy import Strategy as Strategy
from weft.train.supervised import *
from weft.train.trainer import *
from weft.train.tuner import Tuner as Tuner

_exports.gather(globals(), "callbacks", "loggers")
