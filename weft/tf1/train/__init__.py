"""`tf.train`: optimizers, learning rates, the global step."""

from weft import exports as _exports
from weft.ops.refusal import guard as _guard
from weft.tf1.framework.importer import write_graph as write_graph
from weft.tf1.summary.proto import summary_iterator as summary_iterator
from weft.tf1.train import queue_runner as queue_runner
from weft.tf1.train.batch import *
from weft.tf1.train.checkpoint_reader import *
from weft.tf1.train.checkpoint_state import *
from weft.tf1.train.coordinator import *
from weft.tf1.train.example import *
from weft.tf1.train.hook.run_hook import *
from weft.tf1.train.hook.saving import *
from weft.tf1.train.hook.step import *
from weft.tf1.train.hook.timer import SecondOrStepTimer as SecondOrStepTimer
from weft.tf1.train.hook.value import *
from weft.tf1.train.input import *
from weft.tf1.train.learning_rate import *
from weft.tf1.train.meta_graph import *
from weft.tf1.train.monitored.creator import *
from weft.tf1.train.monitored.scaffold import Scaffold as Scaffold
from weft.tf1.train.monitored.session import *
from weft.tf1.train.monitored.session_manager import SessionManager as SessionManager
from weft.tf1.train.monitored.supervisor import *
from weft.tf1.train.monitored.training import MonitoredTrainingSession as MonitoredTrainingSession
from weft.tf1.train.moving_averages import (
    ExponentialMovingAverage as ExponentialMovingAverage,
)
from weft.tf1.train.optimizer import *
from weft.tf1.train.queue_runner import *
from weft.tf1.train.replicated.device_setter import *
from weft.tf1.train.replicated.sync_replicas_optimizer import (
    SyncReplicasOptimizer as SyncReplicasOptimizer,
)
from weft.tf1.train.saver import *
from weft.tf1.train.server import *
from weft.tf1.train.warm_start import init_from_checkpoint as init_from_checkpoint

_exports.gather(globals(), "queue_runner")
_exports.lazy(
    globals(), {"weft.tf1.keras.storage.object_checkpoint": ["Checkpoint", "CheckpointManager"]}
)
_guard(globals())
