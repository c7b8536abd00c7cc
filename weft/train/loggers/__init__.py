"""Loggers: what writes a run's figures down."""

from __future__ import annotations

from weft.train.loggers.csv_logger import CSVLogger
from weft.train.loggers.logger import Logger

__all__ = ["CSVLogger", "Logger"]
