"""Training: `Trainer` and `Module` with Lightning's API; `fit` and `Model` for plain modules."""

from __future__ import annotations

from weft import exports as _exports
from weft.train import callbacks as callbacks
from weft.train import loggers as loggers
from weft.train import profilers as profilers
from weft.train import utilities as utilities
from weft.train.callbacks import Callback as Callback
from weft.train.combined_loader import CombinedLoader as CombinedLoader
from weft.train.datamodule import DataModule as DataModule
from weft.train.fabric import Fabric as Fabric
from weft.train.keras import Model as Model
from weft.train.module import Module as Module
from weft.train.nan_watch import NonFiniteLossError as NonFiniteLossError
from weft.train.seeds import seed_everything as seed_everything
from weft.train.strategy import Strategy as Strategy
from weft.train.supervised import *
from weft.train.trainer import *
from weft.train.tuner import Tuner as Tuner

LightningModule, LightningDataModule = Module, DataModule  # Lightning's names

_exports.gather(globals(), "callbacks", "loggers", "profilers", "utilities")
