"""Callbacks: listeners to a run's events."""

from __future__ import annotations

from weft import exports as _exports
from weft.train.callbacks.averaging import *
from weft.train.callbacks.callback import Callback as Callback
from weft.train.callbacks.early_stopping import EarlyStopping as EarlyStopping
from weft.train.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
from weft.train.callbacks.monitors import *
from weft.train.callbacks.progress_bar import ProgressBar as ProgressBar
from weft.train.callbacks.timer import Timer as Timer

_exports.gather(globals())
