"""Callbacks: listeners to a run's events."""

from __future__ import annotations

from weft import exports as _exports
from weft.train.callbacks.averaging import *
from weft.train.callbacks.callback import Callback as Callback
from weft.train.callbacks.early_stopping import *
from weft.train.callbacks.finetuning import *
from weft.train.callbacks.lambda_callback import LambdaCallback as LambdaCallback
from weft.train.callbacks.model_checkpoint import Checkpoint as Checkpoint
from weft.train.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
from weft.train.callbacks.model_summary import *
from weft.train.callbacks.monitors import *
from weft.train.callbacks.prediction_writer import BasePredictionWriter as BasePredictionWriter
from weft.train.callbacks.progress_bar import *
from weft.train.callbacks.pruning import *
from weft.train.callbacks.schedulers import *
from weft.train.callbacks.spike_detection import *
from weft.train.callbacks.timer import Timer as Timer

_exports.gather(globals())
