"""Callbacks: listeners to a run's events."""

from __future__ import annotations

from weft.train.callbacks.averaging import EMA, StochasticWeightAveraging
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.early_stopping import EarlyStopping
from weft.train.callbacks.model_checkpoint import ModelCheckpoint
from weft.train.callbacks.monitors import LearningRateMonitor, ThroughputMonitor
from weft.train.callbacks.progress_bar import ProgressBar
from weft.train.callbacks.timer import Timer

__all__ = [
    "EMA",
    "Callback",
    "EarlyStopping",
    "LearningRateMonitor",
    "ModelCheckpoint",
    "ProgressBar",
    "StochasticWeightAveraging",
    "ThroughputMonitor",
    "Timer",
]
