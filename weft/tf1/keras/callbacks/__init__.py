"""`tf.keras.callbacks`: listeners to a run's events; also for `weft.train.Model`."""

from weft.tf1.keras.callbacks.callback import Callback, LambdaCallback, TerminateOnNaN
from weft.tf1.keras.callbacks.learning_rate import LearningRateScheduler, ReduceLROnPlateau
from weft.tf1.keras.callbacks.loggers import CSVLogger, ProgbarLogger, TensorBoard
from weft.tf1.keras.callbacks.monitors import EarlyStopping, ModelCheckpoint
from weft.train.supervised import History

__all__ = [
    "CSVLogger", "Callback", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN",
]  # fmt: skip
