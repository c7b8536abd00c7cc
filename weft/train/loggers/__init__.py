"""Loggers: they write a run's metrics."""

from __future__ import annotations

from weft.train.loggers.csv_logger import CSVLogger
from weft.train.loggers.logger import Logger
from weft.train.loggers.tensorboard_logger import TensorBoardLogger

__all__ = ["CSVLogger", "Logger", "TensorBoardLogger"]
