"""Loggers: they write a run's metrics."""

from __future__ import annotations

from weft import exports as _exports
from weft.train.loggers.csv_logger import CSVLogger as CSVLogger
from weft.train.loggers.logger import Logger as Logger
from weft.train.loggers.services import *
from weft.train.loggers.tensorboard_logger import TensorBoardLogger as TensorBoardLogger

_exports.gather(globals())
